package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// folder reads a folder of the workspace.
func folder(t *testing.T, s *Source, uri string) (listing, Content) {
	t.Helper()
	c, err := s.Read(t.Context(), uri)
	if err != nil || c.MIME != mimeJSON || c.URI != uri {
		t.Fatalf("%s: %+v, %v", uri, c, err)
	}
	var l listing
	if err := json.Unmarshal([]byte(c.Text), &l); err != nil {
		t.Fatal(err)
	}
	return l, c
}

func (l listing) names() string {
	var out []string
	for _, e := range l.Entries {
		out = append(out, e.Name+":"+e.Kind)
	}
	return strings.Join(out, " ")
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// project makes a workspace with what belongs to the work, what git ignores, and secrets.
func project(t *testing.T) (*Source, string) {
	t.Helper()
	s, dir := lay(t)
	for name, text := range map[string]string{
		"config.yaml": "lr: 0.1\n", "data/train.csv": "x,y\n1,2\n", "data/raw/big.bin": "x", "reports/with space & ä.md": "# report\n", "100%.txt": "whole", "model/tokenizer.json": "{}", "model/special_tokens_map.json": "{}",
		".gitignore": "raw/\n*.ckpt\n", "model/last.ckpt": "x", "model/.gitignore": "own.txt\n", "model/own.txt": "x",
		".env": "TOKEN=x", ".env.local": "x", "deploy/server.pem": "x", "deploy/id_rsa": "x", "deploy/credentials": "x", "deploy/tokens.json": "x", ".netrc": "x", ".git/config": "x", ".ssh/config": "x", ".env.example": "TOKEN=\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), []byte(text))
	}
	return s, dir
}

// Folders are listed, and every entry can be read by its address.
func TestTheWorkspaceIsBrowsed(t *testing.T) {
	s, dir := project(t)
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "config.yaml"), at, at); err != nil {
		t.Fatal(err)
	}
	top, _ := folder(t, s, "workspace:///")
	want := ".agents:folder .env.example:file .gitignore:file .onescience:folder 100%.txt:file config.yaml:file data:folder deploy:folder model:folder reports:folder runs:folder"
	if got := top.names(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if top.LeftOut != 6 || top.URI != "workspace:///" || !strings.Contains(top.Note, "6 entries") {
		t.Errorf("%+v", top)
	}
	for _, e := range top.Entries {
		if e.Name == "config.yaml" && (*e.Bytes != 8 || !e.Modified.Equal(at)) {
			t.Errorf("%+v", e)
		}
	}
	if l, _ := folder(t, s, "workspace:///deploy/"); len(l.Entries) != 0 || l.LeftOut != 4 || l.URI != "workspace:///deploy/" {
		t.Errorf("%+v", l)
	}
	if l, _ := folder(t, s, "workspace:///model"); l.names() != ".gitignore:file special_tokens_map.json:file tokenizer.json:file" {
		t.Errorf("%s", l.names())
	}
	if l, _ := folder(t, s, "workspace:///data"); l.names() != "train.csv:file" {
		t.Errorf("%s", l.names())
	}
	files := 0
	var visit func(uri string)
	visit = func(uri string) {
		l, _ := folder(t, s, uri)
		for _, e := range l.Entries {
			at := l.URI + e.Name
			if e.URI != "" {
				at = e.URI
			}
			if e.Kind == kindFolder {
				visit(at)
				continue
			}
			files++
			if c, err := s.Read(t.Context(), at); err != nil || c.Total != *e.Bytes {
				t.Errorf("%s: %+v, %v", at, c, err)
			}
		}
	}
	visit("workspace:///")
	if files < 10 {
		t.Errorf("%d files", files)
	}
	for uri, text := range map[string]string{"workspace:///config.yaml": "lr: 0.1\n", "workspace://config.yaml": "lr: 0.1\n", "workspace:///reports/with%20space%20&%20%C3%A4.md": "# report\n", "workspace:///reports/with space & ä.md": "# report\n",
		"workspace:///100%25.txt": "whole", "workspace:///data%2Ftrain.csv": "x,y\n1,2\n"} {
		if c, err := s.Read(t.Context(), uri); err != nil || c.Text != text {
			t.Errorf("%s: %+v, %v", uri, c, err)
		}
	}
}

