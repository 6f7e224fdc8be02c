package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Formats that Inspect knows.
const (
	FormatJSON        = "json"
	FormatPyTorchZip  = "pytorch-zip"
	FormatSafetensors = "safetensors"
	FormatUnknown     = "unknown"
)

// What can be said about a file's wholeness. Unknown is legal: neither a marker nor the format tells.
const (
	Complete  = "complete"
	Truncated = "truncated"
	Unknown   = "unknown"
)

// HashLimit is the size in bytes up to which Inspect hashes a file. A larger one is compared by size and structure;
// InspectFull hashes any.
const HashLimit = 1 << 30

// Info is what is known of one checkpoint file. Epoch, Step and Holds come from the file, else its marker, else (epoch
// and step) the file's name; Why says which, and what speaks for or against its wholeness. Holds has model, optimizer,
// scheduler, scaler, rng, ema, … and other top-level names as the file has them; empty means unknown.
type Info struct {
	Path     string    `json:"path"`
	Format   string    `json:"format"`
	Bytes    int64     `json:"bytes"`
	ModTime  time.Time `json:"mod_time"`
	SHA256   string    `json:"sha256,omitempty"` // "" when the file was not hashed
	Complete string    `json:"complete"`
	Marker   *Marker   `json:"marker,omitempty"`
	Epoch    *float64  `json:"epoch,omitempty"`
	Step     *int64    `json:"step,omitempty"`
	Holds    []string  `json:"holds,omitempty"`
	// TensorCount and TensorBytes are of every tensor that a PyTorch zip or a safetensors header names; Parameters are the
	// elements of those that belong to the model, buffers included, shared weights once. Tensors are the first of them.
	TensorCount int      `json:"tensor_count,omitempty"`
	TensorBytes int64    `json:"tensor_bytes,omitempty"`
	Parameters  int64    `json:"parameters,omitempty"`
	Tensors     []Tensor `json:"tensors,omitempty"`
	Why         []string `json:"why,omitempty"`
}

// Options say how much Read does beyond the structure of a file, which it reads in any case.
type Options struct {
	HashLimit int64 // bytes up to which the file is hashed
	Tensors   int   // how many tensors Info lists; they are counted in any case
	Checksums bool  // whether the bytes of a zip's entries are read and compared with their CRC-32
}

// contents is what a format's reader found in a file.
type contents struct {
	format   string
	complete string
	epoch    *float64
	step     *int64
	holds    []string
	why      []string
	findings []finding.Finding

	keep        int // how many tensors are kept
	tensors     []Tensor
	tensorCount int
	tensorBytes int64
	parameters  int64
}

// Inspect is Read without a list of tensors, for a file that is hashed when it has at most HashLimit bytes.
func Inspect(path string) (Info, []finding.Finding, error) {
	return Read(context.Background(), path, Options{HashLimit: HashLimit})
}

// InspectFull is Inspect that hashes the file whatever its size.
func InspectFull(path string) (Info, []finding.Finding, error) {
	return Read(context.Background(), path, Options{HashLimit: 1 << 62})
}

