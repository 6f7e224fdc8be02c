package resources

import (
	"os"
	"strings"
	"testing"
)

func TestReadmeTableIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := WithTable(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Error("the README's table of resources is stale: run make generate")
	}
}

func TestWithTable(t *testing.T) {
	if _, err := WithTable("# x\n" + TableEnd + TableBegin); err == nil {
		t.Error("marks in the wrong order are accepted")
	}
	got, err := WithTable("a\n" + TableBegin + "\nold\n" + TableEnd + "\nz\n")
	if err != nil || !strings.HasPrefix(got, "a\n"+TableBegin+"\n| address | gives |\n|---|---|\n| `workspace:///") || !strings.HasSuffix(got, "|\n"+TableEnd+"\nz\n") || strings.Contains(got, "\nold\n") {
		t.Errorf("got %q (%v)", got, err)
	}
}
