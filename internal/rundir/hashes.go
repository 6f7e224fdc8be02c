package rundir

import (
	"io/fs"
	"os"
	"path/filepath"
)

// cachedFrom is the size in bytes from which a hash is remembered; smaller files are hashed again in a few milliseconds.
const cachedFrom = 8 << 20

// hashes answers what files of a run hash to. Large ones are compared by size, modification time and inode with what
// .hashes.json remembers; a change that keeps all three is not seen.
type hashes struct {
	dir     Dir
	known   map[string]hashed
	changed bool
}

// hashed is one large file as it was when it was read.
type hashed struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	MTime  int64  `json:"mtime_ns"`
	Inode  uint64 `json:"inode"`
}

func (d Dir) hashCachePath() string { return filepath.Join(d.Path, ".hashes.json") }

// loadHashes never fails: a cache that can't be read is an empty one.
func (d Dir) loadHashes() *hashes {
	h := &hashes{dir: d, known: map[string]hashed{}}
	if err := ReadJSON(d.hashCachePath(), &h.known); err != nil || h.known == nil {
		h.known = map[string]hashed{}
	}
	return h
}

// save keeps what was learnt. A folder that can't be written to costs time later, and nothing else.
func (h *hashes) save() {
	if h.changed {
		_ = WriteJSON(h.dir.hashCachePath(), h.known)
	}
}

// of returns the sha256 of a path of the run.
func (h *hashes) of(path string) (string, error) {
	abs := h.dir.Abs(path)
	info, err := os.Stat(abs)
	if err != nil {
		return "", err
	}
	if info.Size() <= cachedFrom || !info.Mode().IsRegular() {
		sha, _, err := HashFile(abs)
		return sha, err
	}
	if known, ok := h.known[path]; ok && known == seen(info, known.SHA256) {
		return known.SHA256, nil
	}
	sha, _, err := HashFile(abs)
	if err != nil {
		return "", err
	}
	if after, err := os.Stat(abs); err == nil && seen(after, sha) == seen(info, sha) { // else it is being written
		h.known[path] = seen(info, sha)
		h.changed = true
	}
	return sha, nil
}

func seen(info fs.FileInfo, sha string) hashed {
	return hashed{SHA256: sha, Bytes: info.Size(), MTime: info.ModTime().UnixNano(), Inode: inode(info)}
}

// Abs is the absolute path of a path as records name it: relative to the run, or absolute already.
func (d Dir) Abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.Path, filepath.FromSlash(path))
}

// Hashes returns the sha256 of each path, keyed as given, for the inputs and outputs of a Record. Large files that did
// not change since they were last hashed are not read again.
func (d Dir) Hashes(paths []string) (map[string]string, error) {
	h := d.loadHashes()
	defer h.save()
	found := make(map[string]string, len(paths))
	for _, path := range paths {
		sha, err := h.of(path)
		if err != nil {
			return nil, err
		}
		found[path] = sha
	}
	return found, nil
}
