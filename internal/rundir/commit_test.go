package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "deep/er/file.json")
	for _, text := range []string{"old", "new"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != text {
			t.Errorf("holds %q, want %q", got, text)
		}
	}
	if names := namesIn(filepath.Dir(path), 9); !slices.Equal(names, []string{"file.json"}) {
		t.Errorf("left behind %v", names)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWriteFileKeepsTheModeOfAScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no execute bit on Windows")
	}
	path := put(t, filepath.Join(t.TempDir(), "run.sh"), "old")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWriteFileFailsCleanly(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder.json")
	put(t, filepath.Join(folder, "x"), "")
	put(t, filepath.Join(dir, "file"), "")
	for _, path := range []string{folder, filepath.Join(dir, "file", "below.json")} {
		if err := WriteFile(path, []byte("x")); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("WriteFile(%s): %v", path, err)
		}
	}
	if names := namesIn(dir, 9); !slices.Equal(names, []string{"file", "folder.json/"}) {
		t.Errorf("left behind %v", names)
	}
}

func TestWriteFileTakesTheLongestName(t *testing.T) {
	if err := WriteFile(filepath.Join(t.TempDir(), strings.Repeat("n", 250)+".json"), nil); err != nil {
		t.Error(err)
	}
}

func TestCleanTemps(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, age := range map[string]time.Duration{
		".facts.json.tmp-123": 2 * time.Hour, ".facts.json.tmp-456": time.Minute, ".tmp-9": 2 * time.Hour, "facts.json": 2 * time.Hour, ".x.tmp-abc": 2 * time.Hour,
	} {
		path := put(t, filepath.Join(dir, name), "")
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := CleanTemps(dir, time.Hour, now)
	if err != nil || !slices.Equal(removed, []string{".facts.json.tmp-123"}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := CleanTemps(filepath.Join(dir, "missing"), time.Hour, now); err != nil || removed != nil {
		t.Errorf("missing folder: %v, %v", removed, err)
	}
}

func TestMarshalStable(t *testing.T) {
	got, err := MarshalStable(map[string]any{"b": "<a & b>", "a": []int{1}})
	want := "{\n  \"a\": [\n    1\n  ],\n  \"b\": \"<a & b>\"\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReadJSONSaysWhere(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name, text string
		line       int
		byte       int64
	}{
		{"truncated", "{\n  \"a\": 1,\n  \"b\"", 3, 17},
		{"malformed", "{\n  \"a\": oops}", 2, 10},
		{"wrong type", "{\n  \"a\": \"x\"\n}", 2, 12},
		{"empty", "", 1, 0},
	}
	for _, test := range tests {
		path := put(t, filepath.Join(dir, test.name), test.text)
		var v struct{ A int }
		err := ReadJSON(path, &v)
		var refused *finding.Refused
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		f := refused.Findings[0]
		if f.Code != "json_unreadable" || f.Where.Path != path || f.Where.Line != test.line || f.Where.Byte != test.byte {
			t.Errorf("%s: %+v at %+v", test.name, f, f.Where)
		}
	}
	if err := ReadJSON(filepath.Join(dir, "missing"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestHash(t *testing.T) {
	const abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	path := put(t, filepath.Join(t.TempDir(), "abc"), "abc")
	sha, size, err := HashFile(path)
	if sha != abc || size != 3 || err != nil || HashBytes([]byte("abc")) != abc {
		t.Errorf("%s, %d, %v", sha, size, err)
	}
	if _, _, err := HashFile(filepath.Dir(path)); err == nil {
		t.Error("hashed a folder")
	}
}
