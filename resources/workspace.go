package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/trainwright/trainwright/internal/redact"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// folderPage is how many entries of a folder come at once, and folderMost how many may.
	folderPage, folderMost = 200, 1000
	// folderRead is how many entries of a folder are looked at.
	folderRead = 20_000
)

// The kinds of entries of a folder.
const (
	kindFile   = "file"
	kindFolder = "folder"
	kindLink   = "link" // which leads out of the workspace, or nowhere
)

// entry is one entry of a folder. URI is given where it is not the folder's with the name behind it.
type entry struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind"`
	Bytes    *int64     `json:"bytes,omitempty"`
	Modified *time.Time `json:"mtime,omitempty"`
	URI      string     `json:"uri,omitempty"`
}

// listing is a folder as it is read. LeftOut counts what is not shown: ignored, secret, or neither file nor folder.
type listing struct {
	Folder  string  `json:"folder"`
	URI     string  `json:"uri"`
	Entries []entry `json:"entries"`
	Total   int     `json:"total"`
	LeftOut int     `json:"left_out,omitempty"`
	Note    string  `json:"note,omitempty"`
	Rest    string  `json:"rest,omitempty"`
}

// readWorkspace answers workspace:///<path>: a file of the workspace, or the list of a folder's entries.
func (s *Source) readWorkspace(a address) (Content, error) {
	o, err := openInside(s.Roots.Workspace(), a.path, s.ignored)
	if err != nil {
		return Content{}, a.explain(err)
	}
	defer o.close()
	if o.file != nil {
		return a.readOpened(o, false)
	}
	return s.readFolder(a, o)
}

// ignored is what git ignores in the workspace.
func (s *Source) ignored() *ignoring { return ignoringAt(s.Roots.Workspace()) }

// readFolder lists a folder; the range of its address counts entries.
func (s *Source) readFolder(a address, o opened) (Content, error) {
	all, leftOut, more, err := s.entries(o)
	if err != nil {
		return Content{}, orNotFound(a.uri, err)
	}
	from, size := int(min(max(0, a.part.offset), int64(len(all)))), folderPage
	if a.part.limit > 0 {
		size = int(min(a.part.limit, folderMost))
	}
	to := min(len(all), from+size)
	l := listing{Folder: a.path, URI: strings.TrimSuffix("workspace:///"+escaped(a.path), ".") + "/", Entries: all[from:to], Total: len(all), LeftOut: leftOut}
	if a.path == "." {
		l.URI = "workspace:///"
	}
	if leftOut > 0 {
		l.Note = fmt.Sprintf("%d entries are ignored by git, may hold secrets, or are neither file nor folder", leftOut)
	}
	if more {
		l.Note = strings.TrimPrefix(l.Note+fmt.Sprintf("; the folder has more than %d entries, the rest is not listed", folderRead), "; ")
	}
	if to < len(all) {
		l.Rest = fmt.Sprintf("%s?offset=%d", a.base, to)
	}
	encoded, err := encode(l)
	if err != nil {
		return Content{}, fmt.Errorf("list %s: %w", a.uri, err)
	}
	c := Content{URI: a.uri, MIME: mimeJSON, Text: encoded, Shown: int64(len(encoded)), Total: int64(len(encoded)), ModTime: o.info.ModTime()}
	if l.Rest != "" {
		c.Cut, c.Rest = true, l.Rest
		c.Note = fmt.Sprintf("[cut: entries %d to %d of %d are shown; go on with %s]", from, to, len(all), l.Rest)
	}
	return c, nil
}

// entries lists what may be seen of a folder, by name.
func (s *Source) entries(o opened) (shown []entry, leftOut int, more bool, err error) {
	folder, err := o.folder.Open(".")
	if err != nil {
		return nil, 0, false, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(folderRead)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, false, err
	}
	if len(names) == folderRead {
		next, _ := folder.Readdirnames(1)
		more = len(next) > 0
	}
	slices.Sort(names)
	shown = []entry{}
	for _, name := range names {
		if one, ok := s.entry(o, name); ok {
			shown = append(shown, one)
		} else {
			leftOut++
		}
	}
	return shown, leftOut, more, nil
}

// entry tells of one name in a folder; not ok where it is not to be seen.
func (s *Source) entry(o opened, name string) (entry, bool) {
	here := path.Join(o.name, name)
	if redact.SecretName(name) || !fs.ValidPath(here) || strings.Contains(name, `\`) {
		return entry{}, false
	}
	info, err := o.folder.Lstat(name)
	if err != nil {
		return entry{}, false
	}
	e := entry{Name: name}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := openInside(s.Roots.Workspace(), here, s.ignored)
		var hidden errHidden
		switch {
		case errors.As(err, &hidden):
			return entry{}, false
		case err != nil:
			e.Kind = kindLink
			return e, true
		}
		target.close()
		info = target.info
	} else if o.ignore.match(strings.Split(here, "/"), info.IsDir()) {
		return entry{}, false
	}
	switch {
	case info.IsDir():
		e.Kind = kindFolder
	case info.Mode().IsRegular():
		size := info.Size()
		e.Kind, e.Bytes = kindFile, &size
	default:
		return entry{}, false
	}
	modified := info.ModTime().UTC().Truncate(time.Second)
	e.Modified = &modified
	if written := escaped(name); written != name {
		e.URI = "workspace:///" + escaped(here)
	}
	return e, true
}

// encode is JSON that a person can read: one entry on a line would be too long for folders, and none too dense.
func encode(value any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return b.String(), nil
}

// workspaceItem is the top folder in the list.
func workspaceItem() Item {
	return Item{URI: "workspace:///", Name: "workspace", Title: "workspace", Description: "The workspace's files and folders, without what git ignores and what may hold secrets", MIME: mimeJSON, Size: -1}
}
