package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/diff"
	"github.com/go-git/go-git/v5/plumbing/object"
	linediff "github.com/go-git/go-git/v5/utils/diff"

	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/redact"
)

// maxCommitFiles bounds how much of a commit's tree is read, diffTime how long one file's difference may take.
const (
	maxCommitFiles = 200_000
	diffTime       = 2 * time.Second
)

// gitState compares the copies, which are what will run, with the commit. A repository that can't be read says so in Error.
func (t *taker) gitState(root Root, seen *project.Git) *Git {
	out := &Git{Root: seen.Root, Commit: seen.Commit, Branch: seen.Branch, Changed: []string{}, Deleted: []string{}, Untracked: map[string]string{}}
	prefix, ok := relative(real(seen.Root), root.Original)
	if !ok {
		out.Error = "the project lies outside the repository that was found for it"
		return out
	}
	if seen.Commit == "" {
		out.Error = seen.Error
		for _, f := range root.Files {
			out.Untracked[path.Join(prefix, f.Path)] = f.SHA256
		}
		return out
	}
	repository, committed, err := committedFiles(seen.Root, seen.Commit, prefix)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	var patches []diff.FilePatch
	for _, f := range root.Files {
		name := path.Join(prefix, f.Path)
		was, known := committed[name]
		delete(committed, name)
		if !known {
			out.Untracked[name] = f.SHA256
			continue
		}
		content, err := os.ReadFile(filepath.Join(t.into, root.Name, filepath.FromSlash(f.Path)))
		if err != nil {
			out.Error = err.Error()
			return out
		}
		if plumbing.ComputeHash(plumbing.BlobObject, content) == was {
			continue
		}
		out.Changed = append(out.Changed, name)
		patch, err := change(repository, name, was, content)
		if err != nil {
			out.Error = err.Error()
			continue
		}
		patches = append(patches, patch)
	}
	for name := range committed {
		if _, err := os.Lstat(filepath.Join(seen.Root, filepath.FromSlash(name))); err != nil {
			out.Deleted = append(out.Deleted, name)
		}
	}
	slices.Sort(out.Deleted)
	out.Diff, out.DiffCut = render(patches, int(t.limits.MaxDiffBytes))
	return out
}

// committedFiles lists the files of a commit below prefix with the hashes of their blobs.
func committedFiles(root, commit, prefix string) (*git.Repository, map[string]plumbing.Hash, error) {
	repository, err := git.PlainOpenWithOptions(root, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return nil, nil, fmt.Errorf("the repository can't be opened: %w", err)
	}
	head, err := repository.CommitObject(plumbing.NewHash(commit))
	if err != nil {
		return nil, nil, fmt.Errorf("commit %s can't be read: %w", commit, err)
	}
	tree, err := head.Tree()
	if err == nil && prefix != "." {
		tree, err = tree.Tree(prefix)
		if errors.Is(err, object.ErrDirectoryNotFound) {
			return repository, map[string]plumbing.Hash{}, nil // the project is not committed yet
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the tree of commit %s can't be read: %w", commit, err)
	}
	files := map[string]plumbing.Hash{}
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	for {
		name, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			return repository, files, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the tree of commit %s can't be read: %w", commit, err)
		}
		if !entry.Mode.IsFile() || entry.Mode == filemode.Symlink {
			continue
		}
		if len(files) >= maxCommitFiles {
			return nil, nil, fmt.Errorf("commit %s holds more than %d files", commit, maxCommitFiles)
		}
		files[path.Join(prefix, name)] = entry.Hash
	}
}

// change is the difference between a committed file and what will run.
func change(repository *git.Repository, name string, was plumbing.Hash, content []byte) (diff.FilePatch, error) {
	blob, err := repository.BlobObject(was)
	if err != nil {
		return nil, fmt.Errorf("the committed %s can't be read: %w", name, err)
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, fmt.Errorf("the committed %s can't be read: %w", name, err)
	}
	defer reader.Close()
	old, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("the committed %s can't be read: %w", name, err)
	}
	patch := filePatch{from: version{name, was}, to: version{name, plumbing.ComputeHash(plumbing.BlobObject, content)}}
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(content, 0) >= 0 {
		patch.binary = true
		return patch, nil
	}
	// The type of these is not named, since it belongs to a library that go-git wraps: -1 deleted, 0 equal, 1 inserted.
	for _, d := range linediff.DoWithTimeout(string(old), string(content), diffTime) {
		operation := map[int]diff.Operation{-1: diff.Delete, 0: diff.Equal, 1: diff.Add}[int(d.Type)]
		patch.chunks = append(patch.chunks, piece{d.Text, operation})
	}
	return patch, nil
}

// render writes the patches as git does, up to limit bytes, whole lines.
func render(patches []diff.FilePatch, limit int) (text string, cut bool) {
	var out bytes.Buffer
	if err := diff.NewUnifiedEncoder(&out, diff.DefaultContextLines).Encode(files(patches)); err != nil {
		return "", true
	}
	text = redact.Text(out.String())
	if len(text) <= limit {
		return text, false
	}
	return text[:strings.LastIndexByte(text[:limit], '\n')+1], true
}

// The types that the encoder asks for.
type (
	files     []diff.FilePatch
	filePatch struct {
		from, to version
		chunks   []diff.Chunk
		binary   bool
	}
	version struct {
		name string
		hash plumbing.Hash
	}
	piece struct {
		text      string
		operation diff.Operation
	}
)

func (f files) FilePatches() []diff.FilePatch   { return f }
func (files) Message() string                   { return "" }
func (p filePatch) IsBinary() bool              { return p.binary }
func (p filePatch) Files() (from, to diff.File) { return p.from, p.to }
func (p filePatch) Chunks() []diff.Chunk        { return p.chunks }
func (v version) Hash() plumbing.Hash           { return v.hash }
func (version) Mode() filemode.FileMode         { return filemode.Regular }
func (v version) Path() string                  { return v.name }
func (p piece) Content() string                 { return p.text }
func (p piece) Type() diff.Operation            { return p.operation }
