package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Move renames a file or folder, also onto another file system: there it is copied whole, with its times, before the original
// goes. The folder that it moves into must be there; nothing may be at to yet.
func Move(from, to string) error {
	if err := MayWrite(); err != nil {
		return err
	}
	renamed := os.Rename(from, to)
	if renamed == nil {
		return nil
	}
	if _, err := os.Lstat(to); err == nil {
		return renamed
	}
	if err := copyTree(from, to); err != nil {
		return errors.Join(renamed, err, os.RemoveAll(to))
	}
	return os.RemoveAll(from)
}

// copyTree copies files, folders and links, with times and permissions.
func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case info.IsDir():
		if err := copyFolder(from, to, info); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		if err := copyFile(from, to, info); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is neither a file, a folder nor a link", from)
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

func copyFolder(from, to string, info os.FileInfo) error {
	if err := os.Mkdir(to, info.Mode().Perm()|0o700); err != nil {
		return err
	}
	children, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := copyTree(filepath.Join(from, child.Name()), filepath.Join(to, child.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, info os.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
