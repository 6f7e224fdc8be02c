package evidence

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// CaptureInput is what to capture. Text wins over Path; Path is absolute and was let through by rundir.Roots. Ref is how
// people name the source; it defaults to Path. Where Text is a rendering of something else (a page, a PDF), SHA256 and Bytes are of that
// original.
type CaptureInput struct {
	Kind, Ref, Text, Path, Note string

	SHA256 string
	Bytes  int64
}

const (
	// keptUpTo is the size in bytes up to which a source's text is kept; larger ones are data, not instructions.
	keptUpTo = 4 << 20
	// binaryWithin is how many first bytes are looked at for a NUL, as git does (FIRST_FEW_BYTES in xdiff-interface.c).
	binaryWithin = 8 << 10
)

// Capture takes a source into a run: its hash, its size and, for text and files up to 4 MiB that are not binary, a redacted
// copy of the same length under sources/. The same kind, ref and content is the source it was before; anything else gets
// the next id. The caller keeps the list: AddSource, SaveSources.
//
// It refuses with source_kind_unsupported, source_empty and source_unreadable.
func Capture(dir string, sources []Source, in CaptureInput, now time.Time) (Source, error) {
	if in.Ref == "" {
		in.Ref = in.Path
	}
	source := Source{Kind: in.Kind, Ref: in.Ref, Note: in.Note, CapturedAt: now.UTC()}
	var kept []byte
	var err error
	switch in.Kind {
	case KindText, KindFile, KindHandoff, KindURL:
		kept, err = captureText(&source, in)
	case KindDirectory, KindDataset, KindCheckpoint:
		err = captureHash(&source, in)
	default:
		err = unsupported(in)
	}
	if err != nil {
		return Source{}, err
	}
	for _, old := range sources {
		if old.Kind == source.Kind && old.Ref == source.Ref && old.SHA256 == source.SHA256 {
			return old, restore(dir, old, kept)
		}
	}
	source.ID = NextSourceID(sources)
	if kept == nil {
		return source, nil
	}
	source.KeptAs = path.Join("sources", source.ID)
	source.KeptSHA256 = rundir.HashBytes(kept)
	return source, rundir.WriteFile(filepath.Join(dir, filepath.FromSlash(source.KeptAs)), kept)
}

// restore puts the copy of a source back when it was deleted or changed since.
func restore(dir string, s Source, kept []byte) error {
	if s.KeptAs == "" || kept == nil || rundir.HashBytes(kept) != s.KeptSHA256 {
		return nil
	}
	copied := filepath.Join(dir, filepath.FromSlash(s.KeptAs))
	if sha, _, err := rundir.HashFile(copied); err == nil && sha == s.KeptSHA256 {
		return nil
	}
	return rundir.WriteFile(copied, kept)
}

func unsupported(in CaptureInput) error {
	remedy := "send its content as kind text, or save it in the workspace and send its path as kind file"
	return finding.Refuse(finding.Finding{Code: "source_kind_unsupported", Severity: finding.Error, What: fmt.Sprintf("a source of kind %q can't be captured", in.Kind),
		Where: &finding.Where{Path: in.Ref, Field: "sources.kind"}, Expected: "text, file, url, directory, dataset, checkpoint or handoff", Remedy: remedy})
}

func refuseSource(code, ref, what, remedy string) error {
	return finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Path: ref, Field: "sources"}, Remedy: remedy})
}

func unreadable(ref string, err error) error {
	return refuseSource("source_unreadable", ref, "the source can't be read: "+err.Error(), "check the path, or send its content as kind text")
}

// captureText hashes a text and returns the copy to keep, nil when it is not kept.
func captureText(s *Source, in CaptureInput) ([]byte, error) {
	if in.Text == "" && in.Path == "" {
		return nil, refuseSource("source_empty", in.Ref, "the source has neither text nor a path", `send {"kind": "text", "text": "…"} or {"kind": "file", "ref": "path/in/workspace"}`)
	}
	data := []byte(in.Text)
	if in.Text == "" {
		large, err := readUpTo(s, in, keptUpTo, &data)
		if err != nil || large {
			return nil, err
		}
	}
	s.SHA256, s.Bytes = rundir.HashBytes(data), int64(len(data))
	if in.SHA256 != "" {
		s.SHA256, s.Bytes = in.SHA256, in.Bytes
	}
	switch {
	case len(data) > keptUpTo:
		s.addNote(tooLarge(int64(len(data))))
	case bytes.IndexByte(data[:min(len(data), binaryWithin)], 0) >= 0:
		s.addNote("not kept: the file is binary")
	default:
		return append([]byte{}, redact.Bytes(data)...), nil // an empty file is kept too
	}
	return nil, nil
}

