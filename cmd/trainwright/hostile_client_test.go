//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/trainwright/trainwright/internal/jobs"
)

// mostMemory is what a server may come to hold, in bytes, whatever its client sends. Alone it holds some 25 MB, with the longest line that it takes some 85 MB.
const mostMemory = 128 << 20

// victim is the program itself, without the race detector, at the other end of real pipes.
type victim struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func attack(t *testing.T) *victim {
	t.Helper()
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--workspace", t.TempDir(), "--log-level", "error")
	cmd.Stderr = os.Stderr
	s := started(t, cmd)
	return &victim{t, cmd, s.in, s.out}
}

// told is an answer of the server, or one of its complaints.
type told struct {
	ID    json.RawMessage
	Error *struct{ Code int }
}

func (v *victim) next() told {
	v.t.Helper()
	line, err := v.out.ReadBytes('\n')
	if err != nil {
		v.t.Fatalf("the server is gone: %v", err)
	}
	var r told
	if err := json.Unmarshal(line, &r); err != nil {
		v.t.Fatalf("%v in %.200q", err, line)
	}
	return r
}

// ends closes the client's end, after which the server must be gone within a second, and not have held too much before.
func (v *victim) ends() {
	v.t.Helper()
	held := most(v.t, v.cmd.Process.Pid)
	v.t.Logf("%d MB held at the most", held>>20)
	if held > mostMemory {
		v.t.Errorf("the server held %d MB", held>>20)
	}
	_ = v.in.Close()
	(&served{cmd: v.cmd}).gone(v.t, time.Second)
}

// most is the memory that a process has held at the most, in bytes; where the system keeps no account of that, what it
// holds now.
func most(t *testing.T, pid int) uint64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil {
		_, text, _ := strings.Cut(string(status), "VmHWM:")
		var kilobytes uint64
		if _, err := fmt.Sscan(text, &kilobytes); err != nil {
			t.Fatal(err)
		}
		return kilobytes << 10
	}
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		t.Fatal(err)
	}
	held, err := p.MemoryInfo()
	if err != nil {
		t.Fatal(err)
	}
	return held.RSS
}

// A line of 100 MB is answered with its length and the limit, and costs no memory; the next line is served.
func TestALineOf100MB(t *testing.T) {
	v := attack(t)
	go func() {
		part := strings.Repeat("a", 1<<20)
		_, _ = io.WriteString(v.in, `{"jsonrpc":"2.0","id":1,"method":"ping","x":"`)
		for range 100 {
			_, _ = io.WriteString(v.in, part)
		}
		_, _ = io.WriteString(v.in, "\"}\n"+`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")
	}()
	if r := v.next(); r.Error == nil || r.Error.Code != -32600 || string(r.ID) != "null" {
		t.Errorf("got %+v", r)
	}
	if r := v.next(); r.Error != nil || string(r.ID) != "2" {
		t.Errorf("the next line: %+v", r)
	}
	v.ends()
}

// Bytes that are no message get an error each, and do the server no harm.
func TestGarbage(t *testing.T) {
	v := attack(t)
	random := rand.New(rand.NewPCG(17, 4))
	var lines []string
	for range 2000 {
		noise := make([]byte, 1+random.IntN(4096))
		for i := range noise {
			if noise[i] = byte(random.Uint32()); noise[i] == '\n' {
				noise[i] = 0
			}
		}
		noise[0] = 0xff // neither white space nor the beginning of a value
		lines = append(lines, string(noise))
	}
	lines = append(lines, strings.Repeat("[", 1<<20), strings.Repeat(`{"id":`, 1<<18), `{"jsonrpc":"2.0","id":{},"method":"ping","params":`, "\xef\xbb\xbf{}", "null", `"ping"`, "{}{}",
		`{"jsonrpc":"2.0","id":1e999,"method":7}`, "Content-Length: 40", "GET / HTTP/1.1")
	go func() {
		for _, line := range lines {
			_, _ = io.WriteString(v.in, line+"\n")
		}
		_, _ = io.WriteString(v.in, `{"jsonrpc":"2.0","id":"after","method":"ping"}`+"\n")
	}()
	for i := range lines {
		if r := v.next(); r.Error == nil || r.Error.Code > -32600 {
			t.Fatalf("line %d, %.40q: %+v", i, lines[i], r)
		}
	}
	if r := v.next(); r.Error != nil || string(r.ID) != `"after"` {
		t.Errorf("after it: %+v", r)
	}
	v.ends()
}

// A client that sends and sends and does not read is held back by the pipe, not kept in memory; when it reads at last,
// every request has its one answer.
func TestAFloodIsHeldBack(t *testing.T) {
	const n = 3000
	v := attack(t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range n {
			method, params := "tools/list", `{}` // its answer is some hundred times as long as the question
			if i%3 == 0 {
				method, params = "tools/call", `{"name":"run_list","arguments":{}}`
			}
			fmt.Fprintf(v.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", i, method, params)
		}
	}()
	// It is held back when the server has nothing to do though not all was sent.
	spent := func() float64 {
		p, err := process.NewProcess(int32(v.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		times, err := p.Times()
		if err != nil {
			t.Fatal(err)
		}
		return times.User + times.System
	}
	limit := time.Now().Add(20 * time.Second)
	for before, same := -1.0, 0; same < 10 && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if now := spent(); now != before || now == 0 {
			before, same = now, 0
		} else {
			same++
		}
	}
	select {
	case <-sent:
		t.Error("everything was taken in while nobody read")
	default:
	}
	seen := map[string]bool{}
	for range n {
		r := v.next()
		if r.Error != nil || seen[string(r.ID)] {
			t.Fatalf("got %+v, seen before: %v", r, seen[string(r.ID)])
		}
		seen[string(r.ID)] = true
	}
	v.ends()
}

// A client that is killed, with a call under way, takes its server with it within moments; the job that it waited for
// goes on.
func TestTheClientIsKilled(t *testing.T) {
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	workspace, handoff := exampleWorkspace(t, 100_000)
	call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "trainer",
		"arguments": map[string]any{"step_handoff": handoff, "wait_seconds": 300}}})
	if err != nil {
		t.Fatal(err)
	}
	const client = `import subprocess, sys
p = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdin.write(sys.argv[1].encode() + b"\n")
p.stdin.flush()
print(p.pid, flush=True)
sys.stdin.read()`
	parent := exec.Command(interpreter(t), "-c", client, string(call), binary, "serve", "--workspace", workspace, "--log-level", "error")
	hold, err := parent.StdinPipe() // it reads until it is killed
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Process.Kill() }()
	var pid int32
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	folder, state := waitForJob(t, workspace)
	defer func() { // its folder is removed after the test, and it must not write there any more
		callTool(t, binary, workspace, "job_cancel", map[string]any{"job_id": filepath.Base(folder)})
		for limit := time.Now().Add(20 * time.Second); alive(t, int32(state.PID)) && time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		}
	}()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for limit := time.Now().Add(2 * time.Second); alive(t, pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the server outlives its client")
		}
	}
	if exit, err := jobs.ReadExit(folder); err != nil || exit != nil || !alive(t, int32(state.PID)) {
		t.Errorf("the job ended with the client: %+v, %v", exit, err)
	}
}

// alive says whether a process runs; one that is dead and that nobody has buried does not.
func alive(t *testing.T, pid int32) bool {
	t.Helper()
	p, err := process.NewProcess(pid)
	if err != nil {
		return false
	}
	status, err := p.Status()
	return err == nil && (len(status) == 0 || status[0] != process.Zombie)
}
