package local

import (
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

const mebibyte = 1 << 20

// gpuLimit bounds nvidia-smi, which hangs on a machine whose driver does.
const gpuLimit = 3 * time.Second

// Discover says what this machine offers to a job: processors and memory within the limits of the container, if there is
// one, the disk below the workspace, GPUs and interpreters.
func (r *Runtime) Discover(ctx context.Context) (jobs.Facilities, []finding.Finding, error) {
	facilities := jobs.Facilities{Host: r.host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: processors()}
	var findings []finding.Finding
	unseen := func(what string, err error) {
		findings = append(findings, finding.Finding{Code: "facility_unknown", Severity: finding.Warning,
			What: what + " can't be found out: " + err.Error(), Expected: "an answer of the system", Remedy: "go on; checks against it are left out"})
	}
	total, free, err := memory(ctx)
	if err != nil {
		unseen("memory", err)
	}
	facilities.MemoryTotalMB, facilities.MemoryFreeMB = total, free
	if facilities.DiskFreeMB, err = diskFree(ctx, r.workspace); err != nil {
		unseen("disk space", err)
	}
	if facilities.GPUs, err = gpus(ctx, lookup(r.environ, "PATH")); err != nil {
		unseen("GPUs", err)
	}
	pythons, missing := r.pythons(ctx)
	facilities.Pythons = pythons
	return facilities, append(findings, missing...), ctx.Err()
}

// processors is how many a job may use: GOMAXPROCS starts at the affinity mask and the cgroup's quota, rounded up.
func processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// memory is what the machine has and what is free, in mebibytes, within the cgroup's limit.
func memory(ctx context.Context) (total, free int64, err error) {
	machine, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return 0, 0, err
	}
	totalBytes, freeBytes := machine.Total, machine.Available
	// In a container its own cgroup is mounted here: version 2, then version 1.
	for _, files := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := number(files[0]), number(files[1])
		if limit == 0 || limit >= totalBytes {
			continue
		}
		totalBytes, freeBytes = limit, min(freeBytes, limit-min(limit, used))
	}
	return int64(totalBytes / mebibyte), int64(freeBytes / mebibyte), nil
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

// gpus asks nvidia-smi. Without it there are none.
func gpus(ctx context.Context, path string) ([]jobs.GPU, error) {
	smi := onPath("nvidia-smi", path)
	if smi == "" {
		return []jobs.GPU{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gpuLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, smi, "--query-gpu=index,name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return []jobs.GPU{}, errors.New("nvidia-smi did not answer within " + gpuLimit.String())
	}
	if err != nil {
		return []jobs.GPU{}, err
	}
	return parseGPUs(string(out))
}

// parseGPUs reads nvidia-smi's CSV. A field that it does not know ("[N/A]") is 0.
func parseGPUs(text string) ([]jobs.GPU, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.TrimLeadingSpace, reader.LazyQuotes = true, true
	reader.FieldsPerRecord = 5
	rows, err := reader.ReadAll()
	if err != nil {
		return []jobs.GPU{}, err
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
