package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// maxConfig is more than any configuration holds.
const maxConfig = 64 << 20

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// config is a configuration that was read.
type config struct {
	document
	client Client
	format format
	at     spot
	path   string
	data   []byte // without the byte order mark
	mark   []byte // the byte order mark, if there was one
	exists bool
	link   bool // the client's path is a link to it
	mode   fs.FileMode
}

// byteOrderMark begins text files of some editors on Windows.
var byteOrderMark = []byte("\ufeff")

// open reads the client's configuration: of several files the one that has the entry, else the first that is there.
func (c Client) open(at Target, name string) (*config, error) {
	if !serverName.MatchString(name) {
		return nil, refuse("client_server_name_invalid", fmt.Sprintf("%q can't be the name of a server", name), "", "1 to 64 of A-Z, a-z, 0-9, - and _", "send another --name")
	}
	var chosen *config
	for _, path := range c.files(at.System, at.Scope, at.Project) {
		file, err := c.load(path, at, name)
		if err != nil {
			return nil, err
		}
		there, _ := file.entry()
		if chosen == nil || there != nil || !chosen.exists {
			chosen = file
		}
		if there != nil {
			break
		}
	}
	return chosen, nil
}

func (c Client) load(path string, at Target, name string) (*config, error) {
	real, err := follow(path)
	if err != nil {
		return nil, err
	}
	if at.Scope == Project {
		if err := inside(at.Project, real); err != nil {
			return nil, err
		}
	}
	data, info, err := read(real)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f := &config{client: c, format: c.format, at: c.spot, path: real, exists: err == nil, link: real != path}
	f.at.name = name
	if info != nil {
		f.mode = info.Mode().Perm()
	}
	f.data = bytes.TrimPrefix(data, byteOrderMark)
	f.mark = data[:len(data)-len(f.data)]
	if f.blank() {
		f.document = nothing{}
		return f, nil
	}
	if err := shallow(f.data); err != nil {
		return nil, f.refuse(err)
	}
	if f.document, err = f.format.parse(f.data, f.at); err != nil {
		return nil, f.refuse(err)
	}
	return f, nil
}

// shallow refuses a text that is nested more deeply than encoding/json reads: parsers that call themselves for each level
// would run out of stack. Brackets in texts count too; a configuration has few.
func shallow(data []byte) error {
	const deepest = 10000
	depth := 0
	for i, b := range data {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > deepest {
			line, column := place(data, i)
			return &fault{what: fmt.Sprintf("more than %d levels", deepest), line: line, column: column}
		}
	}
	return nil
}

// nothing is the document of a file that is empty or not there.
type nothing struct{}

func (nothing) entry() (any, verbatim)      { return nil, nil }
func (nothing) put(any) ([]byte, error)     { return nil, nil }
func (nothing) replace(any) ([]byte, error) { return nil, nil }
func (nothing) remove() ([][]byte, error)   { return nil, nil }
func (nothing) others() any                 { return nil }

func (f *config) blank() bool { return len(bytes.Trim(f.data, blanks)) == 0 }

// refuse makes the refusal of a text that can't be edited.
func (f *config) refuse(err error) error {
	var wrong *fault
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.line == 0 {
		return refuse("client_config_form", wrong.what, f.path, "an entry that can be told from the rest", "change it by hand; trainwright install --print with another --name shows an entry")
	}
	return finding.Refuse(finding.Finding{Code: "client_config_malformed", Severity: finding.Error, What: fmt.Sprintf("%s can't read it: %v", f.client.Title, wrong),
		Where: &finding.Where{Path: f.path, Line: wrong.line}, Expected: "a configuration that parses", Remedy: "correct the file; nothing was changed"})
}

// follow gives the file that a link leads to, so that the link stays one.
func follow(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("look at the configuration: %w", err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", refuse("client_config_irregular", "the configuration is a link that leads nowhere", path, "a file", "repair or remove the link")
	}
	return real, nil
}

// inside refuses a project's configuration that a link has moved out of the project: who installs for a project does not
// mean another one's files.
func inside(project, path string) error {
	root, err := filepath.EvalSymlinks(project)
	if err != nil {
		return refuse("client_config_outside", "there is no such project folder", project, "a folder", "go into the project, or name it with --workspace")
	}
	folder := filepath.Dir(path)
	for {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
			break
		}
		if folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	if !rundir.Inside(root, folder) {
		return refuse("client_config_outside", "a link leads out of the project", path, "a file inside "+project, "replace the link by a file, or install with --user")
	}
	return nil
}

// read reads a configuration whole. Only a regular file is opened: opening a pipe would wait for its writer.
func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, denied(path, fmt.Errorf("read the configuration: %w", err))
	}
	if !info.Mode().IsRegular() {
		return nil, nil, refuse("client_config_irregular", "the configuration is not a file", path, "a file", "look at what is there; nothing was changed")
	}
	if info.Size() > maxConfig {
		return nil, nil, refuse("client_config_too_large", fmt.Sprintf("the configuration has %d bytes", info.Size()), path, "at most 64 MiB", "look at what is there; nothing was changed")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, denied(path, fmt.Errorf("read the configuration: %w", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return nil, nil, fmt.Errorf("read the configuration: %w", err)
	}
	return data, info, nil
}

// denied makes a refusal of an error that says that the user may not.
func denied(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return refuse("client_config_denied", err.Error(), path, "a file that you may read, in a folder that you may write", "run it as the user whose configuration it is; nothing was changed")
	}
	return err
}
