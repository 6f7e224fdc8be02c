package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// The safetensors format (huggingface/safetensors, README "Format"): 8 bytes little-endian header length N, N bytes of
// JSON that begins with {, then the tensors' bytes without holes. The reference implementation refuses headers over
// 100 MB.
const (
	safetensorsPrefix    = 8
	safetensorsMaxHeader = 100_000_000
)

// tensor is one entry of the header.
type tensor struct {
	Dtype   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

func looksLikeSafetensors(head []byte) bool {
	if len(head) <= safetensorsPrefix {
		return false
	}
	length := binary.LittleEndian.Uint64(head)
	return head[safetensorsPrefix] == '{' && length >= 2 && length <= safetensorsMaxHeader
}

// readSafetensors checks the header against the file's size.
func readSafetensors(file *os.File, path string, size int64, options Options) (contents, error) {
	inside := contents{format: FormatSafetensors, complete: Truncated, keep: options.Tensors}
	if size < safetensorsPrefix {
		inside.findings = []finding.Finding{truncated(path, size, fmt.Sprintf("the file ends at byte %d inside the header's length", size), "8 bytes of length")}
		return inside, nil
	}
	var prefix [safetensorsPrefix]byte
	if _, err := file.ReadAt(prefix[:], 0); err != nil {
		return inside, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	switch {
	case length > safetensorsMaxHeader:
		inside.complete = Unknown
		inside.findings = []finding.Finding{corrupt(path, 0, fmt.Sprintf("the header's length is %d", length), fmt.Sprintf("at most %d", safetensorsMaxHeader))}
		return inside, nil
	case int64(length) > size-safetensorsPrefix:
		inside.findings = []finding.Finding{truncated(path, size,
			fmt.Sprintf("the file ends at byte %d inside its header", size), fmt.Sprintf("a header up to byte %d", safetensorsPrefix+int64(length)))}
		return inside, nil
	}
	header := json.NewDecoder(io.NewSectionReader(file, safetensorsPrefix, int64(length)))
	sums, at, err := inside.header(header)
	if err != nil {
		inside.complete = Unknown
		inside.findings = []finding.Finding{corrupt(path, safetensorsPrefix+at, "the header is not valid: "+err.Error(), "a JSON object of tensors")}
		return inside, nil
	}
	inside.judgeSize(path, size, safetensorsPrefix+int64(length), sums)
	return inside, nil
}

// extent is what the tensors of a header need: the end of the last one, and the sum of all.
type extent struct {
	count    int
	end, sum int64
}

// header streams through the tensors; at is the byte of the header at which an error stands.
func (c *contents) header(decoder *json.Decoder) (sums extent, at int64, err error) {
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return sums, decoder.InputOffset(), errors.New("no object")
	}
	parts := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return sums, decoder.InputOffset(), err
		}
		name, _ := token.(string)
		if name == "__metadata__" {
			var metadata map[string]string
			if err := decoder.Decode(&metadata); err != nil {
				return sums, decoder.InputOffset(), err
			}
			c.metadata(metadata)
			continue
		}
		var t tensor
		if err := decoder.Decode(&t); err != nil {
			return sums, decoder.InputOffset(), err
		}
		if err := t.check(); err != nil {
			return sums, decoder.InputOffset(), fmt.Errorf("tensor %.60q: %w", name, err)
		}
		sums.count++
		sums.end = max(sums.end, t.Offsets[1])
		if sums.sum += t.Offsets[1] - t.Offsets[0]; sums.sum < 0 {
			return sums, decoder.InputOffset(), errors.New("sizes overflow")
		}
		part := "model"
		if head, _, ok := strings.Cut(name, "."); ok && partNames[head] != "" {
			part = partNames[head]
		}
		parts[part] = true
		elements, ok := elementsOf(t.Shape)
		if !ok {
			return sums, decoder.InputOffset(), fmt.Errorf("tensor %.60q: shape %v", name, t.Shape)
		}
		c.addTensor(Tensor{Name: name, Dtype: t.dtype(), Shape: t.Shape, Part: part}, elements, t.Offsets[1]-t.Offsets[0], false)
	}
	if _, err := decoder.Token(); err != nil {
		return sums, decoder.InputOffset(), err
	}
	for part := range parts {
		c.holds = append(c.holds, part)
	}
	sort.Strings(c.holds)
	return sums, 0, nil
}

// check holds a tensor's range against its type and shape.
func (t tensor) check() error {
	length := t.Offsets[1] - t.Offsets[0]
	if t.Offsets[0] < 0 || length < 0 {
		return fmt.Errorf("data_offsets %v", t.Offsets)
	}
	bits := dtypeBits[t.dtype()]
	if bits == 0 {
		return nil // a newer type: its range still counts
	}
	elements, ok := elementsOf(t.Shape)
	if !ok {
		return fmt.Errorf("shape %v", t.Shape)
	}
	if elements > (1<<62)/bits || elements*bits/8 != length {
		return fmt.Errorf("%s of shape %v has not %d bytes", t.Dtype, t.Shape, length)
	}
	return nil
}

// dtype is PyTorch's name of the element type; a type that is not known keeps its own, in lower case.
func (t tensor) dtype() string {
	if name, ok := safetensorsDtypes[t.Dtype]; ok {
		return name
	}
	return strings.ToLower(t.Dtype)
}

// metadata takes epoch and step, which are text there.
func (c *contents) metadata(metadata map[string]string) {
	if value, err := strconv.ParseFloat(metadata["epoch"], 64); err == nil {
		c.epoch = &value
	}
	for _, name := range []string{"step", "global_step"} {
		if value, err := strconv.ParseInt(metadata[name], 10, 64); err == nil {
			c.step = &value
		}
	}
}

// judgeSize compares the tensors' extent with the file. Bytes after the last tensor are no corruption.
func (c *contents) judgeSize(path string, size, dataAt int64, sums extent) {
	want := dataAt + sums.end
	c.why = append(c.why, fmt.Sprintf("safetensors header of %d tensors, %d bytes in all", sums.count, want))
	switch {
	case want < 0 || want > size:
		c.findings = append(c.findings, truncated(path, size,
			fmt.Sprintf("the file ends at byte %d inside its tensors", size), fmt.Sprintf("%d bytes, as the header says", want)))
		return
	case sums.sum != sums.end:
		c.complete = Unknown
		c.findings = append(c.findings, corrupt(path, safetensorsPrefix, "the tensors overlap or leave holes", "ranges that follow each other"))
		return
	case want < size:
		c.findings = append(c.findings, finding.Finding{
			Code: "checkpoint_trailing_bytes", Severity: finding.Warning, Where: &finding.Where{Path: path, Byte: want},
			What: fmt.Sprintf("%d bytes follow the last tensor; the tensors themselves are whole", size-want), Expected: fmt.Sprintf("%d bytes", want),
		})
	}
	c.complete = Complete
}