// Read reads one checkpoint file. Of a large file only its structure is read: a header, a directory and a pickle, whatever
// the size of the tensors. What is wrong with it is in the findings: checkpoint_missing, checkpoint_empty,
// checkpoint_truncated, checkpoint_corrupt, checkpoint_marker_mismatch (errors), checkpoint_nonfinite,
// checkpoint_trailing_bytes, checkpoint_marker_malformed, checkpoint_runs_code (warnings), checkpoint_no_marker,
// checkpoint_format_unknown, checkpoint_needs_classes, checkpoint_pickle_unread (notes), and checkpoint_not_a_file (error;
// sharded folders are not read). The error is one of the disk, or of ctx.
func Read(ctx context.Context, path string, options Options) (Info, []finding.Finding, error) {
	info := Info{Path: path, Format: FormatUnknown, Complete: Unknown}
	stat, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return info, []finding.Finding{{
			Code: "checkpoint_missing", Severity: finding.Error, What: "the checkpoint does not exist", Where: &finding.Where{Path: path},
			Remedy: "check the path; list the folder for what is there",
		}}, nil
	}
	if err != nil {
		return info, nil, fmt.Errorf("inspect checkpoint: %w", err)
	}
	info.ModTime = stat.ModTime().UTC()
	if !stat.Mode().IsRegular() {
		return info, []finding.Finding{{
			Code: "checkpoint_not_a_file", Severity: finding.Error, What: "the checkpoint is not a regular file", Where: &finding.Where{Path: path},
			Expected: "one file", Remedy: "name the file inside the folder",
		}}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return info, nil, fmt.Errorf("inspect checkpoint: %w", err)
	}
	defer file.Close()
	if stat, err = file.Stat(); err != nil {
		return info, nil, fmt.Errorf("inspect checkpoint: %w", err)
	}
	info.Bytes = stat.Size()
	marker, found, err := readMarker(path)
	if err != nil {
		return info, nil, err
	}
	info.Marker = marker
	if info.Bytes == 0 {
		info.Complete = Truncated
		info.SHA256 = hashText(sha256.New().Sum(nil))
		info.fromName()
		return info, append(found, finding.Finding{
			Code: "checkpoint_empty", Severity: finding.Error, What: "the checkpoint has no bytes", Where: &finding.Where{Path: path},
			Remedy: "use an earlier one; the writer was stopped, or the disk was full",
		}), nil
	}
	inside, err := read(ctx, file, path, info.Bytes, options)
	if err != nil {
		return info, nil, err
	}
	info.take(inside)
	found = append(found, inside.findings...)
	if info.Bytes <= options.HashLimit {
		if info.SHA256, err = hash(ctx, file, info.Bytes); err != nil {
			return info, nil, fmt.Errorf("hash %s: %w", path, err)
		}
	} else {
		info.Why = append(info.Why, fmt.Sprintf("not hashed: more than %d bytes", options.HashLimit))
	}
	found = append(found, info.compareMarker()...)
	info.fromName()
	return info, found, nil
}

// take copies what the file itself says.
func (i *Info) take(inside contents) {
	i.Format, i.Complete = inside.format, inside.complete
	i.Epoch, i.Step, i.Holds, i.Why = inside.epoch, inside.step, inside.holds, inside.why
	i.TensorCount, i.TensorBytes, i.Parameters, i.Tensors = inside.tensorCount, inside.tensorBytes, inside.parameters, inside.tensors
}

// read picks the format by content and reads its structure; the extension only decides for a file too short to tell.
func read(ctx context.Context, file *os.File, path string, size int64, options Options) (contents, error) {
	head := make([]byte, min(size, 16))
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return contents{}, fmt.Errorf("read checkpoint: %w", err)
	}
	extension := strings.ToLower(filepath.Ext(path))
	switch {
	case strings.HasPrefix(string(head), "PK\x03\x04") || strings.HasPrefix(string(head), "PK\x05\x06"):
		return readZip(ctx, file, path, size, options)
	case looksLikeSafetensors(head) || extension == ".safetensors":
		return readSafetensors(file, path, size, options)
	case looksLikeJSON(head) || extension == ".json":
		return readJSON(file, path, size)
	}
	return contents{
		format: FormatUnknown, complete: Unknown, why: []string{"no known format: neither zip, safetensors nor JSON"},
		findings: []finding.Finding{{
			Code: "checkpoint_format_unknown", Severity: finding.Note, Where: &finding.Where{Path: path},
			What:   "the file's format is not known, so only its marker can tell whether it is whole",
			Remedy: "let the script write " + markerSuffix + " beside it",
		}},
	}, nil
}

func hash(ctx context.Context, file *os.File, size int64) (string, error) {
	digest := sha256.New()
	if err := copyAll(ctx, digest, io.NewSectionReader(file, 0, size)); err != nil {
		return "", err
	}
	return hashText(digest.Sum(nil)), nil
}

func hashText(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

var (
	epochInName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:epoch|ep)[-_=]?(\d{1,12})`)
	stepInName  = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:step|steps|iter)[-_=]?(\d{1,15})`)
)

