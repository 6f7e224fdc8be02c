package dataset

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
)

// atomicFile is a file that appears under its name only when it is complete. It streams, unlike rundir.WriteFile, since
// parts and id lists may be larger than memory.
type atomicFile struct {
	path string
	file *os.File
	w    *bufio.Writer
	sum  hash.Hash
	done bool
}

func createAtomic(path string) (*atomicFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*") // the name that rundir.CleanTemps clears after a crash
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &atomicFile{path: path, file: file, w: bufio.NewWriterSize(file, 64<<10), sum: sha256.New()}, nil
}

func (a *atomicFile) Write(b []byte) (int, error) {
	a.sum.Write(b)
	return a.w.Write(b)
}

// sha256 is the hash of what was written so far.
func (a *atomicFile) sha256() string { return "sha256:" + hex.EncodeToString(a.sum.Sum(nil)) }

// commit makes the file durable, then renames it into place.
func (a *atomicFile) commit() error {
	err := a.w.Flush()
	if err == nil {
		err = a.file.Chmod(0o644)
	}
	if err == nil {
		err = a.file.Sync()
	}
	if closed := a.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(a.file.Name(), a.path)
	}
	a.done = true
	if err != nil {
		os.Remove(a.file.Name())
		return fmt.Errorf("write %s: %w", a.path, err)
	}
	if dir, err := os.Open(filepath.Dir(a.path)); err == nil {
		dir.Sync() // not every system can; the rename itself has succeeded
		dir.Close()
	}
	return nil
}

// abandon removes the file where commit was not reached.
func (a *atomicFile) abandon() {
	if a != nil && !a.done {
		a.file.Close()
		os.Remove(a.file.Name())
		a.done = true
	}
}
