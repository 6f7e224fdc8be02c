package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testDeclared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed    = regexp.MustCompile("`(Test\\w+)`")
)

// Every line of the threat model names a test, and every test that it names is there.
func TestEveryThreatHasItsTest(t *testing.T) {
	declared := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range testDeclared.FindAllSubmatch(source, -1) {
			declared[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(repository(t, "SECURITY.md"))) {
		names := testNamed.FindAllStringSubmatch(line, -1)
		if threat := strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| threat"); threat {
			if rows++; len(names) == 0 {
				t.Errorf("no test is named for %s", line)
			}
		}
		for _, name := range names {
			if !declared[name[1]] {
				t.Errorf("SECURITY.md names %s, which is not there", name[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d threats", rows)
	}
}
