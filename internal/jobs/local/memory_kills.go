package local

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// groupVariable names a folder that stands for the supervisor's memory control group. Nobody has to set it.
const groupVariable = "TRAINWRIGHT_CGROUP"

// oomKill is the line with the number of processes that the kernel killed for memory in a control group: in memory.events of
// version 2 and in memory.oom_control of version 1 (Linux 4.13), see the kernel's admin-guide.
const oomKill = "oom_kill"

// memoryKills watches for kills in the control group of this process, in which the job runs too. Other processes may share
// the group, so that a kill alone is no proof.
type memoryKills struct {
	file   string // "" where there is none
	before uint64
}

// watchMemoryKills begins to watch. Root is "/", or a folder with such a tree in tests; group, where it is not empty, is the
// group's own folder.
func watchMemoryKills(root, group string) memoryKills {
	places := []string{filepath.Join(group, "memory.events")}
	if group == "" {
		places = eventFiles(root)
	}
	for _, file := range places {
		if data, err := os.ReadFile(file); err == nil && strings.Contains("\n"+string(data), "\n"+oomKill+" ") {
			return memoryKills{file, statistic(file, oomKill)}
		}
	}
	return memoryKills{}
}

// eventFiles are where the kernel may count: in the group of this process, or, in a container that sees the path of the
// host, in the mount itself.
func eventFiles(root string) []string {
	data, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		mount, name := "sys/fs/cgroup", "memory.events"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			mount, name = "sys/fs/cgroup/memory", "memory.oom_control"
		}
		for _, group := range []string{path.Clean("/" + fields[2]), "/"} {
			out = append(out, filepath.Join(root, mount, filepath.FromSlash(group), name))
		}
	}
	return out
}

// rose says that there were kills since, "" for none.
func (m memoryKills) rose() string {
	if m.file == "" {
		return ""
	}
	if after := statistic(m.file, oomKill); after > m.before {
		return fmt.Sprintf("%s: %s rose from %d to %d", m.file, oomKill, m.before, after)
	}
	return ""
}
