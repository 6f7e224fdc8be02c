package local

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// quota is what control groups leave of a machine: the tightest limit on the way from the process's own group to the top.
// Zero is no limit. The files are those of the kernel's admin-guide/cgroup-v1 and cgroup-v2.
type quota struct {
	cpus     float64
	cpusFrom string
	// memory is the limit in bytes; used is what counts against it and can't be taken back: without the page cache.
	memory, used uint64
	memoryFrom   string
}

// readQuota reads the groups of this process. Root is "/", a folder with such a tree in tests; a system without control
// groups has no limit.
func readQuota(root string) quota {
	var q quota
	data, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return q
	}
	for _, line := range strings.Split(string(data), "\n") {
		_, rest, ok := strings.Cut(line, ":")
		controllers, group, found := strings.Cut(rest, ":")
		if !ok || !found {
			continue
		}
		if controllers == "" {
			q.climb(root, "sys/fs/cgroup", group, version2)
			continue
		}
		for _, controller := range strings.Split(controllers, ",") {
			if controller == "cpu" || controller == "memory" {
				q.climb(root, path.Join("sys/fs/cgroup", controller), group, version1)
			}
		}
	}
	return q
}

// groupFiles are the names in which a version of control groups keeps its limits.
type groupFiles struct{ cpu, memory, used, cache string }

var (
	version2 = groupFiles{"cpu.max", "memory.max", "memory.current", "inactive_file"}
	version1 = groupFiles{"cpu.cfs_quota_us", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
)

// climb takes the tightest limits from a group up to the mount. Inside a container the group's path may be the host's, and
// not be there; its own group is then the mount itself.
func (q *quota) climb(root, mount, group string, files groupFiles) {
	group = path.Clean("/" + group)
	for {
		dir := filepath.Join(root, mount, filepath.FromSlash(group))
		shown := "/" + path.Join(mount, group)
		if cpus := cpuLimit(dir, files); cpus > 0 && (q.cpus == 0 || cpus < q.cpus) {
			q.cpus, q.cpusFrom = cpus, path.Join(shown, files.cpu)
		}
		if limit := number(filepath.Join(dir, files.memory)); limit > 0 && (q.memory == 0 || limit < q.memory) {
			used := number(filepath.Join(dir, files.used))
			q.memory, q.used, q.memoryFrom = limit, used-min(used, statistic(filepath.Join(dir, "memory.stat"), files.cache)), path.Join(shown, files.memory)
		}
		if group == "/" {
			return
		}
		group = path.Dir(group)
	}
}

// cpuLimit is quota divided by period; 0 where there is none ("max", -1).
func cpuLimit(dir string, files groupFiles) float64 {
	data, err := os.ReadFile(filepath.Join(dir, files.cpu))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if files.cpu == version1.cpu {
		fields = append(fields, strconv.FormatUint(number(filepath.Join(dir, "cpu.cfs_period_us")), 10))
	}
	if len(fields) < 2 {
		return 0
	}
	share, err := strconv.ParseFloat(fields[0], 64)
	period, periodErr := strconv.ParseFloat(fields[1], 64)
	if err != nil || periodErr != nil || share <= 0 || period <= 0 {
		return 0
	}
	return share / period
}

// statistic is one line of memory.stat; 0 where it is not there.
func statistic(file, name string) uint64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		if key, value, ok := strings.Cut(line, " "); ok && key == name {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64) // 0 where it is no number
			return n
		}
	}
	return 0
}

// cpuEvidence says what the number of processors rests on.
func (q quota) cpuEvidence(allowed int) string {
	if q.cpus == 0 {
		return fmt.Sprintf("%d processors may be used, no quota", allowed)
	}
	return fmt.Sprintf("%d processors may be used, a quota of %.3g of them", allowed, q.cpus)
}
