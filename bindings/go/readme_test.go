package esker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// between is the part of the page after one text and before the next other one.
func between(t *testing.T, after, before string) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	ok(t, err)
	_, rest, found := strings.Cut(string(page), after)
	text, _, ends := strings.Cut(rest, before)
	if !found || !ends {
		t.Fatal("the page has no ", after)
	}
	return text
}

// The page's program is built as a module of its own, and prints what the page says.
func TestTheFirstProgramOfThePage(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(".")
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(between(t, "\n```go\n", "```")), 0o644))
	for _, args := range [][]string{
		{"mod", "init", "first"},
		{"mod", "edit", "-replace", "example.invalid/esker/bindings/go=" + here},
		{"mod", "edit", "-require", "example.invalid/esker/bindings/go@v0.0.0"},
		{"run", "."},
	} {
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		out, err := command.Output()
		if err != nil {
			if exit, is := err.(*exec.ExitError); is {
				t.Fatalf("go %v: %s", args, exit.Stderr)
			}
			t.Fatal(err)
		}
		if args[0] == "run" && string(out) != between(t, "It prints\n\n```\n", "```") {
			t.Fatalf("it prints %q", out)
		}
	}
}
