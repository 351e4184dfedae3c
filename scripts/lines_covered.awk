# From what ran of each line (lcov) and the sources: how many lines of each module ran in a test.
# Code of the tests themselves does not count: files of tests, and what stands behind `#[cfg(test)]`.
#
#   awk -f lines_covered.awk -v root=DIR/ -v least=90 -v required="wal version" -v missed=FILE lcov.info
#
# Prints a line for each group of modules; exits with 1 when one of `required` is below `least` percent.

function is_test(name) {
    return name ~ /(^|\/)(tests|testing|sync_testing|fuzz|bench|speed|models|simulation|script|conformance)\.rs$/ ||
        name ~ /_tests\.rs$/ || name ~ /\/tests\// || name ~ /^(crash_tests|fuzzing|env\/sim)\// || name == "env/heap.rs"
}

# The lines of a file that are compiled for tests only: the item behind each `#[cfg(test)]`, up to the
# brace that closes it (rustfmt puts that in the column in which the item begins), or to its semicolon.
function find_test_lines(path,    line, at, column, head, in_item) {
    delete test_line
    at = in_item = 0
    while ((getline line < path) > 0) {
        at++
        if (!in_item && line ~ /^ *#\[cfg\((test|all\(test.*\)|any\(test.*\))\)\]$/) {
            match(line, /^ */)
            column = RLENGTH
            in_item = 1
            head = 1
            test_line[at] = 1
            continue
        }
        if (!in_item) continue
        test_line[at] = 1
        match(line, /^ */)
        if (head && line ~ /^ *(#\[|\/\/)/) continue
        if (RLENGTH == column && line ~ /[;,}]$/) in_item = 0
        head = 0
    }
    close(path)
    if (at == 0) { print "error: cannot read " path > "/dev/stderr"; unreadable = 1 }
}

function group_of(name) {
    sub(/\.rs$/, "", name)
    sub(/\/.*/, "", name)
    return name
}

BEGIN { FS = "[:,]" }

/^SF:/ {
    path = substr($0, 4)
    name = index(path, root) == 1 ? substr(path, length(root) + 1) : ""
    counts = name != "" && !is_test(name)
    if (counts) {
        find_test_lines(path)
        group = group_of(name)
        missed_here = ""
    }
}

/^DA:/ && counts && !($2 in test_line) {
    lines[group]++
    file_lines[name]++
    total++
    if ($3 > 0) {
        ran[group]++
        file_ran[name]++
        total_ran++
    } else {
        missed_here = missed_here " " $2
    }
}

/^end_of_record/ && counts && missed_here != "" { print name ":" missed_here > missed }

function row(what, of, all) { printf "%-12s %6d of %6d lines  %6.2f %%\n", what, of, all, 100 * of / all }

END {
    count = split(required, names, " ")
    for (i = 1; i <= count; i++) {
        wanted = names[i]
        if (!lines[wanted]) { print "error: no line of " wanted " was seen"; failed = 1; continue }
        row(wanted, ran[wanted], lines[wanted])
        if (100 * ran[wanted] < least * lines[wanted]) below = below " " wanted
    }
    count = split(others, names, " ")
    for (i = 1; i <= count; i++) if (lines[names[i]]) row(names[i], ran[names[i]], lines[names[i]])
    if (total) row("all", total_ran, total)
    if (below != "") { print "below " least " %:" below; failed = 1 }
    exit failed || unreadable
}
