package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Read reads the snapshot of the job in folder. It refuses with snapshot_missing where the job has none, and with what
// rundir.ReadJSON refuses where the file is damaged.
func Read(folder string) (Snapshot, error) {
	var s Snapshot
	name := filepath.Join(folder, File)
	err := rundir.ReadJSON(name, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, finding.Refuse(finding.Finding{Code: "snapshot_missing", Severity: finding.Error, What: "the job has no snapshot of its code",
			Where: &finding.Where{Path: name}, Expected: File + " in the job's folder", Remedy: "start the job anew; it can't be repeated exactly"})
	}
	s.JobFolder = folder
	return s, err
}

// shownFiles is how many files a finding names.
const shownFiles = 5

// Verify reads the snapshot of the job in folder and compares it with what is there now. What can't be relied on is an
// error: snapshot_altered for a copy that was changed, removed or added beside (a module beside a script is imported
// first), for a link that leads elsewhere, and for a snapshot.json that does not agree with itself or with treeHash, the
// hash that the job was started with ("" is not compared); snapshot_input_changed for an input of the command. Other
// originals that changed, and files that the job wrote into the snapshot, are warnings: snapshot_original_changed,
// snapshot_grown.
func Verify(folder, treeSHA256 string) (Snapshot, []finding.Finding, error) {
	s, err := Read(folder)
	if err != nil {
		return s, nil, err
	}
	v := &verification{snapshot: s}
	if got := treeHash(s.Roots); got != s.TreeSHA256 || treeSHA256 != "" && treeSHA256 != got {
		v.altered = append(v.altered, fmt.Sprintf("%s (its list of files has the hash %s)", File, got))
	}
	for _, root := range s.Roots {
		if err := v.root(root); err != nil {
			return s, nil, err
		}
	}
	v.originals()
	return s, v.findings(), nil
}

// verification collects what differs.
type verification struct {
	snapshot                        Snapshot
	altered, grown, inputs, skipped []string
}

func (v *verification) root(root Root) error {
	top := filepath.Join(v.snapshot.dir(), root.Name)
	known := map[string]bool{".": true}
	keep := func(name string) {
		for ; !known[name]; name = path.Dir(name) {
			known[name] = true
		}
	}
	for _, f := range root.Files {
		keep(f.Path)
		v.file(filepath.Join(top, filepath.FromSlash(f.Path)), root.Name+"/"+f.Path, f)
	}
	for _, l := range root.Links {
		keep(l.Path)
		if target, err := os.Readlink(filepath.Join(top, filepath.FromSlash(l.Path))); err != nil || target != l.Target {
			v.altered = append(v.altered, root.Name+"/"+l.Path+" (a link)")
		}
	}
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := relative(top, file) // it was found below top
		if known[rel] {
			return nil
		}
		if importable(entry.Name()) {
			v.altered = append(v.altered, root.Name+"/"+rel+" (added)")
		} else if !entry.IsDir() {
			v.grown = append(v.grown, root.Name+"/"+rel)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // every file of it is missing, and said to be
	}
	return err
}

// file compares one copy, without following a link that stands in its place.
func (v *verification) file(file, name string, want Copied) {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		v.altered = append(v.altered, name+" (missing)")
		return
	case !info.Mode().IsRegular():
		v.altered = append(v.altered, name+" (no regular file)")
		return
	}
	if sha, _, err := rundir.HashFile(file); err != nil || sha != want.SHA256 || (info.Mode()&0o111 != 0) != want.Executable {
		v.altered = append(v.altered, name)
	}
}

// importable says whether a file that was added may change what the copies do.
func importable(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".py", ".pyc", ".pyd", ".so", ".pth", ".sh":
		return true
	}
	return false
}

func (v *verification) originals() {
	for _, input := range v.snapshot.Inputs {
		if changed(input.Path, input) {
			v.inputs = append(v.inputs, input.Path)
		}
	}
	for _, root := range v.snapshot.Roots {
		for _, o := range root.Skipped {
			file := filepath.Join(root.Original, filepath.FromSlash(o.Path))
			if changed(file, o) && !slices.Contains(v.inputs, file) {
				v.skipped = append(v.skipped, file)
			}
		}
	}
}

// changed compares by hash where there is one. New times on old bytes are no change then.
func changed(file string, was Original) bool {
	info, err := os.Stat(file)
	if err != nil || info.Size() != was.Bytes {
		return true
	}
	if was.SHA256 == "" {
		return !info.ModTime().Equal(was.ModTime)
	}
	sha, _, err := rundir.HashFile(file)
	return err != nil || sha != was.SHA256
}

func (v *verification) findings() []finding.Finding {
	var out []finding.Finding
	tell := func(severity finding.Severity, code string, names []string, what, expected, remedy string) {
		if len(names) == 0 {
			return
		}
		slices.Sort(names)
		out = append(out, finding.Finding{Code: code, Severity: severity, What: what + ": " + finding.Few(names, shownFiles), Where: &finding.Where{Path: filepath.Join(v.snapshot.JobFolder, Folder)}, Expected: expected, Remedy: remedy})
	}
	tell(finding.Error, "snapshot_altered", v.altered, "the snapshot is not what the job ran", "the copies as they were taken", "start the job anew from the project; this snapshot proves nothing and can't be repeated")
	tell(finding.Error, "snapshot_input_changed", v.inputs, "what the job read has changed since", "the inputs with the recorded hashes", "put them back, or start the job anew with the changed inputs")
	tell(finding.Warning, "snapshot_original_changed", v.skipped, "files that the snapshot only links to have changed since", "unchanged originals", "if the script reads them, the repetition is not exact")
	tell(finding.Warning, "snapshot_grown", v.grown, "the job wrote into its snapshot", "outputs below code_save_dir", "pass the script an output folder; these files count as no output")
	return out
}

// CopyTo makes the same snapshot in another job's folder, without what was added to it meanwhile. The copies are compared
// with the recorded hashes: snapshot_altered is refused.
func (s Snapshot) CopyTo(folder string) (Snapshot, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Snapshot{}, err
	}
	into, err := os.MkdirTemp(folder, ".snapshot-*")
	if err != nil {
		return Snapshot{}, err
	}
	if err := s.fill(into); err != nil {
		return Snapshot{}, errors.Join(err, os.RemoveAll(into))
	}
	t := &taker{spec: Spec{Folder: folder}, into: into, snapshot: s}
	t.snapshot.JobFolder = folder
	return t.snapshot, t.commit()
}

func (s Snapshot) fill(into string) error {
	for _, root := range s.Roots {
		place := func(name string) (string, error) {
			to := filepath.Join(into, root.Name, filepath.FromSlash(name))
			return to, os.MkdirAll(filepath.Dir(to), 0o755)
		}
		for _, f := range root.Files {
			to, err := place(f.Path)
			if err != nil {
				return err
			}
			copied, err := copyFile(filepath.Join(s.dir(), root.Name, filepath.FromSlash(f.Path)), to)
			if err != nil {
				return err
			}
			if copied.SHA256 != f.SHA256 {
				v := verification{snapshot: s, altered: []string{root.Name + "/" + f.Path}}
				return finding.Refuse(v.findings()...)
			}
		}
		for _, l := range root.Links {
			to, err := place(l.Path)
			if err != nil {
				return err
			}
			if err := os.Symlink(l.Target, to); err != nil {
				return err
			}
		}
	}
	return nil
}
