package checkpoint

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds of walking the values of a pickle: shared values could make a small file endless.
const (
	maxVisits = 2_000_000
	maxDepth  = 48
)

// takePickle reads what data.pkl says; at is the byte of the file at which it stands, and stored says that its bytes are
// those of the file. A pickle that can't be followed to
// its end leaves the contents unknown, not guessed.
func (c *contents) takePickle(source io.Reader, path string, at, size int64, stored bool) (*torchWalk, error) {
	value, u, err := readPickle(source, size)
	var bad *pickleError
	offset := int64(0)
	if errors.As(err, &bad) && stored {
		offset = bad.at
	}
	switch {
	case errors.Is(err, errPickleTooLarge):
		c.findings = append(c.findings, finding.Finding{Code: "checkpoint_pickle_unread", Severity: finding.Note, Where: &finding.Where{Path: path, Byte: at},
			What: fmt.Sprintf("data.pkl is too large to follow (%d bytes), so its tensors are not listed", size), Expected: fmt.Sprintf("at most %d bytes", maxPickle)})
		return nil, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		c.findings = append(c.findings, corrupt(path, at, fmt.Sprintf("data.pkl ends after %d bytes, in the middle of an instruction", u.at), "a pickle with its stop instruction"))
		return nil, nil
	case bad != nil:
		c.findings = append(c.findings, corrupt(path, at+offset, "data.pkl is not a pickle: "+bad.what, "the pickle that torch.save writes"))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	c.imports(path, at, u.imports)
	walk := &torchWalk{into: c, storages: map[string]*pyStorage{}, views: map[string]bool{}}
	walk.root(value)
	if walk.cut {
		c.why = append(c.why, "the tensors are listed in part: the pickle nests or repeats too much")
	}
	return walk, nil
}

// torchWalk collects tensors from the value of a pickle.
type torchWalk struct {
	into     *contents
	storages map[string]*pyStorage
	views    map[string]bool // a view of a storage that was counted
	outside  string          // the first tensor that does not lie inside its storage
	visits   int
	cut      bool
}

// root looks at the top level: a dict of parts, a dict of tensors alone (a model's state), or a whole object.
func (w *torchWalk) root(value any) {
	dict := dictOf(value)
	if dict == nil || len(dict.keys) == 0 {
		part := "model"
		if _, ok := value.(*pyObject); !ok {
			part = ""
		}
		w.value("", part, value, 0)
		w.holdIfAny(part)
		return
	}
	if part := wholePart(dict); part != "" {
		w.value("", part, value, 0)
		w.into.holds = addPart(w.into.holds, part)
		return
	}
	for i, key := range dict.keys {
		name := segment(key)
		part, known := partOfKey(name)
		if !known && looksLike(dictOf(dict.values[i])) != "" {
			part = looksLike(dictOf(dict.values[i]))
		}
		w.into.holds = addPart(w.into.holds, part)
		w.place(part, dict.values[i])
		w.value(name, part, dict.values[i], 1)
	}
}

func (w *torchWalk) holdIfAny(part string) {
	if part != "" && w.into.tensorCount > 0 {
		w.into.holds = addPart(w.into.holds, part)
	}
}

// wholePart says of what the dict is the state, where it is the state of one thing; "" otherwise.
func wholePart(d *pyDict) string {
	if part := looksLike(d); part != "" {
		return part
	}
	tensors := 0
	for i, key := range d.keys {
		if _, known := partOfKey(segment(key)); known {
			return ""
		}
		if _, ok := d.values[i].(*pyTensor); ok {
			tensors++
		}
	}
	if 2*tensors > len(d.keys) {
		return "model"
	}
	return ""
}

// looksLike recognises a state by its keys: torch.optim.Optimizer.state_dict has state and param_groups, a scheduler's
// has last_epoch and _step_count or base_lrs, and transformers' rng_state.pth has python and cpu.
func looksLike(d *pyDict) string {
	if d == nil {
		return ""
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := d.get(name); return !ok })
	}
	switch {
	case has("state", "param_groups"):
		return "optimizer"
	case has("last_epoch", "_step_count"), has("last_epoch", "base_lrs"):
		return "scheduler"
	case has("python", "cpu"):
		return "rng"
	}
	return ""
}

