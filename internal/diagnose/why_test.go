package diagnose

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write puts a log into a temporary folder.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stderr.log")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const keyError = "Traceback (most recent call last):\n  File \"/srv/train/train.py\", line 3, in <module>\n    x[\"label\"]\nKeyError: 'label'\n"

// brief is a cause in one line: its code, the line of evidence and the user's line.
func brief(c Cause) string {
	out := c.Code
	if c.Evidence != nil {
		out += fmt.Sprintf(" @%d", c.Evidence.Line)
	}
	if c.Frame != nil {
		out += fmt.Sprintf(" %s:%d", c.Frame.Path, c.Frame.Line)
	}
	for _, note := range c.Notes {
		out += " +" + note.Code
	}
	return out
}

func TestWhy(t *testing.T) {
	one, killed := 1, 137
	frames := strings.Repeat("  File \"/usr/lib/python3/dist-packages/torch/x.py\", line 7, in f\n    g()\n", 100)
	for name, c := range map[string]struct {
		log  string
		job  Job
		want string
	}{
		"no log at all":        {"", Job{Code: &one}, "command_failed"},
		"nobody saw it":        {"step 1\n", Job{}, "exit_status_lost @1"},
		"only text":            {"ValueError: this is only printed\nwarning: retrying\n", Job{Code: &one}, "command_failed @2"},
		"without newline":      {strings.TrimSuffix(keyError, "\n"), Job{Code: &one}, "python_exception @4 /srv/train/train.py:3"},
		"line ends of Windows": {strings.ReplaceAll(keyError, "\n", "\r\n"), Job{Code: &one}, "python_exception @4 /srv/train/train.py:3"},
		"coloured, as CPython 3.13 does": {"Traceback (most recent call last):\n  File \x1b[35m\"/srv/train/train.py\"\x1b[0m, line \x1b[35m3\x1b[0m, in \x1b[35m<module>\x1b[0m\n    x\n\x1b[1;35mKeyError\x1b[0m: \x1b[35m'label'\x1b[0m\n",
			Job{Code: &one}, "python_exception @4 /srv/train/train.py:3"},
		"cut off while it was written": {strings.TrimSuffix(keyError, "KeyError: 'label'\n"), Job{Code: &killed}, "killed_by_signal @3"},
		"ranks that write at once": {"[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n[rank0]:   File \"/srv/a.py\", line 1, in f\n[rank1]:   File \"/srv/b.py\", line 2, in g\n" +
			"[rank0]:     f()\n[rank1]:     g()\n[rank0]: RuntimeError: Connection closed by peer\n[rank1]: ValueError: bad shard\n", Job{Code: &one}, "python_exception @8 /srv/b.py:2 +worker_failed"},
		"ranks that say the same": {strings.Repeat(keyError, 3) + "torch.distributed.elastic: x\nTraceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n    main()\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
			Job{Code: &one}, "python_exception @4 /srv/train/train.py:3 +worker_failed"},
		"labels of srun":                 {"0: step 1\n1: " + strings.ReplaceAll(strings.TrimSpace(keyError), "\n", "\n1: ") + "\n0: step 2\n", Job{Code: &one}, "python_exception @5 /srv/train/train.py:3"},
		"an exception that was handled":  {keyError + strings.Repeat("step 1 loss 0.5\n", 100) + "no data left\n", Job{Code: &one}, "command_failed @105"},
		"handled shortly before the end": {keyError + "retry\n" + strings.ReplaceAll(keyError, "KeyError: 'label'", "ValueError: no data"), Job{Code: &one}, "python_exception @9 /srv/train/train.py:3"},
		"ignored at exit": {keyError + "Exception ignored in: <function Loader.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"/srv/train/data.py\", line 9, in __del__\nAttributeError: _pool\n",
			Job{Code: &one}, "python_exception @4 /srv/train/train.py:3 +python_exception"},
		"a deep framework":                     {"Traceback (most recent call last):\n  File \"/srv/train/train.py\", line 3, in <module>\n" + frames + "ValueError: deep\n", Job{Code: &one}, "python_exception @203 /srv/train/train.py:3"},
		"memory by its peak":                   {"step 9\n", Job{Code: &killed, PeakBytes: 3.9e9, MemoryBytes: 4e9}, "out_of_memory @1"},
		"killed with memory to spare":          {"step 9\n", Job{Code: &killed, PeakBytes: 1e9, MemoryBytes: 4e9}, "killed_by_signal @1"},
		"memory, says the system":              {"step 9\nKilled\n", Job{Code: &killed, OutOfMemory: "oom_kill rose"}, "out_of_memory @2 +killed_by_signal"},
		"its time was up":                      {keyError, Job{TimeUp: true, Signal: "SIGTERM"}, "wall_time_reached @4 +python_exception"},
		"killed after the loss was nan":        {"step 8 loss=nan\nstep 9 loss=nan\n", Job{Signal: "SIGKILL"}, "killed_by_signal @2 +loss_not_finite"},
		"nan is no loss":                       {"INFO: info about finance, infinite, nanometers\nmin=nan max=inf\nno loss: information\n", Job{Code: &one}, "command_failed @3"},
		"a disk that filled up":                {"cp: error writing 'x': No space left on device\n" + keyError, Job{Code: &one}, "python_exception @5 /srv/train/train.py:3 +disk_full"},
		"a denial that may have been survived": {"cat: /sys/x: Permission denied\nno configuration for experiment 7\n", Job{Code: &one}, "permission_denied @1 +command_failed"},
		"a command that a script did without":  {"run.sh: line 2: nvidia-smi: command not found\n" + strings.Repeat("step\n", 50) + keyError, Job{Code: &one}, "python_exception @55 /srv/train/train.py:3"},
	} {
		t.Run(name, func(t *testing.T) {
			c.job.Logs = []string{write(t, c.log)}
			if got := brief(Why(c.job)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A crash is the cause whatever the program complained about before, unless what it said last is known to lead to one.
func TestCrash(t *testing.T) {
	missing := "ls: cannot access '/nope': No such file or directory\n"
	steps := strings.Repeat("step 1 loss 0.5\n", 12)
	codes := map[string]int{"SIGILL": 132, "SIGABRT": 134, "SIGBUS": 135, "SIGFPE": 136, "SIGSEGV": 139}
	for name, c := range map[string]struct{ log, signal, want, says string }{
		"a missing file before":         {missing, "SIGSEGV", "killed_by_signal @1 +input_missing", "SIGSEGV"},
		"an illegal instruction":        {missing, "SIGILL", "killed_by_signal @1 +input_missing", "SIGILL"},
		"a bus error":                   {missing, "SIGBUS", "killed_by_signal @1 +input_missing", "SIGBUS"},
		"a floating point exception":    {missing, "SIGFPE", "killed_by_signal @1 +input_missing", "SIGFPE"},
		"a missing file and its shell":  {missing + "run.sh: line 3: 417 Segmentation fault      python3 train.py\n", "SIGSEGV", "killed_by_signal @2 +input_missing", "SIGSEGV"},
		"a command that was not found":  {"run.sh: line 2: nvidia-smi: command not found\nstep 1\n", "SIGSEGV", "killed_by_signal @2 +command_not_found", "SIGSEGV"},
		"a denied access":               {"cat: /sys/x: Permission denied\n", "SIGABRT", "killed_by_signal @1 +permission_denied", "SIGABRT"},
		"another process's end":         {"run.sh: line 2: 17 Terminated              sleep 9\nstep 1\n", "SIGSEGV", "killed_by_signal @2", "SIGSEGV"},
		"a traceback at the end":        {keyError, "SIGSEGV", "python_exception @4 /srv/train/train.py:3 +killed_by_signal", "KeyError"},
		"a traceback that was survived": {keyError + steps, "SIGSEGV", "killed_by_signal @16 +python_exception", "SIGSEGV"},
		"memory at the end":             {"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n", "SIGABRT", "out_of_memory @1 +out_of_memory +killed_by_signal", "bad_alloc"},
		"memory long before":            {"fork: Cannot allocate memory\n" + steps, "SIGSEGV", "killed_by_signal @13 +out_of_memory", "SIGSEGV"},
		"the accelerator's memory":      {missing + "CUDA error: out of memory\n", "SIGABRT", "gpu_out_of_memory @2 +killed_by_signal +input_missing", "out of memory"},
		"a driver that does not fit":    {"CUDA driver version is insufficient for CUDA runtime version\n", "SIGABRT", "cuda_mismatch @1 +killed_by_signal", "insufficient"},
		"a full /dev/shm":               {"cp: error writing '/dev/shm/x': No space left on device\n", "SIGBUS", "disk_full @1 +killed_by_signal", "No space"},
		"an error of CUDA that aborts": {missing + "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered\nframe #0: f\n", "SIGABRT",
			"killed_by_signal @2 +input_missing", "SIGABRT: the program aborted: terminate called after throwing an instance of 'c10::Error' what():  CUDA error: an illegal memory access"},
		"a corrupted heap":        {missing + "free(): invalid pointer\nAborted (core dumped)\n", "SIGABRT", "killed_by_signal @2 +input_missing", "SIGABRT: the program aborted: free(): invalid pointer"},
		"a failed assertion in C": {"train: x.c:3: main: Assertion `n > 0' failed.\n" + missing, "SIGABRT", "killed_by_signal @1 +input_missing", "Assertion"},
		"the handler of Python":   {missing + "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File \"/srv/a.py\", line 7 in f\n", "SIGSEGV", "killed_by_signal @2 /srv/a.py:7 +input_missing", "SIGSEGV"},
	} {
		t.Run(name, func(t *testing.T) {
			code := codes[c.signal]
			for how, job := range map[string]Job{"by signal": {Signal: c.signal}, "by exit code": {Code: &code}} {
				job.Logs = []string{write(t, c.log)}
				cause := Why(job)
				if got := brief(cause); got != c.want || !strings.Contains(cause.What, c.says) {
					t.Errorf("%s: %s, want %s\n%s, want %s", how, got, c.want, cause.What, c.says)
				}
				if cause.Code == "killed_by_signal" && cause.Category != CategoryDependency {
					t.Errorf("%s: category %s", how, cause.Category)
				}
			}
		})
	}
	one := 1
	log := write(t, "terminate called after throwing an instance of 'c10::Error'\n"+missing)
	if got := brief(Why(Job{Logs: []string{log}, Code: &one})); got != "input_missing @2" {
		t.Errorf("an abort of a child that a script went on after: %s", got)
	}
}

// Sentences that nothing on a machine without a GPU or with one version of each library says.
func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"RuntimeError: CUDA error: no kernel image is available for execution on the device":                                                     "cuda_mismatch",
		"RuntimeError: The NVIDIA driver on your system is too old (found version 10010).":                                                       "cuda_mismatch",
		"RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU":                                          "cuda_missing",
		"RuntimeError: No CUDA GPUs are available":                                                                                               "cuda_missing",
		"ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory":                                                  "cuda_mismatch",
		"ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /x/_ext.so)":                                          "import_broken",
		"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 5.80 GiB total capacity)":                                         "gpu_out_of_memory",
		"RuntimeError: HIP out of memory. Tried to allocate 20.00 MiB":                                                                           "gpu_out_of_memory",
		"RuntimeError: CUDA error: out of memory":                                                                                                "gpu_out_of_memory",
		"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,512]":                          "gpu_out_of_memory",
		"RuntimeError: The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 1":                                "shape_mismatch",
		"RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 4 but got size 5":                                        "shape_mismatch",
		"ValueError: shapes (2,5) and (3,4) not aligned: 5 (dim 1) != 3 (dim 0)":                                                                 "shape_mismatch",
		"RuntimeError: Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 1, 28, 28] to have 3 channels, but got 1 channels instead": "shape_mismatch",
		"ValueError: loss is inf at step 1, stopping training":                                                                                   "loss_not_finite",
		"ValueError: the loss function 'info' is not known":                                                                                      "python_exception",
		"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory":                                         "checkpoint_unreadable",
		"AssertionError: expected 3 epochs":                                                                                                      "python_exception",
		"torch.distributed.DistBackendError: NCCL error, remote process exited or there was a network error":                                     "worker_failed",
	} {
		code := 1
		log := "Traceback (most recent call last):\n  File \"/srv/train/train.py\", line 3, in <module>\n    run()\n" + text + "\n"
		if got := Why(Job{Logs: []string{write(t, log)}, Code: &code}); got.Code != want || got.Frame == nil {
			t.Errorf("%s: %s, want %s", text, got.Code, want)
		}
	}
}

// A user's own module that lacks a name hides nothing; one that lies before an installed module of its name does.
func TestShadow(t *testing.T) {
	log := func(text string) string {
		return write(t, "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    run()\n"+text+"\n")
	}
	for _, c := range []struct{ text, file, want string }{
		{"AttributeError: module 'models' has no attribute 'Net'", "/w/models.py", "python_exception"},
		{"AttributeError: module 'numpy' has no attribute 'float'", "", "python_exception"},
		{"AttributeError: module 'numpy' has no attribute 'float'", "/w/numpy.py", "import_shadowed"},
		{"AttributeError: partially initialized module 'random' has no attribute 'x' (most likely due to a circular import)", "/w/random.py", "import_shadowed"},
		{"AttributeError: module 'random' has no attribute 'x' (consider renaming '/w/random.py' since it has the same name)", "", "import_shadowed"},
	} {
		code := 1
		exists := func(path string) bool { return filepath.ToSlash(path) == c.file }
		if got := Why(Job{Logs: []string{log(c.text)}, Code: &code, WorkDir: "/w", Exists: exists}); got.Code != c.want {
			t.Errorf("%s with %q: %s, want %s", c.text, c.file, got.Code, c.want)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	code := 1
	log := strings.ReplaceAll(keyError, "'label'", "'token=ghp_16C7e42F292c6912E7710c838347Ae178B4a'")
	log = strings.ReplaceAll(log, `x["label"]`, "login(token=\"ghp_16C7e42F292c6912E7710c838347Ae178B4a\")")
	cause := Why(Job{Logs: []string{write(t, log)}, Code: &code})
	if shown := fmt.Sprintf("%+v %+v %+v", cause, *cause.Evidence, *cause.Frame); strings.Contains(shown, "16C7e42F") || !strings.Contains(shown, "****") {
		t.Error(shown)
	}
}

func TestLogThatCannotBeRead(t *testing.T) {
	code := 1
	cause := Why(Job{Logs: []string{t.TempDir(), write(t, keyError), filepath.Join(t.TempDir(), "missing")}, Code: &code})
	if got, want := brief(cause), "python_exception @4 /srv/train/train.py:3 +log_unreadable"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// long is a log of any size that takes no room: lines of text with a traceback at each of the given offsets.
type long struct {
	size int64
	at   []int64
}

func (l long) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), l.size-off))
	for i := range p[:n] {
		p[i] = "step 1 loss 0.5, INFO nothing new here\n"[(off+int64(i))%39]
	}
	for _, at := range l.at {
		for i := range len(keyError) {
			if where := at + int64(i) - off; where >= 0 && where < int64(n) {
				p[where] = keyError[i]
			}
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// A traceback is found wherever blocks and lanes meet, and its line is counted.
func TestScanFindsAtEveryBorder(t *testing.T) {
	for _, at := range []int64{0, 39, blockBytes - 40, blockBytes - 1, blockBytes, blockBytes / 4, blockBytes/4 - 3, 3*blockBytes/4 - 10, 2*blockBytes - 16, 3*blockBytes - int64(len(keyError))} {
		log := long{size: 3 * blockBytes, at: []int64{at}}
		s, err := scan("log", log, log.size)
		if err != nil {
			t.Fatal(err)
		}
		whole := make([]byte, log.size)
		_, _ = log.ReadAt(whole, 0)
		if got := s.places[0]; len(got) != 1 || got[0] != at {
			t.Errorf("at %d: found at %v", at, got)
		}
		if got, want := s.lineAt(at+5), bytes.Count(whole[:at+5], []byte{'\n'})+1; got != want {
			t.Errorf("at %d: line %d, want %d", at, got, want)
		}
	}
}

// Of a sign that is everywhere the first and the last places are kept.
func TestScanKeepsTheFirstAndTheLast(t *testing.T) {
	var at []int64
	for offset := int64(0); offset < 2*blockBytes-1000; offset += 997 {
		at = append(at, offset)
	}
	log := long{size: 2 * blockBytes, at: at}
	s, err := scan("log", log, log.size)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.places[0][firstKept:], at[len(at)-lastKept:]; !cmp.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// A log sixteen times as long takes the same memory.
func TestScanMemoryIsBounded(t *testing.T) {
	used := func(size int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := scan("log", long{size: size, at: []int64{size - 1000}}, size); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	seeker() // built once
	if small, large := used(2<<20), used(32<<20); large > small+64<<10 || large > 4<<20 {
		t.Errorf("%d bytes for 32 MB, %d for 2 MB", large, small)
	}
}

// FuzzWhy looks for text that makes the diagnosis fail, give a place outside the log or say too much.
func FuzzWhy(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.err")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) < 8<<10 {
			f.Add(data, 1)
		}
	}
	f.Add([]byte("0: Traceback (most recent call last)\r\n\x1b[31m  | File \"\", line 99999999999999999999\nA: \xff"), 139)
	path := filepath.Join(f.TempDir(), "stderr.log")
	f.Fuzz(func(t *testing.T, log []byte, code int) {
		if err := os.WriteFile(path, log, 0o644); err != nil {
			t.Fatal(err)
		}
		cause := Why(Job{Logs: []string{path}, Code: &code, Exists: func(string) bool { return true }})
		if cause.Code == "" || cause.Category == "" || cause.Remedy == "" || len(cause.Notes) > notesMost || len(cause.What) > textShown+len("…") {
			t.Errorf("%+v", cause)
		}
		if line := cause.Evidence; line != nil && (line.Byte < 0 || line.Byte >= int64(len(log)) || line.Line != bytes.Count(log[:line.Byte], []byte{'\n'})+1) {
			t.Errorf("evidence %+v in %d bytes", line, len(log))
		}
	})
}
