package skill

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// confined is a folder as a file system whose links can't leave it: every path is opened with os.Root. Only regular files
// and folders are opened, since opening a pipe would wait for its writer.
type confined string

var errIrregular = errors.New("it is neither a file nor a folder")

// Open opens a file or folder inside the root.
func (c confined) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(c))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name) // before it is opened: opening some devices does something
	if err != nil {
		return nil, err
	}
	if !fileOrFolder(info) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errIrregular}
	}
	file, err := root.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err != nil || !fileOrFolder(info) { // it was another one a moment ago
		_ = file.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: errIrregular}
	}
	return file, nil
}

func fileOrFolder(info fs.FileInfo) bool { return info.IsDir() || info.Mode().IsRegular() }

// Stat follows links inside the root.
func (c confined) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(c))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(name)
}

// gathered is a folder of skills as a file system, in which every skill is confined to its own folder, wherever a link to
// it leads. only, where it is not empty, is the one skill that is shown.
type gathered struct{ folder, only string }

// Open opens the folder itself, a skill's folder or what is in it.
func (g gathered) Open(name string) (fs.File, error) {
	if name == "." {
		return confined(g.folder).Open(".")
	}
	skill, inner, err := g.inner("open", name)
	if err != nil {
		return nil, err
	}
	return skill.Open(inner)
}

// Stat follows a link to a skill's folder, and links inside it.
func (g gathered) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return confined(g.folder).Stat(".")
	}
	skill, inner, err := g.inner("stat", name)
	if err != nil {
		return nil, err
	}
	return skill.Stat(inner)
}

// ReadDir lists the skills' folders, or a folder of a skill.
func (g gathered) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." || g.only == "" {
		file, err := g.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readDir(name, file)
	}
	info, err := os.Stat(filepath.Join(g.folder, g.only))
	if err != nil {
		return nil, err
	}
	return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
}

func readDir(name string, file fs.File) ([]fs.DirEntry, error) {
	folder, ok := file.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	entries, err := folder.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (g gathered) inner(op, name string) (confined, string, error) {
	first, rest, below := strings.Cut(name, "/")
	if !fs.ValidPath(name) || g.only != "" && first != g.only {
		return "", "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	folder, err := filepath.EvalSymlinks(filepath.Join(g.folder, first))
	if err != nil {
		return "", "", err
	}
	if !below {
		rest = "."
	}
	return confined(folder), rest, nil
}
