package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// gpuLimit bounds a vendor's tool, which hangs on a machine whose driver does.
const gpuLimit = 3 * time.Second

// gpuTool is a vendor's tool with what it is asked and how its answer is read.
type gpuTool struct {
	name      string
	arguments []string
	parse     func([]byte) ([]jobs.GPU, error)
	// hides are the variables that hide devices from a job.
	hides []string
}

// gpuTools are asked in this order; the first that lists a device is believed. hy-smi is the rocm-smi of Hygon's DTK with
// the same switches; a machine may have both names for one tool.
var gpuTools = []gpuTool{
	{"nvidia-smi", []string{"--query-gpu=index,name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits"}, parseNvidia, []string{"CUDA_VISIBLE_DEVICES"}},
	{"hy-smi", []string{"--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json"}, parseROCm, []string{"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}},
	{"rocm-smi", []string{"--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json"}, parseROCm, []string{"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}},
}

// gpus lists the devices that a job sees, with what says so. The error is of the tools that did not answer, where none did.
func gpus(ctx context.Context, environ []string) ([]jobs.GPU, []jobs.Evidence, error) {
	var said []jobs.Evidence
	var failed error
	asked := false
	for _, tool := range gpuTools {
		file := onPath(tool.name, lookup(environ, "PATH"))
		if file == "" {
			continue
		}
		asked = true
		list, err := tool.ask(ctx, file, environ)
		if err != nil {
			failed = errors.Join(failed, err)
			said = append(said, jobs.Evidence{From: file, Says: err.Error()})
			continue
		}
		said = append(said, jobs.Evidence{From: file, Says: fmt.Sprintf("%d devices", len(list))})
		if len(list) == 0 {
			continue
		}
		seen, hidden := visible(list, tool.hides, environ)
		if hidden.From != "" {
			said = append(said, hidden)
		}
		return seen, said, nil
	}
	if !asked {
		said = append(said, jobs.Evidence{From: "PATH", Says: "no nvidia-smi, hy-smi or rocm-smi: no GPU is known"})
	}
	return []jobs.GPU{}, said, failed
}

func (tool gpuTool) ask(ctx context.Context, file string, environ []string) ([]jobs.GPU, error) {
	ctx, cancel := context.WithTimeout(ctx, gpuLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, tool.arguments...)
	cmd.Env = environ
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer within %s", tool.name, gpuLimit)
	case err != nil:
		// nvidia-smi says on stdout why it can't talk to the driver.
		why, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(stderr.String(), string(out))), "\n")
		return nil, fmt.Errorf("%s: %w: %.200s", tool.name, err, why)
	}
	list, err := tool.parse(out)
	if err != nil {
		return nil, fmt.Errorf("the answer of %s can't be read: %w", tool.name, err)
	}
	return list, nil
}

// visible leaves out what a variable hides from the job. Identifiers other than numbers are not resolved: every device
// stays then, and the evidence says so.
func visible(list []jobs.GPU, names, environ []string) ([]jobs.GPU, jobs.Evidence) {
	for _, name := range names {
		if !slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, name+"=") }) {
			continue
		}
		value := lookup(environ, name)
		says := jobs.Evidence{From: name, Says: fmt.Sprintf("the job sees %q of %d devices", value, len(list))}
		out := []jobs.GPU{}
		for _, word := range strings.Split(value, ",") {
			index, err := strconv.Atoi(strings.TrimSpace(word))
			if strings.TrimSpace(word) == "" || err == nil && index < 0 || word == "NoDevFiles" {
				break // this and what follows is not seen
			}
			at := slices.IndexFunc(list, func(g jobs.GPU) bool { return g.Index == index })
			if err != nil {
				says.Says += "; which these are is not resolved"
				return list, says
			}
			if at < 0 {
				break
			}
			out = append(out, list[at])
		}
		return out, says
	}
	return list, jobs.Evidence{}
}

// parseNvidia reads nvidia-smi's CSV. A field that it does not know ("[N/A]") is 0.
func parseNvidia(text []byte) ([]jobs.GPU, error) {
	reader := csv.NewReader(bytes.NewReader(text))
	reader.TrimLeadingSpace, reader.LazyQuotes = true, true
	reader.FieldsPerRecord = 5
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	list := make([]jobs.GPU, len(rows))
	for i, row := range rows {
		index, _ := strconv.Atoi(row[0])
		total, _ := strconv.ParseInt(row[2], 10, 64)
		free, _ := strconv.ParseInt(row[3], 10, 64)
		list[i] = jobs.GPU{Index: index, Name: row[1], MemoryTotalMB: total, MemoryFreeMB: free, Driver: row[4]}
	}
	return list, nil
}

// parseROCm reads the JSON of rocm-smi: an object of "card0", "card1", … and "system", of texts. Names of fields differ in
// case between versions ("Card series", "Card Series"), and the unit of memory stands in the name.
func parseROCm(text []byte) ([]jobs.GPU, error) {
	// Warnings stand before the object.
	start := bytes.IndexByte(text, '{')
	if start < 0 {
		if len(bytes.TrimSpace(text)) == 0 {
			return []jobs.GPU{}, nil
		}
		return nil, fmt.Errorf("no JSON object in %.80q", text)
	}
	var answer map[string]map[string]any
	if err := json.NewDecoder(bytes.NewReader(text[start:])).Decode(&answer); err != nil {
		return nil, err
	}
	list := []jobs.GPU{}
	for name, card := range answer {
		index, err := strconv.Atoi(strings.TrimPrefix(name, "card"))
		if err != nil || !strings.HasPrefix(name, "card") {
			continue
		}
		gpu := jobs.GPU{Index: index, Driver: field(answer["system"], "driver version")}
		for _, called := range []string{"card series", "card model", "card sku", "device name"} {
			gpu.Name = cmp.Or(gpu.Name, field(card, called))
		}
		total, used := megabytes(card, "vram total memory"), megabytes(card, "vram total used memory")
		gpu.MemoryTotalMB, gpu.MemoryFreeMB = total, max(0, total-used)
		list = append(list, gpu)
	}
	slices.SortFunc(list, func(a, b jobs.GPU) int { return cmp.Compare(a.Index, b.Index) })
	return list, nil
}

// field is the text of a field whose name begins so, in whatever case.
func field(card map[string]any, name string) string {
	for key, value := range card {
		if strings.HasPrefix(strings.ToLower(key), name) {
			return strings.TrimSpace(fmt.Sprint(value))
		}
	}
	return ""
}

// megabytes reads a field such as "VRAM Total Memory (B)", in mebibytes.
func megabytes(card map[string]any, name string) int64 {
	for unit, size := range map[string]int64{"(b)": 1, "(kib)": 1 << 10, "(mib)": 1 << 20} {
		if n, err := strconv.ParseInt(field(card, name+" "+unit), 10, 64); err == nil {
			return n * size / mebibyte
		}
	}
	return 0
}