// place takes epoch and step.
func (w *torchWalk) place(part string, value any) {
	switch n := value.(type) {
	case int64:
		switch part {
		case "epoch":
			epoch := float64(n)
			w.into.epoch = &epoch
		case "step":
			w.into.step = &n
		}
	case float64:
		if part == "epoch" && n-n == 0 {
			w.into.epoch = &n
		}
	}
}

// value walks a value in the order of the file.
func (w *torchWalk) value(name, part string, value any, depth int) {
	if w.visits++; w.visits > maxVisits || depth > maxDepth {
		w.cut = true
		return
	}
	switch v := value.(type) {
	case *pyTensor:
		w.tensor(name, part, v)
	case *pyDict:
		w.dict(name, part, v, depth)
	case *pyList:
		for i, item := range v.items {
			w.value(join(name, strconv.Itoa(i)), part, item, depth+1)
		}
	case pyTuple:
		for i, item := range v {
			w.value(join(name, strconv.Itoa(i)), part, item, depth+1)
		}
	case *pyObject:
		w.value(name, part, v.args, depth+1)
		if v.dict != nil {
			w.dict(name, part, v.dict, depth)
		}
		w.value(name, part, v.state, depth+1)
	}
}

// dict walks a dict. The fields in which a pickled torch.nn.Module keeps its tensors do not count as names, so that they
// are called as in its state_dict.
func (w *torchWalk) dict(name, part string, d *pyDict, depth int) {
	for i, key := range d.keys {
		below := join(name, segment(key))
		if key == "_parameters" || key == "_buffers" || key == "_modules" {
			below = name
		}
		w.value(below, part, d.values[i], depth+1)
	}
}

func join(name, segment string) string {
	if name == "" || len(name) > maxTensorName {
		return name + segment
	}
	return name + "." + segment
}

func segment(key any) string {
	switch k := key.(type) {
	case string:
		return k
	case int64:
		return strconv.FormatInt(k, 10)
	}
	return "?"
}

