package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Skipped says of a folder's name that Scan never looks into it: environments, histories, caches.
func Skipped(name string) bool { return skippedFolders[name] }

// skippedFolders are never looked into: they hold no code of the project, or trainwright's own files.
var skippedFolders = map[string]bool{".git": true, ".hg": true, ".svn": true, ".venv": true, "venv": true, "node_modules": true, "__pycache__": true,
	".onescience": true, ".trainer_work": true, ".tox": true, ".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true, ".eggs": true,
	".ipynb_checkpoints": true, ".idea": true, ".vscode": true, "site-packages": true}

// maxBulk is how many data files and other files of one folder are listed: a folder of a million images must not crowd
// the code out of the scan.
const maxBulk = 1000

var kindByExtension = map[string]string{
	".py": KindPython, ".sh": KindShell, ".bash": KindShell, ".slurm": KindShell, ".sbatch": KindShell, ".yaml": KindConfig, ".yml": KindConfig, ".json": KindConfig, ".toml": KindConfig, ".ini": KindConfig, ".cfg": KindConfig,
	".md": KindDoc, ".rst": KindDoc, ".pt": KindCheckpoint, ".pth": KindCheckpoint, ".ckpt": KindCheckpoint, ".safetensors": KindCheckpoint, ".keras": KindCheckpoint, ".pdparams": KindCheckpoint,
	".csv": KindData, ".tsv": KindData, ".jsonl": KindData, ".ndjson": KindData, ".parquet": KindData, ".npy": KindData, ".npz": KindData, ".nc": KindData, ".nc4": KindData, ".grib": KindData, ".grb": KindData, ".grib2": KindData,
	".h5": KindData, ".hdf5": KindData, ".arrow": KindData, ".feather": KindData, ".xlsx": KindData, ".fasta": KindData, ".fa": KindData, ".fastq": KindData, ".vcf": KindData, ".bed": KindData, ".cif": KindData,
	".xyz": KindData, ".extxyz": KindData, ".pdb": KindData, ".smi": KindData, ".sdf": KindData, ".data": KindData, ".vtu": KindData, ".vtk": KindData, ".pkl": KindData, ".pickle": KindData, ".zip": KindData, ".tar": KindData, ".bin": KindData}

// kindOf tells a file's kind by its name. A container format that holds data or weights counts as a checkpoint where its
// path says so.
func kindOf(name string) string {
	base := strings.ToLower(path.Base(name))
	plain := strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".zst")
	kind, known := kindByExtension[path.Ext(plain)]
	switch {
	case kind == KindConfig && inFolder(name, "checkpoints", "ckpts", "ckpt"):
		return KindCheckpoint // a marker beside a checkpoint, or one written as JSON
	case kind == KindConfig && inFolder(name, "outputs", "output", "results", "logs", "wandb", "runs", "lightning_logs"):
		return KindData // what a run left behind configures nothing
	case strings.HasPrefix(base, "readme") || strings.HasPrefix(base, "license") || base == "citation.cff" || base == "authors":
		return KindDoc
	case requirementsFile(base):
		return KindConfig
	case !known:
		return KindOther
	case kind == KindData && (path.Ext(plain) == ".h5" || path.Ext(plain) == ".npz" || path.Ext(plain) == ".pkl" || path.Ext(plain) == ".bin"):
		for _, word := range []string{"checkpoint", "ckpt", "weights", "pytorch_model", "model_"} {
			if strings.Contains(strings.ToLower(name), word) {
				return KindCheckpoint
			}
		}
	}
	return kind
}

