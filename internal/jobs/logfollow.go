package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/trainwright/trainwright/internal/redact"
)

// Following is a log that is read to its end while it grows.
type Following struct {
	// Path is the file; it need not be there yet.
	Path string
	// From is the byte to begin at; TailStart finds it.
	From int64
	// Every is how often the file is looked at again.
	Every time.Duration
	// Over tells that nothing more will be written; nil is a log that has ended.
	Over func(context.Context) (bool, error)
}

// followMost bounds in bytes the line that is waited for; what is longer comes in pieces.
const followMost = 1 << 20

// Follow calls emit with one line after another, without its newline, as a terminal would show it and with secrets masked,
// until the log is over or ctx ends. A line comes when it is whole; the last one at the end, whole or not. The bytes before
// From are looked at, so that a secret which From cuts in two is masked. Memory is bounded however long the log is.
func (f Following) Follow(ctx context.Context, emit func(line string) error) error {
	lines := &lineWriter{emit: emit}
	masked := redact.NewWriter(lines)
	at := max(0, f.From-redactAround)
	lines.skip = f.From - at
	for {
		over := true
		var err error
		if f.Over != nil {
			if over, err = f.Over(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if at, err = copyFrom(masked, f.Path, at); err != nil {
			return err
		}
		if over || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.Every):
		}
	}
	if err := masked.Close(); err != nil {
		return err
	}
	if err := lines.end(); err != nil {
		return err
	}
	return ctx.Err()
}

// copyFrom copies what the file has from an offset on and returns where it ended. A file that is not there has nothing.
func copyFrom(to io.Writer, path string, at int64) (int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil
	}
	if err != nil {
		return at, fmt.Errorf("open the log: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() <= at {
		return at, err
	}
	n, err := io.Copy(to, io.NewSectionReader(file, at, 1<<62))
	if err != nil {
		return at + n, fmt.Errorf("read the log %s: %w", path, err)
	}
	return at + n, nil
}

// lineWriter cuts what is written into rendered lines.
type lineWriter struct {
	emit func(string) error
	skip int64 // bytes to drop first
	line []byte
}

// Write emits the lines that p completes.
func (w *lineWriter) Write(p []byte) (int, error) {
	taken := len(p)
	drop := min(w.skip, int64(len(p)))
	p, w.skip = p[drop:], w.skip-drop
	for len(p) > 0 {
		newline := bytes.IndexByte(p, '\n')
		if newline < 0 {
			w.line = append(w.line, p...)
			if len(w.line) < followMost {
				break
			}
			return taken, w.end()
		}
		w.line = append(w.line, p[:newline]...)
		p = p[newline+1:]
		text := render(w.line)
		w.line = w.line[:0]
		if err := w.emit(text); err != nil {
			return 0, err
		}
	}
	return taken, nil
}

// end emits what is left without a newline.
func (w *lineWriter) end() error {
	if len(w.line) == 0 {
		return nil
	}
	text := render(w.line)
	w.line = w.line[:0]
	return w.emit(text)
}

// TailStart is the byte at which the last lines of a log file begin, or a line near it where they lie more than 1 MiB before
// the end. A file that is not there begins at 0.
func TailStart(path string, lines int) (int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open the log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at the log: %w", err)
	}
	if lines <= 0 {
		return info.Size(), nil
	}
	from, _, err := tailStart(file, info.Size(), lines)
	return from, err
}
