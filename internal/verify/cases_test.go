package verify

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	caseRow   = regexp.MustCompile(`(?m)^\| ([A-Z][0-9]+) .*\|$`)
	testNamed = regexp.MustCompile("`([a-z-]+)\\.((?:Test|Fuzz)\\w+)`")
)

// collected are the faults of others that were collected, by the letter of their group. Written by hand: what is left out of the table of
// docs/verification.md is found by this.
var collected = map[string][]int{
	"A": {1, 3}, "B": {1, 3, 5}, "C": {1, 3, 5, 7, 8}, "D": {1}, "E": {1, 2, 3}, "F": {1}, "G": {1, 3, 4, 5}, "H": {1}, "I": {1, 3},
	"J": {1, 3, 5, 6, 8, 9}, "K": {2, 3, 4, 6}, "L": {1, 3, 4}, "M": {1, 2, 3, 4, 5, 7}, "N": {1, 3, 5, 6}, "O": {1, 3, 4}, "P": {1, 2, 4}, "Q": {1, 2},
}

// testsOfTheTree gives all tests and fuzz targets, each with its package in front, and what the comments of their files say.
func testsOfTheTree(t *testing.T) (tests map[string]bool, comments string) {
	t.Helper()
	tests = map[string]bool{}
	var all strings.Builder
	for _, root := range []string{"../../internal", "../../cmd", "../../web"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, f := range testFunc.FindAllSubmatch(text, -1) {
				tests[filepath.Base(filepath.Dir(path))+"."+string(f[1])] = true
			}
			for line := range strings.Lines(string(text)) {
				if _, comment, found := strings.Cut(line, "//"); found {
					all.WriteString(comment)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return tests, all.String()
}

// The tables of docs/verification.md and docs/security.md name tests that exist, of the package named. Each of the collected faults has its row, and is
// named in a comment of some test.
func TestEveryCaseIsNamedInATestAndEveryTestOfTheTableExists(t *testing.T) {
	t.Parallel()
	tests, comments := testsOfTheTree(t)
	document, err := os.ReadFile("../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, listed []string
	for _, group := range slices.Sorted(maps.Keys(collected)) {
		for _, n := range collected[group] {
			want = append(want, group+strconv.Itoa(n))
		}
	}
	rows := caseRow.FindAllStringSubmatch(string(document), -1)
	for _, row := range rows {
		listed = append(listed, row[1])
		if !regexp.MustCompile(`\b` + row[1] + `\b`).MatchString(comments) {
			t.Errorf("case %s is named in no comment of a test", row[1])
		}
		if !testNamed.MatchString(row[0]) {
			t.Errorf("case %s names no test", row[1])
		}
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("the table has not each case once, in order (-want +listed):\n%s", diff)
	}
	security, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range testNamed.FindAllStringSubmatch(string(document)+string(security), -1) {
		if !tests[named[1]+"."+named[2]] {
			t.Errorf("the documents name %s.%s, which there is not", named[1], named[2])
		}
	}
}

// The table under "Fuzzing" has every fuzz target there is, once. That those it names exist is tested above.
func TestEveryFuzzTargetIsInTheTable(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(document), "\n# Fuzzing\n")
	if !found {
		t.Fatal("there is no part on fuzzing")
	}
	table, _, _ = strings.Cut(table, "\n# ")
	listed := map[string]int{}
	for _, named := range testNamed.FindAllStringSubmatch(table, -1) {
		listed[named[1]+"."+named[2]]++
	}
	targets := 0
	tests, _ := testsOfTheTree(t)
	for name := range tests {
		if !strings.Contains(name, ".Fuzz") {
			continue
		}
		targets++
		if listed[name] != 1 {
			t.Errorf("%s is %d times in the table of fuzz targets", name, listed[name])
		}
	}
	if targets == 0 {
		t.Error("no fuzz target was found")
	}
}
