package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID is different after each boot (random(4)); "" where it can't be read.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// adoptOrphans makes this process the parent of descendants whose own parent ends (prctl(2), PR_SET_CHILD_SUBREAPER), so
// that a daemon which the command starts can be found and ended. Kernels since 3.4 have it.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// processStat is what trainwright needs of /proc/<pid>/stat (proc(5)).
type processStat struct {
	state  byte
	parent int
	ticks  uint64
}

// readStat reads a process; ok is false where it is gone. The name, in parentheses, may hold any byte.
func readStat(pid int) (stat processStat, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat, false
	}
	_, rest, found := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest)
	if !found || len(fields) < 20 {
		return stat, false
	}
	stat.state = fields[0][0]                                     // field 3
	stat.parent, _ = strconv.Atoi(string(fields[1]))              // field 4
	stat.ticks, _ = strconv.ParseUint(string(fields[19]), 10, 64) // field 22
	return stat, true
}

// dead reports whether the process has ended and only waits to be reaped.
func (s processStat) dead() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// processStart is when a process started, in clock ticks since boot; alive is false for a zombie.
func processStart(pid int) (ticks uint64, alive bool) {
	stat, ok := readStat(pid)
	return stat.ticks, ok && !stat.dead()
}

// processes lists the ids of all processes that can be seen.
func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// descendants lists the living processes below root, zombies excluded but looked through: a dead parent whose children have
// not been handed over yet still connects them.
func descendants(root int) []int {
	parents, living := map[int]int{}, []int{}
	for _, pid := range processes() {
		stat, ok := readStat(pid)
		if !ok {
			continue
		}
		parents[pid] = stat.parent
		if !stat.dead() {
			living = append(living, pid)
		}
	}
	return below(root, parents, living)
}

// marked lists the living processes whose environment names the job's folder. It finds what a lost supervisor left; other
// users' processes can't be read and are none of the job's.
func marked(folder string) []int {
	want := []byte(folderVariable + "=" + folder)
	var out []int
	for _, pid := range processes() {
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || pid == os.Getpid() {
			continue
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if bytes.Equal(variable, want) {
				if _, alive := processStart(pid); alive {
					out = append(out, pid)
				}
				break
			}
		}
	}
	return out
}

// treeMemory is the memory that the processes hold together, in bytes: the sum of their proportional sets, in which a page
// that several share counts once, and never less than the largest peak of one of them (VmHWM), which sees between samples.
func treeMemory(pids []int) int64 {
	var sum, peak int64
	for _, pid := range pids {
		folder := filepath.Join("/proc", strconv.Itoa(pid))
		status, err := kilobytes(filepath.Join(folder, "status"), "VmRSS:", "VmHWM:")
		if err != nil {
			continue
		}
		held := status["VmRSS:"]
		if len(pids) > 1 {
			if rollup, err := kilobytes(filepath.Join(folder, "smaps_rollup"), "Pss:"); err == nil {
				held = rollup["Pss:"]
			}
		}
		sum += held
		peak = max(peak, status["VmHWM:"])
	}
	return max(sum, peak) << 10
}

// kilobytes reads lines such as "VmRSS:     1234 kB".
func kilobytes(path string, names ...string) (map[string]int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		for _, name := range names {
			if len(fields) >= 2 && fields[0] == name {
				out[name], _ = strconv.ParseInt(fields[1], 10, 64)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no such line")
	}
	return out, nil
}
