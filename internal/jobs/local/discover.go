package local

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

const mebibyte = 1 << 20

// Survey is what this machine offers, with what each answer rests on.
type Survey struct {
	jobs.Facilities
	Evidence []jobs.Evidence `json:"evidence"`
	// Environments are the places where a Python for the workspace was looked for, in the order of preference.
	Environments []Environment `json:"environments"`
}

// Discover says what this machine offers to a job: processors and memory within the limits of the container, if there is
// one, the disk below the workspace, GPUs and interpreters.
func (r *Runtime) Discover(ctx context.Context) (jobs.Facilities, []finding.Finding, error) {
	survey, findings, err := r.Survey(ctx)
	return survey.Facilities, findings, err
}

// Survey is Discover with the evidence. What could not be found out is a warning, facility_unknown.
func (r *Runtime) Survey(ctx context.Context) (Survey, []finding.Finding, error) {
	s, findings := r.hardware(ctx)
	var missing []finding.Finding
	s.Pythons, s.Environments, missing = r.pythons(ctx)
	return s, append(findings, missing...), ctx.Err()
}

// Hardware is Survey without the interpreters, which take seconds to answer.
func (r *Runtime) Hardware(ctx context.Context) (Survey, []finding.Finding, error) {
	s, findings := r.hardware(ctx)
	return s, findings, ctx.Err()
}

func (r *Runtime) hardware(ctx context.Context) (Survey, []finding.Finding) {
	s := Survey{Facilities: jobs.Facilities{Host: r.host, OS: runtime.GOOS, Arch: runtime.GOARCH, Pythons: []jobs.Python{}}, Evidence: []jobs.Evidence{}, Environments: []Environment{}}
	var findings []finding.Finding
	at := r.now().UTC()
	says := func(from, what string) {
		s.Evidence = append(s.Evidence, jobs.Evidence{From: from, Says: what, At: at})
	}
	unseen := func(what string, err error) {
		findings = append(findings, finding.Finding{Code: "facility_unknown", Severity: finding.Warning,
			What: what + " can't be found out: " + err.Error(), Expected: "an answer of the system", Remedy: "go on; checks against it are left out"})
	}
	limits := readQuota("/")
	s.CPUs = processors(limits)
	says(cmp.Or(limits.cpusFrom, "the system"), limits.cpuEvidence(runtime.NumCPU()))
	total, free, from, err := memory(ctx, limits)
	if err != nil {
		unseen("memory", err)
	} else {
		says(from, fmt.Sprintf("%d MiB of memory, %d free", total, free))
	}
	s.MemoryTotalMB, s.MemoryFreeMB = total, free
	if s.DiskFreeMB, err = diskFree(ctx, r.workspace); err != nil {
		unseen("disk space", err)
	} else {
		says(existing(r.workspace), fmt.Sprintf("%d MiB of disk may still be written", s.DiskFreeMB))
	}
	list, said, err := gpus(ctx, r.environ)
	if err != nil {
		unseen("GPUs", err)
	}
	s.GPUs = list
	for _, evidence := range said {
		says(evidence.From, evidence.Says)
	}
	return s, findings
}

// processors is how many a job may use: those of the affinity mask, within the quota, of which a part counts as a whole.
func processors(limits quota) int {
	allowed := runtime.NumCPU()
	if limits.cpus > 0 {
		allowed = min(allowed, max(1, int(math.Ceil(limits.cpus))))
	}
	return allowed
}

// memory is what the machine has and what is free, in mebibytes, within the limit of the control groups.
func memory(ctx context.Context, limits quota) (total, free int64, from string, err error) {
	machine, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return 0, 0, "", err
	}
	totalBytes, freeBytes, from := machine.Total, machine.Available, "the system"
	if limits.memory > 0 && limits.memory < totalBytes {
		totalBytes, from = limits.memory, limits.memoryFrom
		freeBytes = min(freeBytes, limits.memory-min(limits.memory, limits.used))
	}
	return int64(totalBytes / mebibyte), int64(freeBytes / mebibyte), from, nil
}

// number is the count in a file of one line; 0 where there is none ("max" is no limit).
func number(path string) uint64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n
}

// diskFree is what a user may still write below path, in mebibytes. Where path is not there yet, its nearest parent counts.
func diskFree(ctx context.Context, path string) (int64, error) {
	usage, err := disk.UsageWithContext(ctx, existing(path))
	if err != nil {
		return 0, err
	}
	return int64(min(usage.Free/mebibyte, math.MaxInt64)), nil
}

// existing is path, or the nearest of its parents that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path
		}
		path = parent
	}
}
