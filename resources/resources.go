// Package resources answers what trainwright offers to read by address: skill://<name>/<file> from the skill library,
// run://<run_id>/<artifact> from a run's trainer_workdir, job://<job_id> from a job's folder, and workspace:///<path> from
// the workspace. It knows nothing of MCP; the server adapts it.
package resources

import (
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	// ErrNotFound is wrapped by every error that says an address names nothing that can be read, whether it does not
	// exist, is not to be seen, or is no address of ours.
	ErrNotFound = errors.New("no such resource")
	// ErrInvalid is wrapped by the error of an address whose range can't be understood.
	ErrInvalid = errors.New("the address can't be used")
)

// Item is one entry of the list. Size is in bytes, negative when it is not known.
type Item struct {
	URI, Name, Title, Description, MIME string
	Size                                int64
}

// Template is a pattern of addresses, as RFC 6570 writes it.
type Template struct{ URITemplate, Name, Description, MIME string }

// Content is one resource that was read. Binary content is in Blob, everything else in Text. Shown bytes from Offset on are
// here, of Total; Cut says that they are not all, Note then tells in words what is missing, and Rest is the address that
// goes on, "" at the end. Version stands for the content where part of that changes all the time; ModTime is a file's.
type Content struct {
	URI, MIME            string
	Text                 string
	Blob                 []byte
	Binary               bool
	Offset, Shown, Total int64
	Cut                  bool
	Note, Rest           string
	Version              string
	ModTime              time.Time
}

// Templates lists the patterns of all addresses, in a fixed order.
func Templates() []Template {
	return []Template{
		{"workspace:///{+path}{?offset,limit}", "workspace file", "A file or folder of the workspace; workspace:/// is the top folder. What git ignores and what may hold secrets is not there.", ""},
		{"run://{run_id}/{+artifact}{?offset,limit}", "run artifact", "A file of a run's trainer_workdir, e.g. run://r-20261130-7f3a/training_plan.md", ""},
		{"job://{job_id}", "job", "Where a job stands, with the evidence for it and the cause of a failure, and its files", mimeJSON},
		{"job://{job_id}/{+file}{?offset,limit}", "job file", "A file of a job's folder, e.g. stdout.log, stderr.log; of a log the end", ""},
		{"skill://{name}/{+path}", "skill file", "A skill's SKILL.md or another file of it, e.g. skill://onescience-trainer/SKILL.md", ""},
	}
}

const mimeJSON = "application/json"

// textTypes are the file types of runs and skills whose MIME type must not depend on the machine's own tables.
var textTypes = map[string]string{
	".md": "text/markdown", ".json": mimeJSON, ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".txt": "text/plain", ".log": "text/plain", ".out": "text/plain", ".err": "text/plain", ".ids": "text/plain",
	".py": "text/x-python", ".sh": "application/x-sh", ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".html": "text/html", ".svg": "image/svg+xml",
	".ini": "text/plain", ".cfg": "text/plain", ".conf": "text/plain", ".xml": "application/xml", ".rst": "text/plain", ".patch": "text/plain", ".diff": "text/plain",
}

var binaryTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".pdf": "application/pdf"}

// MIMEType tells the type of a file by its name and, when that says nothing, by its first bytes.
func MIMEType(name string, head []byte) string {
	ext := strings.ToLower(path.Ext(name))
	if known, ok := textTypes[ext]; ok {
		return known
	}
	if known, ok := binaryTypes[ext]; ok {
		return known
	}
	if known := mime.TypeByExtension(ext); known != "" {
		return known
	}
	if isText(head) {
		return "text/plain"
	}
	return "application/octet-stream"
}

// namedAsText says whether a file's name promises text.
func namedAsText(name string) bool { return textTypes[strings.ToLower(path.Ext(name))] != "" }

// isText says whether bytes, which may end inside a character, are UTF-8 without NUL.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == 0 || (r == utf8.RuneError && n == 1 && len(b) >= utf8.UTFMax) {
			return false
		}
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(b) // a character cut at the end is still text
		}
		b = b[n:]
	}
	return true
}

func notFound(uri, why string) error {
	return fmt.Errorf("%w at %q: %s", ErrNotFound, uri, why)
}

// orNotFound keeps faults of the disk apart from names that lead nowhere or outside.
func orNotFound(uri string, err error) error {
	var p *fs.PathError
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrInvalid):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), errors.Is(err, fs.ErrPermission), errors.As(err, &p) && strings.Contains(p.Err.Error(), "escapes"):
		return notFound(uri, "no such file there; resources/list has what can be read")
	}
	return fmt.Errorf("read %s: %w", uri, err)
}