// readUpTo reads a file once, so that the copy and the hash are of the same bytes. A file over the limit is only hashed.
func readUpTo(s *Source, in CaptureInput, limit int64, data *[]byte) (large bool, err error) {
	info, err := os.Stat(in.Path)
	switch {
	case err != nil:
		return false, unreadable(in.Ref, err)
	case !info.Mode().IsRegular():
		return false, refuseSource("source_unreadable", in.Ref, "the source is not a regular file", "send a folder as kind directory, or name a file in it")
	case info.Size() > limit:
		if s.SHA256, s.Bytes, err = rundir.HashFile(in.Path); err != nil {
			return false, unreadable(in.Ref, err)
		}
		s.addNote(tooLarge(s.Bytes))
		return true, nil
	}
	f, err := os.Open(in.Path)
	if err != nil {
		return false, unreadable(in.Ref, err)
	}
	defer f.Close()
	*data, err = io.ReadAll(io.LimitReader(f, limit+1)) // it may have grown since
	if err != nil {
		return false, unreadable(in.Ref, err)
	}
	if int64(len(*data)) > limit {
		return false, refuseSource("source_unreadable", in.Ref, "the source grew while it was read", "capture it when nothing writes to it")
	}
	return false, nil
}

func tooLarge(size int64) string {
	return fmt.Sprintf("not kept: %d bytes are more than the %d that are kept as text", size, keptUpTo)
}

func (s *Source) addNote(note string) {
	if s.Note != "" {
		s.Note += "; "
	}
	s.Note += note
}

// captureHash hashes a file or folder that is not kept.
func captureHash(s *Source, in CaptureInput) error {
	if in.Path == "" {
		return refuseSource("source_empty", in.Ref, "the source has no path", fmt.Sprintf(`send {"kind": %q, "ref": "path/in/workspace"}`, in.Kind))
	}
	info, err := os.Stat(in.Path)
	switch {
	case err != nil:
		return unreadable(in.Ref, err)
	case info.IsDir():
		return captureTree(s, in)
	case in.Kind == KindDirectory:
		return refuseSource("source_unreadable", in.Ref, "the source is not a folder", `send it as kind file`)
	case !info.Mode().IsRegular():
		return refuseSource("source_unreadable", in.Ref, "the source is not a regular file", "name a regular file or a folder")
	}
	if s.SHA256, s.Bytes, err = rundir.HashFile(in.Path); err != nil {
		return unreadable(in.Ref, err)
	}
	return nil
}

// captureTree hashes the sorted list "<sha256>  <path>" of a folder's regular files, which is what sha256sum prints. A
// project's files over 256 MiB stand in it by their size, since reading them all would take minutes; data and checkpoints
// are read whole.
func captureTree(s *Source, in CaptureInput) error {
	opts := rundir.TreeOptions{MaxHashBytes: -1}
	if in.Kind == KindDirectory {
		opts.MaxHashBytes = 0
	}
	entries, findings, err := rundir.Tree(in.Path, opts)
	if err != nil {
		return unreadable(in.Ref, err)
	}
	var list strings.Builder
	for _, e := range entries {
		sha := e.SHA256
		if sha == "" {
			sha = fmt.Sprintf("%d bytes", e.Size)
		}
		fmt.Fprintf(&list, "%s  %s\n", strings.TrimPrefix(sha, "sha256:"), e.Path)
		s.Bytes += e.Size
	}
	s.SHA256 = rundir.HashBytes([]byte(list.String()))
	s.addNote(fmt.Sprintf("%d files", len(entries)))
	for _, f := range findings {
		s.addNote(f.What)
	}
	return nil
}
