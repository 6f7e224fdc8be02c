package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/trainwright/trainwright/internal/rundir"
)

// Action is what a Change does to the configuration.
type Action string

// The actions. Already and Absent change nothing; Differs would, with force.
const (
	Add     Action = "add"
	Replace Action = "replace"
	Remove  Action = "remove"
	Delete  Action = "delete" // the file held nothing but the entry, in the words in which it was written
	Already Action = "already_installed"
	Differs Action = "differs"
	Absent  Action = "not_installed"
)

// BackupSuffix is what the name of a backup ends with.
const BackupSuffix = ".before-trainwright"

// Change is an edit of a configuration that was thought through and not made yet.
type Change struct {
	Action Action
	Path   string // the file, links followed
	Diff   string // the lines that change, secrets masked; for Differs those that --force would change
	before []byte
	after  []byte
	exists bool
	mode   fs.FileMode
}

// Makes reports whether Write would write.
func (c Change) Makes() bool {
	return c.Action == Add || c.Action == Replace || c.Action == Remove || c.Action == Delete
}

// Backup is the file in which Write leaves what was there; empty where nothing was, or nothing is worth keeping.
func (c Change) Backup() string {
	if !c.exists || !c.Makes() || c.Action == Delete {
		return ""
	}
	return c.Path + BackupSuffix
}

// Target is whose configuration is meant. Project is the folder of Scope Project.
type Target struct {
	System  System
	Scope   Scope
	Project string
}

// Install thinks through how the server comes into the client's configuration. An entry of its name that says something
// else is left (Differs) unless force is set. Refusals: client_server_name_invalid, client_workspace_needed,
// client_config_malformed, client_config_form, client_config_irregular, client_config_outside, client_config_read_only,
// client_config_denied, client_config_too_large.
func (c Client) Install(at Target, s Server, force bool) (Change, error) {
	if c.editor && at.Scope == Project && s.Workspace == "" {
		s.Workspace = "${workspaceFolder}" // resolved by the editor
	}
	if c.editor && s.Workspace == "" {
		return Change{}, refuse("client_workspace_needed", c.Title+" starts the servers of a user in no project's folder", "", "the folder in which runs live",
			"name it with --workspace FOLDER, or install it with --project")
	}
	file, err := c.open(at, s.Name)
	if err != nil {
		return Change{}, err
	}
	entry := c.entry(s, at.Scope)
	wanted, err := file.wanted(entry)
	if err != nil {
		return Change{}, err
	}
	there, _ := file.entry()
	switch {
	case file.blank():
		return file.change(Add, file.format.fresh(file.at, entry), wanted)
	case there == nil:
		after, err := file.put(entry)
		return file.changed(Add, after, wanted, err)
	case reflect.DeepEqual(there, wanted):
		return Change{Action: Already, Path: file.path}, nil
	}
	after, err := file.replace(entry)
	change, err := file.changed(Replace, after, wanted, err)
	if err == nil && !force {
		change.Action = Differs
	}
	return change, err
}

// Uninstall thinks through how the entry of a name goes out of the client's configuration. Where nothing else was changed
// since it came in, the file is as it was before, byte for byte. Refusals as for Install.
func (c Client) Uninstall(at Target, name string) (Change, error) {
	file, err := c.open(at, name)
	if err != nil {
		return Change{}, err
	}
	there, text := file.entry()
	if there == nil {
		return Change{Action: Absent, Path: file.path}, nil
	}
	kept, _, err := read(file.path + BackupSuffix)
	kept = bytes.TrimPrefix(kept, file.mark)
	switch {
	case err == nil && file.gives(kept, text):
		return file.change(Remove, kept, nil)
	case !file.link && bytes.Equal(file.format.fresh(file.at, text), file.data):
		return file.change(Delete, nil, nil)
	}
	candidates, err := file.remove()
	if err != nil {
		return file.changed(Remove, nil, nil, err)
	}
	after := candidates[len(candidates)-1]
	for _, candidate := range candidates {
		if file.gives(candidate, text) {
			after = candidate
			break
		}
	}
	return file.change(Remove, after, nil)
}

// gives reports whether putting the entry into a text would give what is there now.
func (f *config) gives(candidate []byte, entry verbatim) bool {
	if len(bytes.Trim(candidate, blanks)) == 0 {
		return bytes.Equal(f.format.fresh(f.at, entry), f.data)
	}
	document, err := f.format.parse(candidate, f.at)
	if err != nil {
		return false
	}
	if there, _ := document.entry(); there != nil {
		return false
	}
	text, err := document.put(entry)
	return err == nil && bytes.Equal(text, f.data)
}

// wanted is the value of an entry as it would be read back.
func (f *config) wanted(entry members) (any, error) {
	document, err := f.format.parse(f.format.fresh(f.at, entry), f.at)
	if err != nil {
		return nil, fmt.Errorf("write the entry for %s: %w", f.client.Title, err)
	}
	value, _ := document.entry()
	return value, nil
}

func (f *config) changed(action Action, after []byte, wanted any, err error) (Change, error) {
	if err != nil {
		return Change{}, f.refuse(err)
	}
	return f.change(action, after, wanted)
}

// change proves an edit by parsing it: the entry is what is wanted, and everything else is what it was.
func (f *config) change(action Action, after []byte, wanted any) (Change, error) {
	if f.exists && f.mode&0o200 == 0 {
		return Change{}, refuse("client_config_read_only", "the configuration may not be written", f.path, "a file that its owner may write", "give it back the permission (chmod u+w), or change it by hand")
	}
	if len(bytes.Trim(after, blanks)) > 0 {
		document, err := f.format.parse(after, f.at)
		var got any
		if err == nil {
			got, _ = document.entry()
		}
		if err != nil || !reflect.DeepEqual(got, wanted) || !f.blank() && !reflect.DeepEqual(document.others(), f.others()) {
			return Change{}, f.refuse(&fault{what: "the entry can't be edited without touching what is around it"})
		}
	}
	before := append(bytes.Clone(f.mark), f.data...)
	after = append(bytes.Clone(f.mark), after...)
	return Change{Action: action, Path: f.path, Diff: difference(before, after), before: before, after: after, exists: f.exists, mode: f.mode}, nil
}

// Write makes the change: what was there goes into the backup, then the file is replaced in one step. A file that changed
// since it was read is left as it is (client_config_changed).
func (c Change) Write() error {
	if !c.Makes() {
		return nil
	}
	now, _, err := read(c.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if (err == nil) != c.exists || !bytes.Equal(now, c.before) {
		return refuse("client_config_changed", "another program changed the configuration at this moment", c.Path, "the file as it was read", "close the client or wait until it is done, then run the command again")
	}
	return denied(c.Path, c.commit())
}

func (c Change) commit() error {
	if c.Action == Delete {
		return os.Remove(c.Path)
	}
	if backup := c.Backup(); backup != "" {
		if err := keep(backup, c.before, c.mode); err != nil {
			return err
		}
	}
	return rundir.WriteFile(c.Path, c.after)
}

// keep writes a backup with the permissions of what it keeps: a configuration may hold secrets.
func keep(path string, data []byte, mode fs.FileMode) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep a backup: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("keep a backup: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("keep a backup: %w", err)
	}
	return rundir.WriteFile(path, data)
}
