// Package resources answers what trainwright offers to read by address: skill://<name>/<file> from the skill library
// and run://<run_id>/<artifact> from a run's trainer_workdir. It knows nothing of MCP; the server adapts it.
package resources

import (
	"errors"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/redact"
)

// MaxBytes is how much of one file a read returns. The rest stays where it is; the cut says how much that is.
const MaxBytes = 1 << 20

// ErrNotFound is wrapped by every error that says an address names nothing that can be read, whether it does not
// exist, is not to be seen, or is no address of ours.
var ErrNotFound = errors.New("no such resource")

// Item is one entry of the list. Size is in bytes, negative when it is not known.
type Item struct {
	URI, Name, Title, Description, MIME string
	Size                                int64
}

// Template is a pattern of addresses, as RFC 6570 writes it.
type Template struct{ URITemplate, Name, Description, MIME string }

// Content is one resource that was read. Binary content is in Blob, everything else in Text. Total is the size of the
// whole in bytes; Cut says that only the first MaxBytes are here, and Note then tells how to get the rest.
type Content struct {
	URI, MIME string
	Text      string
	Blob      []byte
	Binary    bool
	Total     int64
	Cut       bool
	Note      string
}

// Templates lists the patterns of all addresses, in a fixed order.
func Templates() []Template {
	return []Template{
		{"run://{run_id}/{+artifact}", "run artifact", "A file of a run's trainer_workdir, e.g. run://r-20261130-7f3a/training_plan.md", ""},
		{"skill://{name}/{+path}", "skill file", "A skill's SKILL.md or another file of it, e.g. skill://onescience-trainer/SKILL.md", ""},
	}
}

// textTypes are the file types of runs and skills whose MIME type must not depend on the machine's own tables.
var textTypes = map[string]string{
	".md": "text/markdown", ".json": "application/json", ".jsonl": "application/x-ndjson", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".txt": "text/plain", ".log": "text/plain", ".out": "text/plain", ".err": "text/plain", ".ids": "text/plain",
	".py": "text/x-python", ".sh": "application/x-sh", ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".html": "text/html",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".svg": "image/svg+xml", ".pdf": "application/pdf",
}

// MIMEType tells the type of a file by its name and, when that says nothing, by its first bytes.
func MIMEType(name string, head []byte) string {
	ext := strings.ToLower(path.Ext(name))
	if known, ok := textTypes[ext]; ok {
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

// content makes a Content of a file's first bytes and its whole size.
func content(uri, name string, head []byte, total int64, where string) Content {
	c := Content{URI: uri, MIME: MIMEType(name, head), Total: total}
	if int64(len(head)) > MaxBytes {
		head = head[:MaxBytes]
	}
	if c.Cut = int64(len(head)) < total; c.Cut {
		c.Note = cutNote(len(head), total, where)
	}
	if !isText(head) {
		c.Binary, c.Blob = true, head
		return c
	}
	c.Text = redact.Text(strings.ToValidUTF8(string(head), ""))
	return c
}
