package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds of a listing: files inspected, and bytes hashed over all of them (latest names first).
const (
	maxListed = 1000
	maxHashed = 4 << 30
)

// notCheckpoints are extensions of files that lie beside checkpoints.
var notCheckpoints = map[string]bool{".txt": true, ".md": true, ".log": true, ".yaml": true, ".yml": true, ".csv": true, ".jsonl": true, ".py": true, ".png": true}

// List inspects the checkpoint files of a folder, the newest epoch first, then step, then time of change. Markers,
// temporary and hidden files, and text beside them are left out; sub-folders are not entered. A file without a marker is
// listed, with a note. A folder that does not exist is an empty list and a note (checkpoint_folder_missing).
//
// Findings are those of Inspect, checkpoint_marker_orphan (warning: a marker whose file is gone), checkpoint_repeated
// (warning: the bytes of another one under the name of a later epoch or step) and checkpoint_list_cut (note).
// checkpoint_no_marker is a warning for a file of some epoch or step where others of the folder have a marker: their writer
// makes one when it is done.
func List(dir string) ([]Info, []finding.Finding, error) {
	return ReadAll(context.Background(), dir, Options{HashLimit: HashLimit})
}

// ReadAll is List with options, which hold for each file.
func ReadAll(ctx context.Context, dir string, options Options) ([]Info, []finding.Finding, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []finding.Finding{{
			Code: "checkpoint_folder_missing", Severity: finding.Note, What: "there is no checkpoint folder", Where: &finding.Where{Path: dir},
		}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list checkpoints: %w", err)
	}
	names, found := candidates(dir, entries)
	if len(names) > maxListed {
		found = append(found, finding.Finding{
			Code: "checkpoint_list_cut", Severity: finding.Note, Where: &finding.Where{Path: dir},
			What: fmt.Sprintf("%d of %d files are listed, the last by name", maxListed, len(names)),
		})
		names = names[:maxListed]
	}
	infos := make([]Info, 0, len(names))
	hashable := int64(maxHashed)
	for _, name := range names {
		info, more, err := Read(ctx, filepath.Join(dir, name), Options{HashLimit: min(options.HashLimit, hashable), Tensors: options.Tensors, Checksums: options.Checksums})
		if err != nil {
			return nil, nil, err
		}
		if info.SHA256 != "" {
			hashable -= info.Bytes
		}
		found = append(found, more...)
		infos = append(infos, info)
	}
	sort.SliceStable(infos, func(i, j int) bool { return newer(infos[i], infos[j]) })
	warnOfLacking(infos, found)
	return infos, append(found, repeated(infos)...), nil
}

// warnOfLacking raises the note about a missing marker where the folder's writer makes markers.
func warnOfLacking(infos []Info, found []finding.Finding) {
	if !slices.ContainsFunc(infos, func(i Info) bool { return i.Marker != nil }) {
		return
	}
	placed := map[string]bool{}
	for _, i := range infos {
		placed[i.Path] = i.Epoch != nil || i.Step != nil
	}
	for i := range found {
		if found[i].Code == "checkpoint_no_marker" && placed[found[i].Where.Path] {
			found[i].Severity = finding.Warning
			found[i].What += ", and others of the folder have one"
			found[i].Remedy = "do not resume from it: its writer was stopped, or it was put there by something else"
		}
	}
}

// repeated finds a checkpoint whose bytes are those of an earlier one although it is said to be of another place in the
// training: a copy, or weights that do not change. Two names for one place, such as best and last, are honest.
func repeated(infos []Info) []finding.Finding {
	var found []finding.Finding
	earlier := map[string]Info{}
	for _, i := range slices.Backward(infos) { // the oldest first
		first, seen := earlier[i.SHA256]
		if !seen {
			earlier[i.SHA256] = i
			continue
		}
		if i.SHA256 == "" || i.Bytes == 0 || !elsewhere(first, i) {
			continue
		}
		found = append(found, finding.Finding{
			Code: "checkpoint_repeated", Severity: finding.Warning, Where: &finding.Where{Path: i.Path},
			What:     "it has the very bytes of " + filepath.Base(first.Path),
			Expected: "weights that differ from one epoch to the next", Remedy: "one of the two is a copy, or nothing was trained between them: see what writes it",
		})
	}
	return found
}

// elsewhere says whether two files claim to be of different epochs or steps.
func elsewhere(a, b Info) bool {
	return a.Epoch != nil && b.Epoch != nil && *a.Epoch != *b.Epoch || a.Step != nil && b.Step != nil && *a.Step != *b.Step
}

// candidates are the files that may be checkpoints, the last by name first, and the markers that stand alone.
func candidates(dir string, entries []os.DirEntry) ([]string, []finding.Finding) {
	var names []string
	var found []finding.Finding
	present := map[string]bool{}
	for _, entry := range entries {
		present[entry.Name()] = true
	}
	for i := len(entries) - 1; i >= 0; i-- { // ReadDir sorts by name
		name := entries[i].Name()
		if of, ok := strings.CutSuffix(name, markerSuffix); ok {
			if !present[of] {
				found = append(found, finding.Finding{
					Code: "checkpoint_marker_orphan", Severity: finding.Warning, What: "the marker's checkpoint is gone",
					Where: &finding.Where{Path: filepath.Join(dir, name)}, Expected: of, Remedy: "remove the marker together with the file when old checkpoints are pruned",
				})
			}
			continue
		}
		if regular(dir, entries[i]) && !temporary(name) && !notCheckpoints[strings.ToLower(filepath.Ext(name))] {
			names = append(names, name)
		}
	}
	return names, found
}

// regular also follows links: "latest.pt" is often one.
func regular(dir string, entry os.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	stat, err := os.Stat(filepath.Join(dir, entry.Name()))
	return err == nil && stat.Mode().IsRegular()
}

// temporary says whether a name is one that writers rename when they are done.
func temporary(name string) bool {
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, ".") || strings.HasSuffix(lower, "~") || strings.Contains(lower, ".tmp") {
		return true
	}
	switch filepath.Ext(lower) {
	case ".part", ".partial", ".temp", ".lock", ".incomplete":
		return true
	}
	return false
}

// newer orders by epoch, step and time; what does not say its epoch comes last.
func newer(a, b Info) bool {
	if (a.Epoch == nil) != (b.Epoch == nil) {
		return a.Epoch != nil
	}
	if a.Epoch != nil && *a.Epoch != *b.Epoch {
		return *a.Epoch > *b.Epoch
	}
	if (a.Step == nil) != (b.Step == nil) {
		return a.Step != nil
	}
	if a.Step != nil && *a.Step != *b.Step {
		return *a.Step > *b.Step
	}
	if !a.ModTime.Equal(b.ModTime) {
		return a.ModTime.After(b.ModTime)
	}
	return a.Path < b.Path
}