// fromName takes epoch and step from a name such as epoch-0007.pt, where neither file nor marker has them.
func (i *Info) fromName() {
	name := filepath.Base(i.Path)
	if m := epochInName.FindStringSubmatch(name); m != nil && i.Epoch == nil {
		if value, err := strconv.ParseFloat(m[1], 64); err == nil {
			i.Epoch = &value
			i.Why = append(i.Why, "epoch from the file's name")
		}
	}
	if m := stepInName.FindStringSubmatch(name); m != nil && i.Step == nil {
		if value, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			i.Step = &value
			i.Why = append(i.Why, "step from the file's name")
		}
	}
}

// HoldsOptimizer says whether the file holds optimizer state, without which a run can't be resumed, only initialised.
// known is false where neither format nor marker tells: the file is not whole, its parts are not listed, or one of them
// has a name that could be anything (a script's own "velocity").
func HoldsOptimizer(info Info) (yes, known bool) {
	if slices.Contains(info.Holds, "optimizer") {
		return true, true
	}
	for _, part := range info.Holds {
		if partNames[part] == "" && !plainParts[part] {
			return false, false
		}
	}
	return false, len(info.Holds) > 0 && info.Complete == Complete
}

// plainParts are stored beside the known parts and are certainly no optimizer state.
var plainParts = map[string]bool{
	"bias": true, "config": true, "args": true, "hparams": true, "hyper_parameters": true, "metrics": true, "metric": true, "best": true,
	"best_metric": true, "loss": true, "version": true, "format": true, "seed": true, "time": true, "features": true, "target": true,
	"mean": true, "std": true, "normalization": true, "classes": true, "labels": true, "vocab": true, "history": true,
}

// partNames map the names under which scripts store a part to one.
var partNames = map[string]string{
	"model": "model", "state_dict": "model", "model_state_dict": "model", "model_state": "model", "weights": "model", "params": "model",
	"parameters": "model", "net": "model", "network": "model",
	"optimizer": "optimizer", "optimizer_state_dict": "optimizer", "optimizer_state": "optimizer", "optim": "optimizer", "opt": "optimizer",
	"optimizers": "optimizer", "optimizer_states": "optimizer", "opt_state": "optimizer",
	"scheduler": "scheduler", "scheduler_state_dict": "scheduler", "scheduler_state": "scheduler", "lr_scheduler": "scheduler", "lr_schedulers": "scheduler",
	"scaler": "scaler", "grad_scaler": "scaler", "scaler_state_dict": "scaler", "ema": "ema", "ema_state_dict": "ema",
	"rng": "rng", "rng_state": "rng", "rng_states": "rng", "random_state": "rng",
	"step": "step", "global_step": "step", "iteration": "step", "iter": "step", "epoch": "epoch",
}

// partName is the one name for a stored part.
func partName(name string) string {
	part, _ := partOfKey(name)
	return part
}

// maxHolds bounds the parts that are listed.
const maxHolds = 50

// addPart adds a part once.
func addPart(holds []string, name string) []string {
	if name = partName(name); name == "" || len(name) > 200 || len(holds) >= maxHolds || slices.Contains(holds, name) {
		return holds
	}
	return append(holds, name)
}

// truncated is the finding of a file that ends too early.
func truncated(path string, at int64, what, expected string) finding.Finding {
	return finding.Finding{
		Code: "checkpoint_truncated", Severity: finding.Error, What: what, Where: &finding.Where{Path: path, Byte: at}, Expected: expected,
		Remedy: "do not resume from it: use an earlier one; the writer was stopped, still writes, or the disk was full",
	}
}

// corrupt is the finding of a file whose bytes contradict its format.
func corrupt(path string, at int64, what, expected string) finding.Finding {
	return finding.Finding{
		Code: "checkpoint_corrupt", Severity: finding.Error, What: what, Where: &finding.Where{Path: path, Byte: at}, Expected: expected,
		Remedy: "do not resume from it: use an earlier one",
	}
}
