package diagnose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is a log of testdata and what it must be read as. Evidence is "err:LINE" or "out:LINE" with the byte, frame the
// user's own line with the folder left out, notes the codes beside the cause.
type sample struct {
	name           string
	exit           int
	code, category string
	evidence       string
	at             int64
	frame          string
	notes          string
}

// samples are real logs; testdata/README.md says where each is from. The exit codes are in the folders' exits, too.
var samples = []sample{
	{"made/module_missing_m", 1, "import_missing", "dependency", "err:1", 0, "", ""},
	{"made/submodule_missing", 1, "import_missing", "dependency", "err:3", 74, "", ""},
	{"made/shadowed_package", 1, "import_shadowed", "code", "err:4", 126, "train.py:1", ""},
	{"made/shadowed_stdlib", 1, "import_shadowed", "code", "err:26", 1485, "train.py:1", ""},
	{"made/shadowed_attribute", 1, "import_shadowed", "code", "err:7", 211, "train.py:5", ""},
	{"made/name_missing", 1, "import_missing", "dependency", "err:4", 124, "name_missing.py:1", ""},
	{"made/library_missing", 1, "cuda_mismatch", "dependency", "err:6", 235, "", ""},
	{"made/file_missing", 1, "input_missing", "data", "err:18", 1043, "read_data.py:5", ""},
	{"made/script_missing", 2, "entrypoint_missing", "code", "err:1", 0, "", ""},
	{"made/permission", 1, "permission_denied", "environment", "err:7", 237, "read_closed.py:2", ""},
	{"made/permission_shell", 1, "permission_denied", "environment", "err:1", 0, "", ""},
	{"made/not_executable", 126, "command_not_executable", "environment", "err:1", 0, "", ""},
	{"made/interpreter_missing", 127, "command_not_executable", "environment", "err:1", 0, "", ""},
	{"made/command_missing_bash", 127, "command_not_found", "environment", "err:1", 0, "", ""},
	{"made/command_missing_sh", 127, "command_not_found", "environment", "err:1", 0, "", ""},
	{"made/command_missing_env", 127, "command_not_found", "environment", "err:1", 0, "", ""},
	{"made/disk_full_torch", 134, "disk_full", "environment", "err:6", 326, "save.py:8", "killed_by_signal checkpoint_unfinished"},
	{"made/disk_full_text", 1, "disk_full", "environment", "err:6", 283, "save.py:14", ""},
	{"made/disk_full_shell", 1, "disk_full", "environment", "err:1", 0, "", ""},
	{"made/memory_numpy", 1, "out_of_memory", "environment", "err:10", 523, "big.py:8", ""},
	{"made/memory_torch", 1, "out_of_memory", "environment", "err:7", 308, "big.py:8", ""},
	{"made/memory_cgroup", 137, "killed_by_signal", "environment", "err:1", 0, "", ""},
	{"made/memory_forks", 1, "out_of_memory", "environment", "err:3", 74, "", ""},
	{"made/cuda_not_compiled", 1, "cuda_missing", "dependency", "err:5", 227, "", ""},
	{"made/cuda_checkpoint", 1, "cuda_missing", "environment", "err:26", 1490, "load_cuda.py:9", ""},
	{"made/gpu_memory_raised", 1, "gpu_out_of_memory", "environment", "err:6", 194, "gpu_memory.py:6", ""},
	{"made/shape_linear", 1, "shape_mismatch", "code", "err:18", 841, "shapes.py:14", ""},
	{"made/shape_view", 1, "shape_mismatch", "code", "err:6", 196, "shapes.py:22", ""},
	{"made/shape_loss", 1, "shape_mismatch", "code", "err:9", 598, "shapes.py:26", ""},
	{"made/shape_broadcast", 1, "shape_mismatch", "code", "err:7", 245, "shapes.py:30", ""},
	{"made/shape_state_dict", 1, "shape_mismatch", "code", "err:8", 394, "shapes.py:34", ""},
	{"made/loss_raise", 1, "loss_not_finite", "scientific", "err:7", 351, "diverge.py:14", "loss_not_finite"},
	{"made/loss_exit", 65, "loss_not_finite", "scientific", "out:2", 18, "", ""},
	{"made/loss_anomaly", 1, "loss_not_finite", "scientific", "err:20", 1229, "diverge.py:22", ""},
	{"made/timeout_command", 124, "wall_time_reached", "environment", "", 0, "", ""},
	{"made/signal_segv", 139, "killed_by_signal", "dependency", "err:1", 0, "", ""},
	{"made/signal_segv_handler", 139, "killed_by_signal", "dependency", "err:1", 0, "crash.py:7", ""},
	{"made/signal_kill", 137, "killed_by_signal", "environment", "err:1", 0, "", ""},
	{"made/signal_term", 143, "killed_by_signal", "transient", "err:1", 0, "", ""},
	{"made/signal_abort", 134, "killed_by_signal", "dependency", "err:1", 0, "", ""},
	{"made/signal_int", 130, "interrupted", "transient", "err:6", 216, "crash.py:7", ""},
	{"made/arguments_unknown", 2, "arguments_wrong", "code", "err:3", 101, "", ""},
	{"made/arguments_missing", 2, "arguments_wrong", "code", "err:3", 101, "", ""},
	{"made/arguments_choice", 2, "arguments_wrong", "code", "err:3", 101, "", ""},
	{"made/arguments_type", 2, "arguments_wrong", "code", "err:3", 101, "", ""},
	{"made/chained_from", 1, "python_exception", "code", "err:5", 125, "chained.py:6", "python_exception"},
	{"made/chained_during", 1, "python_exception", "code", "err:18", 697, "chained.py:15", "python_exception"},
	{"made/syntax_error", 1, "python_exception", "code", "err:4", 64, "syntax.py:2", ""},
	{"made/indentation_error", 1, "python_exception", "code", "err:4", 62, "indentation.py:2", ""},
	{"made/exit_message", 1, "command_failed", "unknown", "err:1", 0, "", ""},
	{"made/recursion", 1, "python_exception", "code", "err:14", 441, "recursion.py:2", ""},
	{"made/progress_bar", 1, "python_exception", "code", "err:4", 117010, "progress.py:5", ""},
	{"made/handled_before", 1, "python_exception", "code", "err:309", 9547, "handled.py:9", ""},
	{"made/exception_group", 1, "python_exception", "code", "err:11", 487, "group.py:2", "python_exception"},
	{"made/checkpoint_short", 1, "checkpoint_unreadable", "data", "err:13", 711, "resume.py:11", ""},
	{"made/checkpoint_garbage", 1, "checkpoint_unreadable", "data", "err:13", 724, "resume.py:11", ""},
	{"made/checkpoint_empty", 1, "checkpoint_unreadable", "data", "err:13", 724, "resume.py:11", ""},
	{"made/loader_worker", 1, "python_exception", "code", "err:30", 1592, "workers.py:12", ""},
	{"made/loader_killed", 1, "killed_by_signal", "environment", "err:22", 1098, "loader_killed.py:15", "worker_failed"},
	{"made/spawned", 1, "python_exception", "code", "err:20", 1035, "spawn.py:6", ""},
	{"made/pool", 1, "python_exception", "code", "err:13", 453, "pool.py:5", ""},
	{"made/torchrun_raise", 1, "python_exception", "code", "err:8", 326, "ddp.py:16", "worker_failed worker_failed"},
	{"made/torchrun_record", 1, "python_exception", "code", "err:11", 509, "ddp.py:16", "worker_failed worker_failed"},
	{"made/torchrun_kill", 1, "killed_by_signal", "environment", "err:31", 1659, "", "worker_failed command_failed"},
	{"made/torchrun_tee", 1, "python_exception", "code", "err:8", 403, "ddp.py:16", "worker_failed worker_failed"},
	{"slurm/assert_shape", 1, "shape_mismatch", "code", "err:9", 442, "", ""},
	{"slurm/cancelled", 143, "job_cancelled", "transient", "err:1", 0, "", ""},
	{"slurm/cmdnotfound", 127, "command_not_found", "environment", "err:1", 0, "", ""},
	{"slurm/corrupt_ckpt", 1, "checkpoint_unreadable", "data", "err:11", 702, "train.py:18", ""},
	{"slurm/cuda_missing", 1, "cuda_missing", "dependency", "err:18", 1090, "train.py:14", ""},
	{"slurm/disk_full", 134, "disk_full", "environment", "err:6", 326, "", "killed_by_signal checkpoint_unfinished"},
	{"slurm/modulenotfound", 1, "import_missing", "dependency", "err:4", 131, "train.py:2", ""},
	{"slurm/nan_loss", 42, "loss_not_finite", "scientific", "err:1", 0, "", "loss_not_finite"},
	{"slurm/nofile", 2, "entrypoint_missing", "code", "err:1", 0, "", ""},
	{"slurm/oom", 137, "out_of_memory", "environment", "err:6", 275, "", "killed_by_signal"},
	{"slurm/shadowed_python", 1, "import_missing", "dependency", "err:4", 131, "train.py:2", ""},
	{"slurm/timelimit", 143, "wall_time_reached", "environment", "err:1", 0, "", ""},
	{"slurm/torchrun_fail", 1, "cuda_missing", "dependency", "err:22", 1415, "train.py:14", "worker_failed"},
	{"slurm/traceback_sig", 139, "killed_by_signal", "dependency", "err:1", 0, "", ""},
}