// What git ignores and what may hold secrets is not served, under no spelling, and neither is what lies outside.
func TestTheWorkspaceKeepsItsSecrets(t *testing.T) {
	s, dir := project(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "x.md"), []byte("elsewhere"))
	for name, target := range map[string]string{"notes.txt": ".env", "key.txt": "deploy/server.pem", "repo": ".git", "bin.txt": "data/raw/big.bin", "raw2": "data/raw", "out": outside, "out.md": "../" + filepath.Base(outside) + "/x.md",
		"abs.yaml": filepath.Join(dir, "config.yaml"), "abs.env": filepath.Join(dir, ".env"), "out.abs": filepath.Join(outside, "x.md"), "root": "/", "loop": "loop", "loop1": "loop2", "loop2": "loop1", "gone": "nowhere", "up": "..", "good.yaml": "config.yaml", "m": "model", "chain": "m/../good.yaml"} {
		symlink(t, target, filepath.Join(dir, name))
	}
	for _, path := range []string{
		".env", "%2eenv", ".env.local", ".ENV", ".env.", ".env~", "deploy/server.pem", "deploy/id_rsa", "deploy/credentials", "deploy/tokens.json", ".netrc", ".git", ".git/config", ".git/", ".GIT/config", ".ssh/config",
		"data/raw", "data/raw/big.bin", "data%2fraw%2fbig.bin", "model/last.ckpt", "model/own.txt",
		"notes.txt", "abs.env", "root", "root/etc/passwd", "key.txt", "repo", "repo/config", "bin.txt", "raw2", "raw2/big.bin", "m/last.ckpt", "m/own.txt", "out", "out/x.md", "out.md", "out.abs", "loop", "loop1", "gone", "up", "up/x",
		"../x.md", "..%2f" + filepath.Base(outside) + "%2fx.md", "%2e%2e/x", "data/../.env", "data/..", "./config.yaml", "/config.yaml", "//config.yaml", "/etc/passwd", "%2fetc%2fpasswd", filepath.ToSlash(dir) + "/config.yaml",
		`..\x`, "data\\train.csv", "%5c..", "config.yaml%00", "config.yaml/x", "none", "data/none", "%zz", "..%252fx",
	} {
		c, err := s.Read(t.Context(), "workspace:///"+path)
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %.60q, %v", path, c.Text, err)
		}
	}
	l, _ := folder(t, s, "workspace:///")
	for _, e := range l.Entries {
		hidden := []string{"notes.txt", "abs.env", "key.txt", "repo", "bin.txt", "raw2"}
		if slices.Contains(hidden, e.Name) {
			t.Errorf("%s is listed", e.Name)
		}
		if links := []string{"out", "out.md", "out.abs", "root", "loop", "gone", "up"}; slices.Contains(links, e.Name) && (e.Kind != kindLink || e.Bytes != nil) {
			t.Errorf("%+v", e)
		}
	}
	for _, path := range []string{"good.yaml", "abs.yaml", "chain"} {
		if c, err := s.Read(t.Context(), "workspace:///"+path); err != nil || c.Text != "lr: 0.1\n" {
			t.Errorf("%s: %+v, %v", path, c, err)
		}
	}
	if c, err := s.Read(t.Context(), "workspace:///m/tokenizer.json"); err != nil || c.Text != "{}" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := s.Read(t.Context(), "workspace:///.env")
	_, gone := s.Read(t.Context(), "workspace:///deploy/.env")
	if !strings.Contains(err.Error(), "may hold secrets") || strings.ReplaceAll(gone.Error(), "deploy/", "") != err.Error() {
		t.Errorf("a refusal tells whether the file is there: %v, %v", err, gone)
	}
}

