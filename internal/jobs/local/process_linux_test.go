package local

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestZombieIsDead(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read line")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	ticks, alive := processStart(pid)
	if !alive || ticks == 0 {
		t.Fatalf("a living process: ticks %d, alive %v", ticks, alive)
	}
	if !slices.Contains(descendants(os.Getpid()), pid) {
		t.Error("a child is no descendant")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for alive && time.Now().Before(deadline) {
		time.Sleep(2 * time.Millisecond)
		_, alive = processStart(pid)
	}
	if stat, ok := readStat(pid); !ok || stat.state != 'Z' || alive {
		t.Errorf("an unreaped process: state %q, still there %v, alive %v", stat.state, ok, alive)
	}
	if slices.Contains(descendants(os.Getpid()), pid) {
		t.Error("a zombie counts as a descendant")
	}
}

// Two processes read one after the other can name each other as parents when ids are used again.
func TestBelowEndsInARing(t *testing.T) {
	parents := map[int]int{2: 3, 3: 2, 5: 4, 4: 1, 6: 5}
	if got := below(4, parents, []int{2, 3, 5, 6}); !slices.Equal(got, []int{5, 6}) {
		t.Errorf("below 4: %v, want [5 6]", got)
	}
}