// hides stands for the files beside the scripts of testdata/make.sh.
func hides(path string) bool {
	return strings.HasPrefix(path, "/tmp/train/shadow_") && filepath.Base(path) != "train.py"
}

func (s sample) job() Job {
	base := filepath.Join("testdata", s.name)
	return Job{Logs: []string{base + ".err", base + ".out"}, Code: &s.exit, Exists: hides}
}

// answerMost keeps a cause to half of the 1500 tokens that an answer of job_status may take, at four bytes a token.
const answerMost = 3000

func TestSamples(t *testing.T) {
	for _, want := range samples {
		t.Run(want.name, func(t *testing.T) {
			cause := Why(want.job())
			got := sample{name: want.name, exit: want.exit, code: cause.Code, category: cause.Category}
			if line := cause.Evidence; line != nil {
				got.evidence, got.at = fmt.Sprintf("%s:%d", filepath.Ext(line.Path)[1:], line.Line), line.Byte
				atByte(t, *line)
			}
			if frame := cause.Frame; frame != nil {
				got.frame = fmt.Sprintf("%s:%d", filepath.Base(frame.Path), frame.Line)
			}
			var notes []string
			for _, note := range cause.Notes {
				notes = append(notes, note.Code)
			}
			got.notes = strings.Join(notes, " ")
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
				t.Errorf("%s\n%+v", diff, cause)
			}
			if told, err := json.Marshal(cause); err != nil || len(told) > answerMost {
				t.Errorf("%d bytes of JSON, %v", len(told), err)
			}
			if cause.Remedy == "" || cause.Expected == "" || cause.What == "" {
				t.Errorf("says too little: %+v", cause)
			}
		})
	}
}

