package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/trainwright/trainwright/internal/rundir"
)

// LeftFile is what a job left in the folders that its request watches.
const LeftFile = "left.json"

// Left is left.json: the regular files in the watched folders as they were when the last process of the job was gone and its
// exit record was not there yet. A file that is edited later differs from its hash here, whatever its time says. Links are
// not followed and not listed, nor are the job's own folder and rundir.SkippedDirs.
type Left struct {
	// At is when the listing began.
	At time.Time `json:"at"`
	// Folders are the request's.
	Folders []string `json:"folders"`
	// HashBytes bounds what is hashed, all files together, the newest first; beyond it files have no hash.
	HashBytes int64 `json:"hash_limit_bytes"`
	// FileLimit bounds the files of one folder; Truncated says that there were more.
	FileLimit int  `json:"file_limit"`
	Truncated bool `json:"truncated"`
	// Skipped counts files whose names hold control characters (and, where runner.sh lists, a backslash): they are not listed.
	Skipped int `json:"skipped"`
	// Note says what could not be listed.
	Note string `json:"note,omitempty"`
	// Files are sorted by path, bytewise.
	Files []LeftEntry `json:"files"`
}

// LeftEntry is one file. Path is absolute, below the folder as the request names it. ModTime has the precision of the system,
// or whole seconds. SHA256 is "sha256:<64 hex>", empty where the file was not hashed.
type LeftEntry struct {
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	ModTime time.Time `json:"mod_time"`
	SHA256  string    `json:"sha256"`
}

// The limits of a listing. A second of hashing is what a job's end may be put off by.
const (
	leftHashBytes = 256 << 20
	leftFiles     = 20_000
)

// ReadLeft reads what the job left; nil where its request watches nothing, or where the list could not be written.
func ReadLeft(folder string) (*Left, error) { return readRecord[Left](folder, LeftFile) }

// WriteLeft lists the folders that the request watches. Whoever writes the exit record calls it just before, and writes the
// record whatever it answers, with the hash of the list ("" without one). A list that something else has put there does not
// stay.
func WriteLeft(folder string, request Request, now time.Time) (sha string, err error) {
	if len(request.Watch) == 0 {
		return "", nil
	}
	path := filepath.Join(folder, LeftFile)
	_ = os.Remove(path) // it is replaced anyhow, unless the disk is full
	data, err := rundir.MarshalStable(list(folder, request.Watch, now))
	if err == nil {
		err = rundir.WriteFile(path, data)
	}
	if err != nil {
		return "", fmt.Errorf("keep what the job left: %w", err)
	}
	return rundir.HashBytes(data), nil
}

// list lists the folders.
func list(folder string, folders []string, now time.Time) Left {
	left := Left{At: now.UTC(), Folders: folders, HashBytes: leftHashBytes, FileLimit: leftFiles, Files: []LeftEntry{}}
	var notes []string
	own := resolved(folder)
	for _, root := range folders {
		// Hashed is only what is chosen below; the limit of one byte keeps the inventory from it.
		entries, findings, err := rundir.Tree(root, rundir.TreeOptions{MaxFiles: leftFiles, MaxHashBytes: 1})
		if err != nil {
			notes = append(notes, err.Error())
		}
		for _, f := range findings {
			switch f.Code {
			case "tree_cut":
				left.Truncated = true
			case "file_unreadable":
				notes = append(notes, f.Where.Path+": "+f.What)
			}
		}
		real := resolved(root)
		for _, e := range entries {
			name := filepath.FromSlash(e.Path)
			switch {
			case rundir.Inside(own, filepath.Join(real, name)):
			case strings.ContainsFunc(name, unicode.IsControl):
				left.Skipped++
			default:
				left.Files = append(left.Files, LeftEntry{Path: filepath.Join(root, name), Bytes: e.Size, ModTime: e.ModTime})
			}
		}
	}
	left.once()
	notes = append(notes, left.hash()...)
	left.Note = clipNote(strings.Join(notes, "; "))
	return left
}

// once sorts the files and drops those that two folders hold.
func (l *Left) once() {
	slices.SortFunc(l.Files, func(a, b LeftEntry) int { return strings.Compare(a.Path, b.Path) })
	l.Files = slices.CompactFunc(l.Files, func(a, b LeftEntry) bool { return a.Path == b.Path })
}

// hash hashes the newest files, as far as the limit reaches, and answers what could not be read.
func (l *Left) hash() (notes []string) {
	newest := make([]*LeftEntry, len(l.Files))
	for i := range l.Files {
		newest[i] = &l.Files[i]
	}
	slices.SortStableFunc(newest, func(a, b *LeftEntry) int { return b.ModTime.Compare(a.ModTime) })
	room := l.HashBytes
	for _, file := range newest {
		if file.Bytes > room {
			continue
		}
		room -= file.Bytes
		sha, _, err := rundir.HashFile(file.Path)
		if err != nil {
			notes = append(notes, err.Error())
			continue
		}
		file.SHA256 = sha
	}
	return notes
}

// resolved is the path without links, or as it is where it can't be resolved.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// noteShown bounds the note in bytes.
const noteShown = 1000

func clipNote(text string) string {
	if len(text) <= noteShown {
		return text
	}
	return strings.ToValidUTF8(text[:noteShown], "") + "…"
}
