package local

import (
	"os"
	"strconv"

	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// bootID is the system's own name of this boot (kern.bootsessionuuid), where it has none the time of the boot in seconds, which
// moves when the clock is set; "" where neither can be read.
func bootID() string {
	if session, err := unix.Sysctl("kern.bootsessionuuid"); err == nil && session != "" {
		return session
	}
	seconds, err := host.BootTime()
	if err != nil {
		return ""
	}
	return strconv.FormatUint(seconds, 10)
}

// adoptOrphans does nothing: darwin has no child subreaper. What leaves both the tree and the process group escapes.
func adoptOrphans() {}

// processStart is when a process started, in milliseconds since 1970; alive is false for a zombie.
func processStart(pid int) (ticks uint64, alive bool) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0, false
	}
	created, err := p.CreateTime()
	return uint64(created), err == nil && !zombie(p)
}

func zombie(p *process.Process) bool {
	states, err := p.Status()
	return err == nil && len(states) > 0 && states[0] == process.Zombie
}

// descendants lists the living processes below root and those in the session that root leads: a process whose parent has
// ended belongs to launchd, but stays in its session.
func descendants(root int) []int {
	all, err := process.Processes()
	if err != nil {
		return nil
	}
	parents, living := map[int]int{}, []int{}
	for _, p := range all {
		parent, err := p.Ppid()
		if err != nil {
			continue
		}
		parents[int(p.Pid)] = int(parent)
		if session, err := unix.Getsid(int(p.Pid)); err == nil && session == root && int(p.Pid) != root {
			parents[int(p.Pid)] = root
		}
		if !zombie(p) {
			living = append(living, int(p.Pid))
		}
	}
	return below(root, parents, living)
}

// marked lists the living processes whose environment names the job's folder.
func marked(folder string) []int {
	all, err := process.Processes()
	if err != nil {
		return nil
	}
	var out []int
	for _, p := range all {
		environ, err := p.Environ()
		if err == nil && int(p.Pid) != os.Getpid() && lookup(environ, folderVariable) == folder && !zombie(p) {
			out = append(out, int(p.Pid))
		}
	}
	return out
}

// treeMemory is the memory that the processes hold together, in bytes; pages that they share count more than once.
func treeMemory(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		if p, err := process.NewProcess(int32(pid)); err == nil {
			if memory, err := p.MemoryInfo(); err == nil {
				sum += int64(memory.RSS)
			}
		}
	}
	return sum
}