// tensor counts a tensor; one that is a view of bytes that were seen is tied to the first (shared weights).
func (w *torchWalk) tensor(name, part string, t *pyTensor) {
	elements, ok := elementsOf(t.shape)
	if !ok {
		w.outside = firstOf(w.outside, name)
		return
	}
	tied := false
	if t.storage != nil {
		view := fmt.Sprint(t.storage.key, "/", t.offset, t.shape, t.stride)
		tied = w.views[view]
		w.views[view] = true
		w.storages[t.storage.key] = t.storage
		if !t.inside(elements) {
			w.outside = firstOf(w.outside, name)
		}
	}
	bits := dtypeBits[t.dtype]
	if bits > 0 && elements > (1<<62)/bits {
		w.outside = firstOf(w.outside, name)
		return
	}
	w.into.addTensor(Tensor{Name: name, Dtype: t.dtype, Shape: t.shape, Part: part}, elements, elements*bits/8, tied)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// inside says whether the last element of the tensor lies in its storage. A storage of another element type than the
// tensor's is measured in bytes.
func (t *pyTensor) inside(elements int64) bool {
	if elements == 0 {
		return true
	}
	last := t.offset
	for i, n := range t.shape {
		if n > 1 && t.stride[i] > (1<<62)/(n-1) {
			return false
		}
		if last += (n - 1) * t.stride[i]; last < 0 {
			return false
		}
	}
	room := t.storage.elements
	if own, stored := dtypeBits[t.dtype], dtypeBits[t.storage.dtype]; own > 0 && stored > 0 && own != stored {
		room = room * stored / own
	}
	return last < room
}

// checkStorages holds the tensors against the entries of the zip.
func (w *torchWalk) checkStorages(archive *zip.Reader, path, prefix string, at int64) {
	sizes := make(map[string]uint64, len(archive.File))
	for _, entry := range archive.File {
		sizes[entry.Name] = entry.UncompressedSize64
	}
	keys := make([]string, 0, len(w.storages))
	for key := range w.storages {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	problem := ""
	if w.outside != "" {
		problem = fmt.Sprintf("tensor %.80q does not lie inside its storage", w.outside)
	}
	for _, key := range keys {
		storage := w.storages[key]
		size, there := sizes[prefix+"data/"+key]
		bits := dtypeBits[storage.dtype]
		switch {
		case !there:
			problem = firstOf(problem, fmt.Sprintf("the bytes of storage %.40q are missing", key))
		case bits > 0 && (storage.elements > (1<<62)/bits || uint64(storage.elements*bits/8) != size):
			problem = firstOf(problem, fmt.Sprintf("storage %.40q has %d bytes, which are not %d elements of %s", key, size, storage.elements, storage.dtype))
		}
	}
	if problem != "" {
		w.into.complete = Unknown
		w.into.findings = append(w.into.findings, corrupt(path, at, problem, "every tensor that data.pkl names, whole"))
	}
}

// knownModules are the packages whose classes a checkpoint of tensors and numbers may need.
var knownModules = []string{"torch", "collections", "numpy", "_codecs", "copyreg", "copy_reg", "builtins", "__builtin__", "datetime", "pathlib", "argparse"}

// dangerous are modules that no checkpoint needs and that can do anything; of the built-ins, the functions that can.
var dangerous = []string{"os", "posix", "nt", "subprocess", "sys", "runpy", "shutil", "socket", "importlib", "pty", "ctypes", "code", "pdb", "pickle", "webbrowser", "multiprocessing"}
var dangerousBuiltins = []string{"eval", "exec", "compile", "open", "__import__", "getattr", "setattr", "globals", "breakpoint"}

// imports reports what loading the pickle would import beyond PyTorch's own.
func (c *contents) imports(path string, at int64, globals []pyGlobal) {
	var foreign, harmful []string
	for _, g := range globals {
		module, _, _ := strings.Cut(g.module, ".")
		name := clip(g.String())
		switch builtin := module == "builtins" || module == "__builtin__"; {
		case slices.Contains(dangerous, module), builtin && slices.Contains(dangerousBuiltins, g.name), g.module == "torch.hub":
			harmful = append(harmful, name)
		case !slices.Contains(knownModules, module):
			foreign = append(foreign, name)
		}
	}
	if len(harmful) > 0 {
		c.findings = append(c.findings, finding.Finding{Code: "checkpoint_runs_code", Severity: finding.Warning, Where: &finding.Where{Path: path, Byte: at},
			What: "loading this checkpoint calls " + finding.Few(harmful, 5) + ": it can run any command", Expected: "tensors, numbers and texts only",
			Remedy: "do not load it; ask where it comes from"})
	}
	if len(foreign) > 0 {
		c.findings = append(c.findings, finding.Finding{Code: "checkpoint_needs_classes", Severity: finding.Note, Where: &finding.Where{Path: path, Byte: at},
			What:   "loading this checkpoint imports " + finding.Few(foreign, 5) + "; torch.load with weights_only=True refuses it",
			Remedy: "save a state_dict instead, or load it with weights_only=False where its origin is trusted and these modules are there"})
	}
}

func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return text
}

// takeCut reads data.pkl of a zip that lost its end. torch.save writes it first, as it is (APPNOTE 4.3.7: 30 bytes, name,
// extra field, data), so that names and shapes are known even of a checkpoint whose tensors were cut.
func (c *contents) takeCut(file *os.File, path string, size int64) error {
	const nameAt = 30
	head := make([]byte, nameAt)
	if _, err := file.ReadAt(head, 0); err != nil || head[8] != 0 || head[9] != 0 { // method 0: stored
		return nil
	}
	at := nameAt + int64(head[26]) + int64(head[27])<<8 + int64(head[28]) + int64(head[29])<<8
	if at >= size {
		return nil
	}
	_, err := c.takePickle(io.NewSectionReader(file, at, size-at), path, at, size-at, true)
	if c.tensorCount > 0 {
		c.why = append(c.why, fmt.Sprintf("data.pkl is whole and names %d tensors of %d bytes; the file has %d bytes", c.tensorCount, c.tensorBytes, size))
	}
	c.findings = slices.DeleteFunc(c.findings, func(f finding.Finding) bool { return f.Code == "checkpoint_corrupt" }) // it is cut, as is said already
	return err
}
