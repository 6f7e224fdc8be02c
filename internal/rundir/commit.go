package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// WriteFile commits data as the content of path: a temporary file in the same folder, fsync, rename, fsync of the folder.
// Whoever reads path sees the old content or the new one, also after a crash at any point. Folders that are missing are
// made. The file gets mode 0644, or keeps the one it has. Every error names the path.
//
// It is the one way in which trainwright commits a file; a link at path is replaced, not followed.
func WriteFile(path string, data []byte) error {
	if err := MayWrite(); err != nil {
		return err
	}
	faults := newFaults(path)
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	faults.at(beforeTemp)
	temp, err := writeTemp(path, data)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	faults.at(beforeRename)
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp))
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	faults.committed()
	faults.at(afterRename)
	return nil
}

// The points of a commit at which the build tag faults can end the process.
const (
	beforeTemp   = "before_temp"
	beforeRename = "before_rename"
	afterRename  = "after_rename"
)

// writeTemp leaves data, on disk, in a temporary file beside path, and nothing when it fails.
func writeTemp(path string, data []byte) (temp string, err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	name := filepath.Base(path)
	name = name[:min(len(name), 200)] // a name has at most 255 bytes, and the mark needs some
	f, err := os.CreateTemp(filepath.Dir(path), "."+name+tempMark+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// makeDir makes a folder and those above it, each of them on disk when it returns.
func makeDir(dir string) error {
	if isDir(dir) {
		return nil
	}
	if err := MayWrite(); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !(errors.Is(err, fs.ErrExist) && isDir(dir)) {
		return err
	}
	return syncDir(parent)
}

const tempMark = ".tmp-"

var tempName = regexp.MustCompile(`^\..+\.tmp-[0-9]+$`)

// CleanTemps removes from a folder the temporary files of commits that a crash cut short: those whose name is
// ".<name>.tmp-<digits>" and which are older than olderThan. It returns their names. A folder that is missing is clean.
func CleanTemps(dir string, olderThan time.Duration, now time.Time) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clean %s: %w", dir, err)
	}
	var removed []string
	var failed error
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.Contains(e.Name(), tempMark) || !tempName.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < olderThan {
			continue // gone already, or still being written
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			failed = errors.Join(failed, fmt.Errorf("clean %s: %w", dir, err))
			continue
		}
		removed = append(removed, e.Name())
	}
	return removed, failed
}
