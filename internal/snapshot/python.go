package snapshot

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed freeze.py
var freezeScript string

// freezeLimit bounds the interpreter's answer: an environment of a thousand packages on a network file system is slow.
const freezeLimit = 60 * time.Second

// frozen is what freeze.py prints.
type frozen struct {
	Version  string            `json:"version"`
	Prefix   string            `json:"prefix"`
	Packages map[string]string `json:"packages"`
	Path     []string          `json:"path"`
	Editable []string          `json:"editable"`
}

// askPackages lists an interpreter's packages. Folder is a directory without modules to run it in.
func askPackages(ctx context.Context, python, folder string, environ []string) (frozen, error) {
	ctx, cancel := context.WithTimeout(ctx, freezeLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", freezeScript)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, environ, &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return frozen{}, fmt.Errorf("%s: %w: %.200s", python, err, said[strings.LastIndexByte(said, '\n')+1:])
	}
	// What a site customisation prints stands before the answer.
	answer := strings.TrimSpace(stdout.String())
	var out frozen
	if err := json.Unmarshal([]byte(answer[strings.LastIndexByte(answer, '\n')+1:]), &out); err != nil || out.Version == "" {
		return frozen{}, fmt.Errorf("%s answered %.80q", python, answer)
	}
	return out, nil
}

// freeze records the interpreter.
func (t *taker) freeze(ctx context.Context) {
	t.snapshot.Python = Python{Path: t.spec.Python, Packages: map[string]string{}}
	answer, err := askPackages(ctx, t.spec.Python, t.spec.Folder, t.spec.Environ)
	if err != nil {
		t.snapshot.Python.Error = err.Error()
		t.note("freeze_failed", t.spec.Python, "the packages can't be listed: "+err.Error(), "an interpreter of Python 3.8 or later that answers", "go on; which packages the job used stays unknown")
		return
	}
	t.snapshot.Python.Version, t.snapshot.Python.Prefix, t.snapshot.Python.Packages = answer.Version, answer.Prefix, answer.Packages
	t.redirect(answer)
}

// redirect finds the folders of the project from which the interpreter would import, although the job is to import from
// the copies: PYTHONPATH, the .pth file or the import hook of an editable installation.
func (t *taker) redirect(answer frozen) {
	places := slices.Clone(answer.Path)
	for _, folder := range answer.Editable {
		// Which of the two the hook serves is not recorded; the one that does not apply holds no package of that name.
		places = append(places, filepath.Join(folder, "src"), folder)
	}
	for _, place := range places {
		resolved := real(place)
		for _, root := range t.snapshot.Roots {
			rel, ok := relative(root.Original, resolved)
			if !ok || strings.Contains("/"+rel+"/", "/site-packages/") {
				continue
			}
			name := path.Join(root.Name, rel)
			if info, err := os.Lstat(filepath.Join(t.into, filepath.FromSlash(name))); err == nil && info.IsDir() && !slices.Contains(t.snapshot.PythonPath, name) {
				t.snapshot.PythonPath = append(t.snapshot.PythonPath, name)
			}
		}
	}
	var rest []string
	for _, place := range filepath.SplitList(variable(t.spec.Environ, "PYTHONPATH")) {
		if _, ok := t.snapshot.Copy(real(place)); !ok || place == "" {
			rest = append(rest, place)
		}
	}
	t.snapshot.Inherited = strings.Join(rest, string(filepath.ListSeparator))
}

// Packages compares the interpreter with what the snapshot recorded: one line for each package that came, went or changed,
// and for another version of Python; sorted.
func (s Snapshot) Packages(ctx context.Context, environ []string) ([]string, error) {
	if s.Python.Path == "" || s.Python.Error != "" {
		return nil, nil
	}
	now, err := askPackages(ctx, s.Python.Path, s.JobFolder, environ)
	if err != nil {
		return nil, err
	}
	var out []string
	if now.Version != s.Python.Version {
		out = append(out, fmt.Sprintf("Python %s, was %s", now.Version, s.Python.Version))
	}
	names := maps.Clone(s.Python.Packages)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, now.Packages)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, before := s.Python.Packages[name]
		is, after := now.Packages[name]
		switch {
		case !before:
			out = append(out, fmt.Sprintf("%s %s is new", name, is))
		case !after:
			out = append(out, fmt.Sprintf("%s %s is gone", name, was))
		case was != is:
			out = append(out, fmt.Sprintf("%s %s, was %s", name, is, was))
		}
	}
	return out, nil
}
