package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// lookEvery is the time between two looks at whether skills have changed. A look takes the names, sizes and times of all
// their files.
const lookEvery = time.Second

// watched is what a library follows, and what it was when it was last looked at.
type watched struct {
	roots  []Root
	now    func() time.Time
	looked time.Time
	stamp  string
}

// Live is a library as NewLibrary makes it, that is loaded when it is first used and again when its places have changed.
func Live(now func() time.Time, roots ...Root) *Library {
	return &Library{watched: &watched{roots: roots, now: now}}
}

// current is what is loaded, loaded anew if it has changed.
func (l *Library) current() (map[string]*Skill, []finding.Finding) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.watched; w != nil && (w.looked.IsZero() || w.now().Sub(w.looked) >= lookEvery) {
		l.look()
	}
	return l.skills, l.findings
}

// refresh looks at once, and says whether something is loaded now that was not before.
func (l *Library) refresh() bool {
	if l == nil || l.watched == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.look()
}

// look loads the skills if they are not what they were. The stamp is taken before: what changes while they are loaded is
// seen by the next look.
func (l *Library) look() bool {
	w := l.watched
	w.looked = w.now()
	stamp := stampOf(w.roots)
	if stamp == w.stamp {
		return false
	}
	w.stamp = stamp
	l.skills, l.findings = loadRoots(w.roots)
	return true
}

// stampOf sums up the names, sizes and times of what roots hold.
func stampOf(roots []Root) string {
	sum := sha256.New()
	for _, root := range roots {
		fmt.Fprintln(sum, "root", root.Label)
		if root.Fixed {
			continue
		}
		entries, err := fs.ReadDir(root.FS, root.Dir)
		if err != nil {
			fmt.Fprintln(sum, reason(err))
			continue
		}
		for _, entry := range entries {
			if mayBeSkill(entry) {
				stampSkill(sum, root.FS, path.Join(root.Dir, entry.Name()))
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// stampSkill writes down one folder, a link to one too, as far as a skill's files are looked at.
func stampSkill(sum io.Writer, fsys fs.FS, dir string) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return
	}
	seen := 0
	err = fs.WalkDir(sub, ".", func(name string, entry fs.DirEntry, err error) error {
		if seen++; seen > 2*MaxFiles {
			return errEnough
		}
		switch {
		case err != nil:
			fmt.Fprintln(sum, dir, name, reason(err))
			return nil
		case noPart(name) && entry.IsDir():
			return fs.SkipDir
		case noPart(name) || entry.IsDir():
			return nil
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = fs.Stat(sub, name)
		}
		if err != nil {
			fmt.Fprintln(sum, dir, name, reason(err))
			return nil
		}
		fmt.Fprintln(sum, dir, name, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		fmt.Fprintln(sum, dir, reason(err))
	}
}

// noPart says of a file or folder that it is no part of a skill: hidden (.git, .DS_Store) or compiled (__pycache__).
func noPart(name string) bool {
	base := path.Base(name)
	return name != "." && (strings.HasPrefix(base, ".") || base == "__pycache__")
}

// mayBeSkill says whether an entry of a root can be a skill's folder; files such as a README lie beside them.
func mayBeSkill(entry fs.DirEntry) bool {
	return !strings.HasPrefix(entry.Name(), ".") && entry.Type()&^(fs.ModeDir|fs.ModeSymlink) == 0 && entry.Type() != 0
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
