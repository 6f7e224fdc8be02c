//go:build !windows

package rundir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// syncDir makes a rename in dir durable. Some network file systems can't sync a folder and say so; they order renames
// themselves.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// inode is the file's number in its file system.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}
