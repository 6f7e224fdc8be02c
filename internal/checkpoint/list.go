package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
// Findings are those of Inspect, checkpoint_marker_orphan (warning: a marker whose file is gone) and
// checkpoint_list_cut (note).
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
	return infos, found, nil
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
