package main

import (
	"strings"
	"testing"
)

func TestReadmeIsCurrent(t *testing.T) {
	if err := generate("../../README.md", true); err != nil {
		t.Error(err)
	}
}

func TestTablesNeedTheirMarks(t *testing.T) {
	text := ""
	for _, name := range []string{"tools", "prompts", "resources"} {
		text += "before\n<!-- " + name + ":begin -->\nold\n<!-- " + name + ":end -->\nafter\n"
	}
	got, err := withTables(text)
	if err != nil || strings.Contains(got, "\nold\n") || strings.Count(got, "before\n<!--") != 3 || !strings.Contains(got, "| `trainer` |") || !strings.Contains(got, "| `train` |") || !strings.Contains(got, "workspace:///") {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := withTables("<!-- tools:end --><!-- tools:begin -->"); err == nil {
		t.Error("marks in the wrong order are accepted")
	}
}