// atByte checks that the evidence stands in the file where it says: at that byte, on that line.
func atByte(t *testing.T, line Line) {
	t.Helper()
	data, err := os.ReadFile(line.Path)
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.TrimSuffix(line.Text, "…")
	if number := strings.Count(string(data[:line.Byte]), "\n") + 1; number != line.Line {
		t.Errorf("byte %d is on line %d, not on %d", line.Byte, number, line.Line)
	}
	if rest := strings.TrimLeft(string(data[line.Byte:]), " |"); !strings.HasPrefix(rest, shown) {
		t.Errorf("byte %d holds %.60q, not %.60q", line.Byte, rest, shown)
	}
}

// Every log that make.sh left is in the table, with the exit code that it recorded.
func TestEverySampleIsTested(t *testing.T) {
	tested := map[string]int{}
	for _, s := range samples {
		tested[s.name] = s.exit
	}
	for _, folder := range []string{"made", "slurm"} {
		recorded, err := os.ReadFile(filepath.Join("testdata", folder, "exits"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(recorded)) {
			var name string
			var code int
			if _, err := fmt.Sscan(line, &name, &code); err != nil {
				t.Fatalf("%s/exits: %q: %v", folder, line, err)
			}
			if got, ok := tested[folder+"/"+name]; !ok || got != code {
				t.Errorf("%s/%s ended with %d; the table has %d, %t", folder, name, code, got, ok)
			}
		}
	}
	files, err := filepath.Glob("testdata/*/*.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		name, _ := filepath.Rel("testdata", strings.TrimSuffix(file, filepath.Ext(file)))
		if _, ok := tested[filepath.ToSlash(name)]; !ok {
			t.Errorf("%s is not tested", file)
		}
	}
}
