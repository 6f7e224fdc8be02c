package shell

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

//go:embed discover.sh
var discoverScript string

// Discover says what the machine offers to a job: processors, memory, the disk below the login directory, GPUs as nvidia-smi
// lists them and the interpreter on PATH.
func (r *Runtime) Discover(ctx context.Context) (jobs.Facilities, []finding.Finding, error) {
	said, err := r.shell.Run(ctx, discoverScript, nil, []string{"."})
	if err != nil {
		return jobs.Facilities{}, nil, fmt.Errorf("look at the machine: %w", err)
	}
	facilities, err := parseFacilities(string(said))
	if err != nil {
		return facilities, nil, err
	}
	var findings []finding.Finding
	for _, size := range []struct {
		what  string
		value int64
	}{{"processors", int64(facilities.CPUs)}, {"memory", facilities.MemoryTotalMB}, {"disk space", facilities.DiskFreeMB}} {
		if size.value == 0 {
			findings = append(findings, finding.Finding{Code: "facility_unknown", Severity: finding.Warning,
				What: size.what + " can't be found out on " + facilities.Host, Expected: "an answer of the system", Remedy: "go on; checks against it are left out"})
		}
	}
	return facilities, findings, nil
}

// parseFacilities reads what discover.sh writes.
func parseFacilities(said string) (jobs.Facilities, error) {
	f := jobs.Facilities{GPUs: []jobs.GPU{}, Pythons: []jobs.Python{}}
	var problems []error
	count := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		problems = append(problems, err)
		return n
	}
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "host":
			f.Host = value
		case "os":
			f.OS = strings.ToLower(value)
		case "arch":
			f.Arch = architecture(value)
		case "cpus":
			f.CPUs = int(count(value))
		case "memory_total_mb":
			f.MemoryTotalMB = count(value)
		case "memory_free_mb":
			f.MemoryFreeMB = count(value)
		case "disk_free_mb":
			f.DiskFreeMB = count(value)
		case "gpu":
			if gpu, ok := parseGPU(value); ok {
				f.GPUs = append(f.GPUs, gpu)
			}
		case "python":
			if words := strings.SplitN(value, " ", 3); len(words) == 3 {
				f.Pythons = append(f.Pythons, jobs.Python{Path: words[0], Version: words[1], Prefix: words[2], Why: "the first on PATH"})
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return f, fmt.Errorf("read what the machine said of itself: %w", err)
	}
	return f, nil
}

// parseGPU reads a line of nvidia-smi's CSV. A field that it does not know ("[N/A]") is 0.
func parseGPU(line string) (jobs.GPU, bool) {
	fields := strings.Split(line, ", ")
	if len(fields) != 5 {
		return jobs.GPU{}, false
	}
	index, err := strconv.Atoi(fields[0])
	total, _ := strconv.ParseInt(fields[2], 10, 64)
	free, _ := strconv.ParseInt(fields[3], 10, 64)
	return jobs.GPU{Index: index, Name: fields[1], MemoryTotalMB: total, MemoryFreeMB: free, Driver: fields[4]}, err == nil
}

// architecture is uname's name of a processor as Go has it.
func architecture(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}
