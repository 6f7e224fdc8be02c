package resources

import (
	"errors"
	"fmt"
	"github.com/trainwright/trainwright/internal/redact"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// opened is a file, or a folder, that was reached from a folder without leaving it. name is its path there without links.
type opened struct {
	file   *os.File // nil of a folder
	folder *os.Root // nil of a file
	info   fs.FileInfo
	name   string
	ignore *ignoring
}

func (o opened) close() {
	if o.file != nil {
		_ = o.file.Close()
	}
	if o.folder != nil {
		_ = o.folder.Close()
	}
}

// errHidden is the cause of a file that is there and is not shown.
type errHidden string

func (e errHidden) Error() string { return string(e) }

// errMoved is the cause of a file that became another one while it was opened.
var errMoved = errors.New("it became another one while it was opened")

// mostLinks is how many symbolic links a path may lead through.
const mostLinks = 8

// openInside opens a file or folder below dir. It goes from folder to folder by descriptors and looks at every name on the
// way: a link is followed by name from the start, so that the rules hold for what it leads to, and what is opened is what
// was looked at, whatever others do to the tree meanwhile. ignore, which may be nil, is what git ignores.
func openInside(dir, name string, ignore func() *ignoring) (opened, error) {
	for links := 0; ; links++ {
		o, target, err := follow(dir, name, ignore())
		if err != nil || target == "" {
			return o, err
		}
		if links == mostLinks || !fs.ValidPath(target) {
			return opened{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist} // it leads out, or in a circle
		}
		name = target
	}
}

// follow goes down a path to its end or to the first link in it, whose target in dir it gives.
func follow(dir, name string, ignore *ignoring) (o opened, target string, err error) {
	at, err := os.OpenRoot(dir)
	if err != nil {
		return opened{}, "", err
	}
	defer func() {
		if o.folder != at {
			_ = at.Close()
		}
	}()
	if ignore != nil {
		ignore.enter(at, nil)
	}
	if name == "." {
		info, err := at.Stat(".")
		return opened{folder: at, info: info, name: ".", ignore: ignore}, "", err
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		here := parts[:i+1]
		info, err := look(at, part)
		if err != nil {
			return opened{}, "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			link, err := at.Readlink(part)
			if err != nil {
				return opened{}, "", orMoved(at, part, info, err)
			}
			return opened{}, path.Join(leadsTo(dir, path.Join(parts[:i]...), link), path.Join(parts[i+1:]...)), nil
		}
		if ignore != nil && ignore.match(here, info.IsDir()) {
			return opened{}, "", errHidden("git ignores it")
		}
		if !info.IsDir() {
			if i < len(parts)-1 || !info.Mode().IsRegular() {
				return opened{}, "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			file, err := openFile(at, part, info)
			return opened{file: file, info: info, name: name, ignore: ignore}, "", err
		}
		below, err := openFolder(at, part, info)
		if err != nil {
			return opened{}, "", err
		}
		_ = at.Close()
		at = below
		if ignore != nil {
			ignore.enter(at, here)
		}
		if i == len(parts)-1 {
			return opened{folder: at, info: info, name: name, ignore: ignore}, "", nil
		}
	}
	return opened{}, "", fs.ErrNotExist // not reached: a path has a last part
}

// leadsTo is the target of a link in a folder below dir, as a path in dir; of one that leads out it is no valid path.
func leadsTo(dir, folder, link string) string {
	if !filepath.IsAbs(link) && !strings.HasPrefix(link, "/") {
		return path.Join(folder, filepath.ToSlash(link))
	}
	below, err := filepath.Rel(dir, link)
	if err != nil || !filepath.IsLocal(below) {
		return outside
	}
	return filepath.ToSlash(below)
}

// outside is a path that is valid in no folder.
const outside = ".."

// look tells what a name in a folder is, without following a link. Names that may hold secrets are not even looked for.
func look(at *os.Root, name string) (fs.FileInfo, error) {
	if redact.SecretName(name) {
		return nil, errHidden("files and folders of this name may hold secrets")
	}
	info, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if namesFold && !spelledSo(at, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return info, nil
}

// namesFold says that the system finds a file under other spellings of its name too (DATA for data, GIT~1 for .git), so
// that rules for names hold for those in the folder only.
const namesFold = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

// spelledSo says whether a folder lists a name exactly as it is written.
func spelledSo(at *os.Root, name string) bool {
	folder, err := at.Open(".")
	if err != nil {
		return false
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	return err == nil && slices.Contains(names, name)
}

// openFile opens the regular file that was looked at. A named pipe or a link that took its place is closed again.
func openFile(at *os.Root, name string, looked fs.FileInfo) (*os.File, error) {
	file, err := at.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, orMoved(at, name, looked, err)
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, looked)) {
		err = moved(name)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// openFolder opens the folder that was looked at.
func openFolder(at *os.Root, name string, looked fs.FileInfo) (*os.Root, error) {
	below, err := at.OpenRoot(name)
	if err != nil {
		return nil, orMoved(at, name, looked, err)
	}
	info, err := below.Stat(".")
	if err == nil && !os.SameFile(info, looked) {
		err = moved(name)
	}
	if err != nil {
		_ = below.Close()
		return nil, err
	}
	return below, nil
}

// notThatKind is what opening says of a name that is no link, no folder or no file any more.
var notThatKind = []error{syscall.ENOTDIR, syscall.ELOOP, syscall.ENXIO, syscall.EINVAL}

// orMoved is err, or that the name is another file's now, or nobody's, which is why it could not be opened.
func orMoved(at *os.Root, name string, looked fs.FileInfo, err error) error {
	if slices.ContainsFunc(notThatKind, func(kind error) bool { return errors.Is(err, kind) }) {
		return moved(name)
	}
	if now, gone := at.Lstat(name); gone != nil || !os.SameFile(now, looked) {
		return moved(name)
	}
	return err
}

func moved(name string) error { return fmt.Errorf("%s: %w: %w", name, errMoved, fs.ErrNotExist) }

// readFile answers an address with a file below dir.
func (a address) readFile(dir, name string, ignore func() *ignoring, tail bool) (Content, error) {
	o, err := openInside(dir, name, ignore)
	if err != nil {
		return Content{}, a.explain(err)
	}
	defer o.close()
	return a.readOpened(o, tail)
}

func (a address) readOpened(o opened, tail bool) (Content, error) {
	if o.file == nil {
		return Content{}, notFound(a.uri, "it is a folder; name a file in it")
	}
	info, err := o.file.Stat() // its size now
	if err != nil {
		return Content{}, orNotFound(a.uri, err)
	}
	c, err := a.read(stored{ReaderAt: o.file, name: o.name, size: info.Size(), modTime: info.ModTime(), tail: tail})
	if err != nil {
		return Content{}, orNotFound(a.uri, err)
	}
	return c, nil
}

// explain says why a file is not shown.
func (a address) explain(err error) error {
	var hidden errHidden
	if errors.As(err, &hidden) {
		return notFound(a.uri, "it is not served: "+hidden.Error())
	}
	return orNotFound(a.uri, err)
}

// showAll is the rule of folders that are trainwright's own: git has no say in them.
func showAll() *ignoring { return nil }
