package resources

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ignoredByGit asks git itself which of the paths it ignores.
func ignoredByGit(t *testing.T, dir string, paths []string) map[string]bool {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.excludesFile=", "check-ignore", "--stdin", "-z", "--no-index")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("git check-ignore: %v", err)
	}
	ignored := map[string]bool{}
	for _, path := range bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		ignored[string(path)] = true
	}
	return ignored
}

func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	return dir
}

// hides says whether a file is hidden from who goes down to it.
func hides(dir, path string) bool {
	g := ignoringAt(dir)
	parts := strings.Split(path, "/")
	at, err := os.OpenRoot(dir)
	if err != nil {
		return true
	}
	defer at.Close()
	g.enter(at, nil)
	for i := range parts {
		here := parts[:i+1]
		if g.match(here, i < len(parts)-1) {
			return true
		}
		if i < len(parts)-1 {
			below, err := at.OpenRoot(strings.Join(here, "/"))
			if err != nil {
				return true
			}
			g.enter(below, here)
			_ = below.Close()
		}
	}
	return false
}

// What we hide is what git ignores.
func TestIgnoredAsGitDoes(t *testing.T) {
	paths := []string{"a.csv", "data/a.csv", "data/deep/b.csv", "src/x.py", "src/data.bin", "src/data/x.py", "build/x", "build/keep", "foo", "dir/foo", "a b", "ä.txt", "x.TXT",
		"a/b/c/b/d", "a/b/d", "a/x/b/d", "a-b", "a]b", "[a]", "file1", "file2", "filez", "#note", "!bang", "trail ", "logs/2026/1.log", "logs/keep.log", "q/r/s", "back\\slash", "ends.tmp", "deep/er/ends.tmp", "sub/own.csv", "sub/deep/own.csv"}
	dir := repository(t)
	for _, p := range paths {
		write(t, filepath.Join(dir, filepath.FromSlash(p)), []byte("x"))
	}
	for _, rules := range []string{
		"", "a[x-]b", "a[]-a]b", "file[a-c-z]", "file[\\0-\\9]", "file[--z]", "*.csv", "/a.csv", "data/", "data", "/data/*\n!/data/deep", "*\n!*/\n!*.py", "build/\n!build/keep", "build/*\n!build/keep", "foo/", "/foo", "dir/foo", "**/foo", "a b", "ä.*", "*.txt",
		"a/**/d", "a/**/b/d", "a/**", "**/b", "**", "**/", "*", "/*", "/*\n!/src", "/*\n!/src/", "*.bin\n!/src/", "a[-x]b", "a[]]b", "\\[a]", "[[]a]", "file[0-9]", "file[!0-9]", "file[^0-9]", "file[[:digit:]]",
		"file[z-a]", "file[", "\\#note", "#note", "\\!bang", "!bang", "trail\\ ", "trail   ", "trail\\ \n!trail ", "logs/**/*.log\n!keep.log", "q/r", "q/*", "q/*/s", "q/?/s", "back\\\\slash", "*.tmp\r\nfoo\r", "/", "//", "!", "\\",
		"**foo", "f**", "dir/f**", "dir**/foo", "own.csv", "/own.csv", "deep/own.csv", "sub/own.csv", "\ufeff*.csv", " a.csv", "data/ ", "*.csv\n!data/", "!*.csv\n*.csv", "*.csv\n!/data/**", "*/*.csv", "**/deep/**", "a//b", "./a.csv", "file?", "file??", "?", "[a-c].csv",
	} {
		write(t, filepath.Join(dir, ".gitignore"), []byte(rules))
		want := ignoredByGit(t, dir, paths)
		for _, p := range paths {
			if got := hides(dir, p); got != want[p] {
				t.Errorf("%q: %q hidden %v, git ignores %v", rules, p, got, want[p])
			}
		}
	}
}

// The same for rules made at random, in several folders.
func TestIgnoredAsGitDoesAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var paths []string
	for _, a := range []string{"a", "b", "ab"} {
		paths = append(paths, a+".x")
		for _, b := range []string{"a", "b", "c"} {
			paths = append(paths, a+"/"+b+".x", a+"/"+b+"/a", a+"/"+b+"/c.x")
		}
	}
	dir := repository(t)
	for _, p := range paths {
		write(t, filepath.Join(dir, p), []byte("x"))
	}
	line := func() string {
		out := pick("", "", "!") + pick("", "", "/")
		for i := range 1 + random.IntN(3) {
			if i > 0 {
				out += "/"
			}
			out += pick("a", "b", "c", "*", "**", "?", "*.x", "a*", "[ab]", "[!a]", "[^b]*", "a?", "c.x")
		}
		return out + pick("", "", "/") + "\n"
	}
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		var said string
		for _, folder := range []string{"", "a", "a/b", ".git/info"} {
			name := ".gitignore"
			if folder == ".git/info" {
				name = "exclude"
			}
			rules := ""
			for range random.IntN(3) {
				rules += line()
			}
			said += fmt.Sprintf("%s: %q ", folder, rules)
			write(t, filepath.Join(dir, folder, name), []byte(rules))
		}
		want := ignoredByGit(t, dir, paths)
		for _, p := range paths {
			if got := hides(dir, p); got != want[p] {
				t.Errorf("%s: %q hidden %v, git ignores %v", said, p, got, want[p])
			}
		}
	}
}

// A workspace inside a repository obeys the rules above it, and one that is itself ignored there stands for itself.
func TestIgnoredFromAbove(t *testing.T) {
	dir := repository(t)
	write(t, filepath.Join(dir, ".gitignore"), []byte("*.csv\n/work/data\n/runs\n"))
	for _, name := range []string{"work/a.csv", "work/data/x", "work/deep/data/x", "work/ok.txt", "runs/ok.txt", "runs/a.csv"} {
		write(t, filepath.Join(dir, name), []byte("x"))
	}
	for path, want := range map[string]bool{"a.csv": true, "data/x": true, "deep/data/x": false, "ok.txt": false} {
		if got := hides(filepath.Join(dir, "work"), path); got != want {
			t.Errorf("%s: hidden %v", path, got)
		}
	}
	for _, path := range []string{"ok.txt", "a.csv"} {
		if hides(filepath.Join(dir, "runs"), path) {
			t.Errorf("%s is hidden in a workspace that is ignored itself", path)
		}
	}
}