// inFolder reports whether one of the folders of a path has one of these names.
func inFolder(name string, folders ...string) bool {
	for _, part := range strings.Split(path.Dir(name), "/") {
		if slices.Contains(folders, strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// walker lists the tree breadth first, so that a bound cuts what lies deep and not what comes late in the alphabet.
type walker struct {
	root     *os.Root
	options  Options
	files    []File
	findings []finding.Finding
	links    []string // links that lead out of the root
}

func (w *walker) note(code, what, where, expected, remedy string) {
	w.findings = append(w.findings, finding.Finding{Code: code, Severity: finding.Note, What: what, Where: &finding.Where{Path: where}, Expected: expected, Remedy: remedy})
}

func (w *walker) walk(ctx context.Context) error {
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		folders, full := w.folder(queue[0])
		queue = append(queue, folders...)
		if full {
			w.note("scan_cut", fmt.Sprintf("only the first %d files were listed, %s and what lies beyond it is incomplete", w.options.MaxFiles, queue[0]), queue[0], "", "scan a smaller folder")
			break
		}
	}
	if n := len(w.links); n > 0 {
		w.note("link_leaves_root", fmt.Sprintf("%d links lead out of the project or nowhere and were not followed: %s", n, strings.Join(w.links[:min(n, 5)], ", ")), w.links[0],
			"links that stay inside the project", "name the files they lead to by their own path if they matter")
	}
	slices.SortFunc(w.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// folder lists one folder: code first, then at most maxBulk other files. It returns the folders below.
func (w *walker) folder(dir string) (folders []string, full bool) {
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil {
		w.note("folder_unreadable", fmt.Sprintf("%s can't be listed: %v", dir, reason(err)), dir, "a folder this user may read", "")
		return nil, false
	}
	var code, bulk []File
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if entry.IsDir() {
			if !skippedFolders[entry.Name()] && !strings.HasSuffix(entry.Name(), ".egg-info") && !copiesOfCode(entry, entries) {
				folders = append(folders, name)
			}
			continue
		}
		info, err := entry.Info()
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			if info, err = w.root.Stat(name); err != nil {
				w.links = append(w.links, name)
				continue
			}
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		file := File{Path: name, Bytes: info.Size(), Kind: kindOf(name)}
		if file.Kind == KindData || file.Kind == KindOther || file.Kind == KindCheckpoint {
			bulk = append(bulk, file)
		} else {
			code = append(code, file)
		}
	}
	if n := len(bulk); n > maxBulk {
		w.note("folder_cut", fmt.Sprintf("%s holds %d data and other files, the first %d are listed", dir, n, maxBulk), dir, "", "")
		bulk = bulk[:maxBulk]
	}
	found := append(code, bulk...)
	room := w.options.MaxFiles - len(w.files)
	w.files = append(w.files, found[:min(len(found), room)]...)
	return folders, len(found) > room
}

// copiesOfCode reports whether a folder is the snapshot of a job: it stands beside the snapshot.json that describes it. Its
// scripts are copies of the project's own.
func copiesOfCode(folder fs.DirEntry, siblings []fs.DirEntry) bool {
	return folder.Name() == "snapshot" && slices.ContainsFunc(siblings, func(e fs.DirEntry) bool { return e.Name() == "snapshot.json" && !e.IsDir() })
}

// hash fills the hashes in, code before bulk, as far as the budget of bytes reaches.
func (w *walker) hash(ctx context.Context) error {
	budget, left, first := w.options.MaxBytes, 0, ""
	for _, bulk := range []bool{false, true} {
		for i := range w.files {
			file := &w.files[i]
			if bulk != (file.Kind == KindData || file.Kind == KindOther || file.Kind == KindCheckpoint) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if file.Bytes > maxHashBytes || file.Bytes > budget {
				if left++; first == "" {
					first = file.Path
				}
				continue
			}
			budget -= file.Bytes
			if err := w.hashFile(file); err != nil {
				w.note("file_unreadable", fmt.Sprintf("%s can't be read: %v", file.Path, reason(err)), file.Path, "a file this user may read", "")
			}
		}
	}
	if left > 0 {
		w.note("not_hashed", fmt.Sprintf("%d files were listed without their hash, %s first: each above %d MiB or beyond the %d MiB one scan reads", left, first, maxHashBytes>>20, w.options.MaxBytes>>20), first, "", "")
	}
	return nil
}

func (w *walker) hashFile(file *File) error {
	f, err := w.root.Open(file.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	// A file that grows while it is read must not take the budget of the others.
	if file.Bytes, err = io.Copy(sum, io.LimitReader(f, maxHashBytes+1)); err != nil {
		return err
	}
	file.SHA256 = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return nil
}

// read returns a file's content, at most limit bytes of it.
func (w *walker) read(name string, limit int64) ([]byte, error) {
	f, err := w.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// reason strips the operation and path from a file error: the sentence around it names them.
func reason(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
