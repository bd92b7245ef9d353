package verify

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	caseRow   = regexp.MustCompile(`(?m)^\| ([A-Q][1-9]) .*\|$`)
	testNamed = regexp.MustCompile("`([a-z]+)\\.((?:Test|Fuzz)\\w+)`")
)

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

// The tables of docs/verification.md and docs/security.md name tests that exist, of the package named, and each of the collected faults is
// named in a comment of some test.
func TestEveryCaseIsNamedInATestAndEveryTestOfTheTableExists(t *testing.T) {
	t.Parallel()
	tests, comments := testsOfTheTree(t)
	document, err := os.ReadFile("../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := caseRow.FindAllStringSubmatch(string(document), -1)
	if len(rows) < 53 {
		t.Errorf("the table has %d cases", len(rows))
	}
	for _, row := range rows {
		if !regexp.MustCompile(`\b` + row[1] + `\b`).MatchString(comments) {
			t.Errorf("case %s is named in no comment of a test", row[1])
		}
		if !testNamed.MatchString(row[0]) {
			t.Errorf("case %s names no test", row[1])
		}
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
