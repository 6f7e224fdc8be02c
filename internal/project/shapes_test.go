package project

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The shapes in which training scripts come: what is found in each, and where, stands in testdata/golden/shapes.txt for people to read.
// Each is the shape of a kind of project that many people use, written anew and small.
func TestShapes(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 on this machine")
	}
	folders, err := filepath.Glob("testdata/shapes/*")
	if err != nil || len(folders) < 12 {
		t.Fatal(folders, err)
	}
	var all strings.Builder
	for _, folder := range folders {
		fmt.Fprintf(&all, "== %s\n", filepath.Base(folder))
		all.WriteString(told(t, folder, Options{}))
		all.WriteString("\n")
	}
	goldenText(t, "shapes.txt", all.String())
}

// Without Python the text alone says less, and nothing else.
func TestShapesAsText(t *testing.T) {
	for _, folder := range []string{"imagenet", "pyconfig", "deepspeed"} {
		with, without := told(t, filepath.Join("testdata/shapes", folder), Options{}), told(t, filepath.Join("testdata/shapes", folder), Options{Python: "none"})
		for line := range strings.Lines(without) {
			if !strings.HasPrefix(line, "read by") && !strings.HasPrefix(line, "entry") && !strings.Contains(with, line) {
				t.Errorf("%s: only the text says %s", folder, line)
			}
		}
	}
}

// told is what a scan finds, a line each.
func told(t *testing.T, folder string, options Options) string {
	t.Helper()
	options.GitCeiling, _ = filepath.Abs(folder) // this repository is not theirs
	tree, _, err := Scan(context.Background(), folder, options)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	by, _, _ := strings.Cut(tree.ReadBy, " (")
	fmt.Fprintf(&b, "read by %s\n", by)
	said := func(what, name string, value any, role string, place Place, quote string) {
		src, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(place.Path)))
		if err != nil || string(src[place.Start:place.End]) != quote {
			t.Errorf("%s: %s %s: the place holds %q, the quote is %q", folder, what, name, src[place.Start:place.End], quote)
		}
		fmt.Fprintf(&b, "%s %s = %v", what, name, value)
		if role != "" {
			fmt.Fprintf(&b, " [%s]", role)
		}
		fmt.Fprintf(&b, " at %s:%d\n", place.Path, place.Line)
	}
	if len(tree.Entrypoints) == 0 {
		return b.String() + "no entry point\n"
	}
	entry := tree.Entrypoints[0]
	fmt.Fprintf(&b, "entry %s: %s\n", entry.Path, strings.Join(entry.Reasons, "; "))
	for _, a := range entry.Arguments {
		said("argument", strings.Join(a.Flags, " "), a.Default, a.Role, a.Place, a.Quote)
	}
	for _, s := range tree.SettingsOf(entry.Path, "configs/small.py") {
		said(s.How, s.Name, s.Value, s.Role, s.Place, s.Quote)
	}
	for _, l := range tree.LaunchesOf(entry.Path) {
		fmt.Fprintf(&b, "launch by %s of %s, %d processes, at %s:%d\n", l.Launcher, l.Script, l.WorldSize, l.Place.Path, l.Place.Line)
		for _, a := range l.Arguments {
			said("  with", a.Name, a.Value, a.Role, a.Place, a.Quote)
		}
	}
	if files := tree.HydraFiles(entry.Path); len(files) > 0 {
		fmt.Fprintf(&b, "hydra reads %s\n", strings.Join(files, ", "))
	}
	for _, c := range tree.Configs {
		for _, v := range c.Values {
			if v.Role != "" {
				said("config", v.Key, v.Value, v.Role, v.Place, v.Quote)
			}
		}
	}
	return b.String()
}