// Secrets in a run's or a job's folder are no less secret.
func TestRunsKeepTheirSecrets(t *testing.T) {
	s, dir := lay(t)
	for _, name := range []string{".env", "code/.env", "code/id_rsa", "code/.git/config"} {
		write(t, filepath.Join(dir, "runs/a", name), []byte("x"))
		if c, err := s.Read(t.Context(), "run://r-20261130-aaaa/"+name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	symlink(t, "code/.env", filepath.Join(dir, "runs/a/notes.txt"))
	if c, err := s.Read(t.Context(), "run://r-20261130-aaaa/notes.txt"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%+v, %v", c, err)
	}
}

// A folder with many entries comes in pages.
func TestALongFolderComesInPages(t *testing.T) {
	s, dir := lay(t)
	for i := range 2*folderPage + 50 {
		write(t, filepath.Join(dir, "many", fmt.Sprintf("f%04d", i)), nil)
	}
	seen := map[string]bool{}
	pages := 0
	for uri := "workspace:///many"; uri != ""; pages++ {
		l, c := folder(t, s, uri)
		for _, e := range l.Entries {
			seen[e.Name] = true
		}
		if c.Cut != (l.Rest != "") || c.Rest != l.Rest || c.Cut && !strings.Contains(c.Note, "of 450 are shown") || l.Total != 450 {
			t.Errorf("%+v %q", l.Rest, c.Note)
		}
		uri = l.Rest
	}
	if len(seen) != 450 || pages != 3 {
		t.Errorf("%d entries on %d pages", len(seen), pages)
	}
	if l, _ := folder(t, s, "workspace:///many?offset=449&limit=7"); l.names() != "f0449:file" {
		t.Error(l.names())
	}
}

// Whoever swaps a file or a folder for a link to a secret, again and again, never gets the secret out.
func TestLinkRaces(t *testing.T) {
	s, dir := lay(t)
	const secret = "do not show this"
	write(t, filepath.Join(dir, "d/.env"), []byte(secret))
	write(t, filepath.Join(dir, "d/.ssh/x.txt"), []byte(secret))
	write(t, filepath.Join(dir, "d/plain/x.txt"), []byte("harmless"))
	outside := t.TempDir()
	write(t, filepath.Join(outside, "x.txt"), []byte(secret))
	swap := func(name string, targets ...string) {
		for _, target := range targets {
			next := filepath.Join(dir, "d", "next-"+filepath.Base(name))
			_ = os.Remove(next)
			_ = os.Symlink(target, next)
			_ = os.Rename(next, filepath.Join(dir, "d", name))
		}
	}
	symlink(t, "plain", filepath.Join(dir, "d/folder"))
	symlink(t, "plain/x.txt", filepath.Join(dir, "d/file.txt"))
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			swap("folder", ".ssh", outside, "plain")
			swap("file.txt", ".env", filepath.Join(outside, "x.txt"), "plain/x.txt")
			_ = os.Rename(filepath.Join(dir, "d/plain"), filepath.Join(dir, "d/aside"))
			_ = os.Symlink(".ssh", filepath.Join(dir, "d/plain"))
			_ = os.Remove(filepath.Join(dir, "d/plain"))
			_ = os.Rename(filepath.Join(dir, "d/aside"), filepath.Join(dir, "d/plain"))
		}
	})
	harmless := 0
	for range 1000 {
		for _, path := range []string{"d/folder/x.txt", "d/file.txt", "d/plain/x.txt"} {
			c, err := s.Read(t.Context(), "workspace:///"+path)
			if strings.Contains(c.Text, secret) {
				t.Fatalf("%s shows the secret", path)
			}
			if err == nil && c.Text == "harmless" {
				harmless++
			} else if !errors.Is(err, ErrNotFound) {
				t.Fatalf("%s: %+v, %v", path, c, err)
			}
		}
	}
	close(stop)
	swapping.Wait()
	if harmless == 0 {
		t.Error("nothing was ever read")
	}
}

// The spelling of a name is the one that the folder lists.
func TestSpelling(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Data"), nil)
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	for name, want := range map[string]bool{"Data": true, "data": false, "DATA~1": false, "Data.": false, "Data::$DATA": false} {
		if got := spelledSo(at, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
