package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
)

// site is a workspace with a read root and a write root beside it, and links in all directions.
func site(t *testing.T) (base string, r *Roots) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("making symbolic links needs a privilege on Windows")
	}
	base = canonicalTemp(t)
	for _, dir := range []string{"work/src", "read", "write", "secret"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(base, "work/src/train.py"), "x")
	put(t, filepath.Join(base, "work/data.csv"), "a,b\n")
	put(t, filepath.Join(base, "secret/key"), "x")
	for link, target := range map[string]string{
		"work/in":        "src",
		"work/out":       "../secret",
		"work/outfile":   "../secret/key",
		"work/dangling":  "../secret/new.txt",
		"work/harmless":  "src/new.txt",
		"work/loop":      "loop2",
		"work/loop2":     "loop",
		"work/toread":    "../read",
		"work/towrite":   filepath.Join(base, "write"),
		"work/absout":    filepath.Join(base, "secret"),
		"work/chain":     "out",
		"workspace-link": "work",
	} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := NewRoots(filepath.Join(base, "workspace-link"), []string{filepath.Join(base, "read"), filepath.Join(base, "unmounted")}, []string{filepath.Join(base, "write")})
	if err != nil {
		t.Fatal(err)
	}
	return base, r
}

func TestRoots(t *testing.T) {
	base, r := site(t)
	const outside = "path_outside_roots"
	tests := []struct{ path, leadsTo, read, write string }{
		{"src/train.py", "work/src/train.py", "", ""},
		{".", "work", "", ""},
		{"src/../data.csv", "work/data.csv", "", ""},
		{"new/folder/file", "work/new/folder/file", "", ""},
		{"data.csv/below", "work/data.csv/below", "", ""},
		{filepath.Join(base, "work/data.csv"), "work/data.csv", "", ""},
		{filepath.Join(base, "workspace-link/data.csv"), "work/data.csv", "", ""},
		{"in/train.py", "work/src/train.py", "", ""},
		{"in/new.py", "work/src/new.py", "", ""},
		{"harmless", "work/src/new.txt", "", ""},
		{filepath.Join(base, "read/x"), "read/x", "", outside},
		{"toread/x", "read/x", "", outside},
		{"towrite/x/y", "write/x/y", "", ""},
		{filepath.Join(base, "unmounted/x"), "unmounted/x", "", outside},
		{"..", "", outside, outside},
		{"../secret/key", "", outside, outside},
		{"src/../../secret/key", "", outside, outside},
		{"/etc/passwd", "", outside, outside},
		{filepath.Join(base, "work2"), "", outside, outside},
		{"out/key", "", outside, outside},
		{"out/not/there/yet", "", outside, outside},
		{"outfile", "", outside, outside},
		{"dangling", "", outside, outside},
		{"absout/key", "", outside, outside},
		{"chain/key", "", outside, outside},
		{"loop", "", outside, outside},
		{"loop/x", "", outside, outside},
		{"src/train.py\x00.txt", "", outside, outside},
		{strings.Repeat("a/", 100_000), "", outside, outside},
		{"", "", "path_empty", "path_empty"},
		{"  ", "", "path_empty", "path_empty"},
	}
	for _, test := range tests {
		name := test.path[:min(40, len(test.path))]
		for verb, check := range map[string]func(string) (string, error){"read": r.Readable, "write": r.Writable} {
			want := map[string]string{"read": test.read, "write": test.write}[verb]
			abs, err := check(test.path)
			if got := strings.Join(codes(nil, err), ","); got != want {
				t.Errorf("%s %q: code %q, want %q (%v)", verb, name, got, want, err)
			}
			if want == "" && abs != filepath.Join(base, test.leadsTo) {
				t.Errorf("%s %q: %s, want %s", verb, name, abs, test.leadsTo)
			}
		}
	}
}

func TestRefusalSaysWhereItLeads(t *testing.T) {
	base, r := site(t)
	_, err := r.Writable("out/key")
	var refused *finding.Refused
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	f := refused.Findings[0]
	if !strings.Contains(f.What, filepath.Join(base, "secret/key")) || !strings.Contains(f.Expected, r.Workspace()) ||
		!strings.Contains(f.Remedy, "write_roots") || f.Where.Path != "out/key" || f.Severity != finding.Error {
		t.Errorf("%+v", f)
	}
}

func TestRel(t *testing.T) {
	base, r := site(t)
	for abs, want := range map[string]string{
		filepath.Join(base, "work/src/train.py"):           "src/train.py",
		filepath.Join(base, "workspace-link/src/train.py"): "src/train.py",
		filepath.Join(base, "work"):                        ".",
		filepath.Join(base, "read/x"):                      filepath.Join(base, "read/x"),
	} {
		if got := r.Rel(abs); got != want {
			t.Errorf("Rel(%s) = %s, want %s", abs, got, want)
		}
	}
}

func TestNewRootsNeedsAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, workspace := range []string{"", filepath.Join(dir, "missing"), put(t, filepath.Join(dir, "file"), ""), "a\x00b"} {
		if _, err := NewRoots(workspace, nil, nil); err == nil {
			t.Errorf("NewRoots(%q) took it", workspace)
		}
	}
}

func TestReadableFileAndDir(t *testing.T) {
	_, r := site(t)
	tests := []struct{ path, file, dir, remedy string }{
		{"src/train.py", "", "not_a_directory", "src"},
		{"in", "is_a_directory", "", "train.py"},
		{"src/trian.py", "file_missing", "file_missing", "train.py"},
		{"src/train.yaml", "file_missing", "file_missing", "train.py"},
		{"data/x.csv", "file_missing", "file_missing", "data.csv"},
		{"data.csv/x", "file_missing", "file_missing", "data.csv"},
		{"out", "path_outside_roots", "path_outside_roots", "read_roots"},
	}
	for _, test := range tests {
		_, info, err := r.ReadableFile(test.path)
		if got := strings.Join(codes(nil, err), ","); got != test.file {
			t.Errorf("ReadableFile(%s): %q, want %q", test.path, got, test.file)
		}
		if err == nil && info.Size() != 1 {
			t.Errorf("ReadableFile(%s): size %d", test.path, info.Size())
		}
		_, derr := r.ReadableDir(test.path)
		if got := strings.Join(codes(nil, derr), ","); got != test.dir {
			t.Errorf("ReadableDir(%s): %q, want %q", test.path, got, test.dir)
		}
		var refused *finding.Refused
		if errors.As(errors.Join(err, derr), &refused) && !strings.Contains(refused.Findings[0].Remedy, test.remedy) {
			t.Errorf("%s: remedy %q does not name %s", test.path, refused.Findings[0].Remedy, test.remedy)
		}
	}
}

func TestDevicesAreNotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no /dev on Windows")
	}
	r, err := NewRoots(t.TempDir(), []string{"/dev"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.ReadableFile("/dev/zero")
	if got := codes(nil, err); !slices.Equal(got, []string{"not_a_regular_file"}) {
		t.Errorf("%v", err)
	}
}
