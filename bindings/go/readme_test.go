package esker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// between is the part of a page after one text and before the next other one.
func between(t *testing.T, page, after, before string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	ok(t, err)
	_, rest, found := strings.Cut(string(text), after)
	part, _, ends := strings.Cut(rest, before)
	if !found || !ends {
		t.Fatal(page, " has no ", after)
	}
	return part
}

// run builds a program as a module of its own, and gives what it prints.
func run(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(".")
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	var out []byte
	for _, args := range [][]string{
		{"mod", "init", "first"},
		{"mod", "edit", "-replace", "example.invalid/esker/bindings/go=" + here},
		{"mod", "edit", "-require", "example.invalid/esker/bindings/go@v0.0.0"},
		{"run", "."},
	} {
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		if out, err = command.Output(); err != nil {
			if exit, is := err.(*exec.ExitError); is {
				t.Fatalf("go %v: %s", args, exit.Stderr)
			}
			t.Fatal(err)
		}
	}
	return string(out)
}

func TestTheFirstProgramOfThePage(t *testing.T) {
	printed := run(t, between(t, "README.md", "\n```go\n", "```"))
	if printed != between(t, "README.md", "It prints\n\n```\n", "```") {
		t.Fatalf("it prints %q", printed)
	}
}

func TestThePartOfAProgramOnThePageOfAllLanguages(t *testing.T) {
	part := between(t, "../../docs/EVERYWHERE.md", "\n```go\n", "```")
	program := "package main\n\nimport (\n\"fmt\"\n\"log\"\n\nesker \"example.invalid/esker/bindings/go\"\n)\n\n" +
		"func part() error {\n" + part + "return nil\n}\n\nfunc main() {\nif err := part(); err != nil {\nlog.Fatal(err)\n}\n}\n"
	if printed := run(t, program); printed != "ash = Fraxinus\n" {
		t.Fatalf("it prints %q", printed)
	}
}
