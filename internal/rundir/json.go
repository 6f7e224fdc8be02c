package rundir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/trainwright/trainwright/internal/finding"
)

// MarshalStable writes v as every JSON file of a run is written: two spaces of indentation, no HTML escapes, keys of maps
// sorted, a line end at the end.
func MarshalStable(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// WriteJSON commits v as MarshalStable writes it.
func WriteJSON(path string, v any) error {
	data, err := MarshalStable(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, data)
}

// ReadJSON reads path into v. A missing file is an error that wraps fs.ErrNotExist; one that is cut off or malformed is
// refused with json_unreadable and the place.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return finding.Refuse(jsonFinding(path, data, err))
	}
	return nil
}

func jsonFinding(path string, data []byte, err error) finding.Finding {
	f := finding.Finding{Code: "json_unreadable", Severity: finding.Error, What: "the file is not the JSON that was written: " + err.Error(),
		Where: &finding.Where{Path: path}, Remedy: "restore the file, or delete it and call the phase that writes it again"}
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		f.Expected = fmt.Sprintf("a %s in %s", kind.Type, kind.Field)
	}
	if offset >= 0 {
		offset = min(offset, int64(len(data)))
		f.Where.Byte = offset
		f.Where.Line = 1 + bytes.Count(data[:offset], []byte("\n"))
	}
	return f
}

// HashBytes is the sha256 of data as it is written everywhere: "sha256:" and 64 hex digits.
func HashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hashBuffers are lent to those who hash: a call hashes many small files, and clearing a buffer for each took most of it.
var hashBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// HashFile reads a file as a stream and returns its sha256 and its size in bytes. A folder is an error.
func HashFile(path string) (sha string, bytes int64, err error) {
	// Opening a FIFO waits for a writer, for ever: only what is a file is opened.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("hash %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	defer f.Close()
	h := sha256.New()
	buffer := hashBuffers.Get().(*[256 << 10]byte)
	defer hashBuffers.Put(buffer)
	bytes, err = io.CopyBuffer(h, struct{ io.Reader }{f}, buffer[:]) // the file would write itself, in a buffer of its own
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), bytes, nil
}
