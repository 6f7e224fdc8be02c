package diagnose

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The classes. Codes are stable.
var (
	importMissing  = class{"import_missing", CategoryDependency, "a module that the interpreter finds", "install it for the interpreter that runs, or run with the one that has it", weightException}
	importShadowed = class{"import_shadowed", CategoryCode, "the installed module", "rename the file of the user's that hides it, and remove its __pycache__", weightException}
	importBroken   = class{"import_broken", CategoryDependency, "an installed module that loads", "reinstall it in a version that fits the others; import it alone to see the first error", weightException}
	inputMissing   = class{"input_missing", CategoryData, "an existing file", "check the path; relative ones start at the job's working directory", weightException}
	permission     = class{"permission_denied", CategoryEnvironment, "access to what it opens", "check the owner and the permissions of that path", weightException}
	diskFull       = class{"disk_full", CategoryEnvironment, "room where the job writes", "free space or quota where the job writes, or keep fewer checkpoints; what was written last is incomplete", weightResource}
	outOfMemory    = class{"out_of_memory", CategoryEnvironment, "a job within its memory", "ask for more memory, or load less at once: smaller batch, fewer loader workers", weightResource}
	gpuOutOfMemory = class{"gpu_out_of_memory", CategoryEnvironment, "a job within the accelerator's memory", "lower the batch size and accumulate gradients, or use lower precision; check that no other process holds the device", weightResource}
	cudaMissing    = class{"cuda_missing", CategoryEnvironment, "an accelerator that the program can use", "ask for a GPU and look at nvidia-smi on that machine, or run on the CPU", weightException}
	cudaBuild      = class{"cuda_missing", CategoryDependency, "a build of the framework with CUDA", "install a build with CUDA that fits the driver, or run on the CPU", weightException}
	cudaMismatch   = class{"cuda_mismatch", CategoryDependency, "driver, CUDA libraries and framework that fit each other", "compare nvidia-smi with torch.version.cuda and install the build for that driver and device", weightException}
	shapeMismatch  = class{"shape_mismatch", CategoryCode, "shapes that fit", "print the shapes at this line; compare the model's sizes with the data's", weightException}
	lossNotFinite  = class{"loss_not_finite", CategoryScientific, "a finite loss", "lower the learning rate, clip gradients, or check the data for extreme and missing values", weightException}
	badCheckpoint  = class{"checkpoint_unreadable", CategoryData, "a whole checkpoint", "resume from an older one; this file is truncated or not a checkpoint", weightException}
	workerKilled   = class{"killed_by_signal", CategoryEnvironment, "workers that live", "most often memory or /dev/shm ran out: use fewer loader workers or ask for more memory", weightException}
	interrupted    = class{"interrupted", CategoryTransient, "an end by itself", "run again and resume", weightLine}
	pythonError    = class{"python_exception", CategoryCode, "a run without an unhandled exception", "read the code at this line", weightException}
	peerFailed     = class{"worker_failed", CategoryUnknown, "workers that live", "another rank failed first; read its log", weightConsequence}
)

// rule gives an exception's class by its name or its message; an empty part matches everything.
type rule struct {
	names   []string
	message func() *regexp.Regexp
	class   class
}

// says gives a pattern that is compiled when it is first asked for: every start of the program would pay for all of them,
// and few of its processes diagnose anything.
func says(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// rules are tried in order. The sentences are those of CPython, NumPy, PyTorch, TensorFlow and JAX.
var rules = []rule{
	{[]string{"ChildFailedError"}, nil, peerFailed},
	{[]string{"ExceptionGroup", "BaseExceptionGroup"}, nil, pythonError.weighing(weightHint)}, // its parts say more
	{nil, says(`Connection closed by peer|Connection reset by peer|Broken pipe|Socket Timeout|remote process exited|NCCL communicator was aborted|recvValue failed`), peerFailed},
	{nil, says(`^DataLoader worker \(pid\(s\)`), peerFailed},
	{nil, says(`unexpected pos \d+ vs \d+`), class{"checkpoint_unfinished", CategoryEnvironment, diskFull.expected, "the exception before it says why; remove the unfinished file", weightConsequence}},
	{[]string{"SignalException"}, nil, class{"interrupted", CategoryTransient, interrupted.expected, interrupted.remedy, weightConsequence}},
	{nil, says(`^DataLoader worker \(pid \d+\) is killed by signal`), workerKilled},
	{[]string{"OutOfMemoryError"}, nil, gpuOutOfMemory},
	{nil, says(`(?:CUDA|HIP|NPU|XPU)\b.*out of memory|CUDA_ERROR_OUT_OF_MEMORY|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED|^OOM when allocating|RESOURCE_EXHAUSTED`), gpuOutOfMemory},
	{[]string{"ResourceExhaustedError"}, nil, gpuOutOfMemory},
	{[]string{"MemoryError", "_ArrayMemoryError", "ArrayMemoryError"}, nil, outOfMemory},
	{nil, says(`DefaultCPUAllocator|Cannot allocate memory|std::bad_alloc`), outOfMemory},
	{nil, says(`No space left on device|Disk quota exceeded|PytorchStreamWriter failed writing|file write failed`), diskFull},
	{nil, says(`not compiled with CUDA|not compiled with (?:ROCm|HIP) enabled`), cudaBuild},
	{nil, says(`Found no NVIDIA driver|No CUDA GPUs are available|no CUDA-capable device|is_available\(\) is False|invalid device ordinal|libcuda\.so|Invalid CUDA 'device=|No HIP GPUs`), cudaMissing},
	{nil, says(`no kernel image is available|CUDA driver version is insufficient|NVIDIA driver on your system is too old|Driver/library version mismatch|forward compatibility was attempted|lib(?:cudart|cublas|cudnn|cufft|curand|cusparse|nccl|nvrtc)[\w-]*\.so|CUDNN_STATUS_NOT_INITIALIZED|PTX was compiled with|undefined symbol: \w*(?:cuda|cublas|nccl)`), cudaMismatch},
	{nil, says(`cannot open shared object file|undefined symbol|version .GLIBC(?:XX)?_|DLL load failed|compiled against (?:API|ABI) version|size changed, may indicate binary incompatibility|numpy\.core\.multiarray failed`), importBroken},
	{[]string{"ModuleNotFoundError"}, nil, importMissing},
	{[]string{"ImportError"}, says(`^No module named`), importMissing},
	{[]string{"ImportError"}, nil, class{"import_missing", CategoryDependency, importMissing.expected, "install the version that has this name, or correct the import", weightException}},
	{[]string{"FileNotFoundError", "NotADirectoryError", "IsADirectoryError"}, nil, inputMissing},
	{[]string{"PermissionError"}, nil, permission},
	{nil, says(`(?i)returned nan values|\bloss\b.{0,40}\b(?:nan|inf(?:inity)?)\b|non-?finite loss|\bnan\b.{0,20}\bloss\b|found invalid values:\s*tensor\(.*nan`), lossNotFinite},
	{[]string{"FloatingPointError", "NanError"}, nil, lossNotFinite},
	{nil, says(`shapes? (?:.{0,80} )?(?:cannot be multiplied|not aligned|mismatch|must match|are incompatible)|size mismatch|[Ss]izes? of tensors? .{0,80}must match|^shape '.*' is invalid for input|cannot reshape|` +
		`could not be broadcast|could not broadcast|Expected input batch_size|^Given (?:groups|normalized_shape)=|expected (?:input|axis|target size|.{0,60}channels).{0,120}(?:but|got|to have)|Target size \(torch\.Size|` +
		`[Dd]imensions must be equal|must have the same (?:shape|length|size|number of)|inhomogeneous shape|mat1 and mat2|mismatch in its core dimension|running_mean should contain|(?i)shape mismatch|incompatible shapes|input\.size\(-1\) must be equal`), shapeMismatch},
	{nil, says(`PytorchStreamReader failed|failed finding central directory|File might be corrupted|file might be corrupted|unexpected EOF, expected|HeaderTooLarge|MetadataIncompleteBuffer`), badCheckpoint},
	{[]string{"UnpicklingError"}, nil, badCheckpoint},
	{[]string{"KeyboardInterrupt"}, nil, interrupted},
}

var (
	missingModule = regexp.MustCompile(`No module named '?([\w.]+)`)
	aboutModule   = regexp.MustCompile(`'([\w.]+)' is not a package|module '([\w.]+)' (?:from '[^']*' )?has no attribute|cannot import name '\w+' from (?:partially initialized module )?'([\w.]+)'`)
	renaming      = regexp.MustCompile(`consider renaming '([^']+)'`)
)

// classify gives the exception's class.
func (e exception) classify() class {
	text := e.text()
	for _, r := range rules {
		if r.names != nil && !slices.Contains(r.names, e.name()) || r.message != nil && !r.message().MatchString(text) {
			continue
		}
		out := r.class
		if match := missingModule.FindStringSubmatch(text); match != nil && out.code == importMissing.code {
			out.remedy = "install " + match[1] + " for the interpreter that runs, or run with the one that has it"
		}
		return out
	}
	if e.reads() && (e.name() == "EOFError" || e.name() == "OSError" && strings.Contains(text, "[Errno 22]")) {
		return badCheckpoint
	}
	out := pythonError
	if e.own() == nil {
		out.remedy = "read the traceback in the log; no frame of it is in the user's own code"
	}
	return out
}

// reads reports whether the exception came up while PyTorch or pickle read a file.
func (e exception) reads() bool {
	return slices.ContainsFunc(e.frames, func(f Frame) bool {
		return strings.Contains(f.Path, "torch/serialization.py") && strings.Contains(f.Function, "load")
	})
}

// claimOf is what the traceback says, nil where it says nothing.
func (s *scanned) claimOf(t traceback, job Job) *claim {
	if len(t.chain) == 0 {
		return nil
	}
	classes := make([]class, len(t.chain))
	for i, e := range t.chain {
		classes[i] = e.classify()
	}
	i := t.main(func(i int) int { return classes[i].weight })
	e := t.chain[i]
	out := s.exceptionClaim(e, classes[i], t)
	if last := t.chain[len(t.chain)-1]; i < len(t.chain)-1 && last.link == linkDirect && last.text() != "" {
		out.what += fmt.Sprintf("; the program raised it on as %s: %s", last.class, last.text())
	}
	for other := range t.chain {
		// What only carries another process's exception says nothing of its own.
		carries := other+1 < len(t.chain) && t.chain[other+1].link == linkOriginal
		if other != i && !carries && t.chain[other].text() != e.text() {
			out.also = append(out.also, s.exceptionClaim(t.chain[other], classes[other].weighing(weightConsequence+1), t))
		}
	}
	for other := len(t.chain) - 1; out.frame == nil && other >= 0; other-- {
		out.frame = t.chain[other].own()
	}
	if file := shadow(e, out.frame, job); file != "" {
		out.class = importShadowed
		out.what += "; " + file + " hides the module of that name"
		out.class.remedy = "rename " + file + ", and remove its __pycache__"
	}
	if t.ignored {
		out.class.weight = weightConsequence
	}
	return &out
}

func (s *scanned) exceptionClaim(e exception, c class, t traceback) claim {
	out := claim{class: c, what: e.class, line: s.line(e.row), frame: e.own(), end: t.end, rank: t.prefix}
	if text := e.text(); text != "" && e.name() != "ChildFailedError" { // the report below that one is elasticAt's
		out.what += ": " + text
	}
	return out
}

// oftenHidden are modules whose names users give to their own files. A file of another name that lacks an attribute is
// taken for the user's own module.
var oftenHidden = strings.Fields(`abc ast calendar code collections copy csv datetime datasets dataclasses decimal email enum evaluate functools
	glob html http inspect io json logging math matplotlib multiprocessing numbers numpy operator pandas pickle platform profile
	queue random re requests scipy secrets select shutil signal site sklearn socket ssl stat statistics string struct subprocess
	tempfile tensorflow test threading time token tokenize torch torchvision tqdm transformers types typing uuid wandb warnings
	xarray yaml zipfile`)

// shadow is the user's file that hides a module which the exception is about, "" for none. The file must be there.
func shadow(e exception, own *Frame, job Job) string {
	text := e.text()
	if match := renaming.FindStringSubmatch(text); match != nil { // CPython 3.13 says it
		return match[1]
	}
	match := aboutModule.FindStringSubmatch(text)
	if match == nil || len(e.frames) == 0 {
		return ""
	}
	module, _, _ := strings.Cut(match[1]+match[2]+match[3], ".")
	inLibrary := installed(e.frames[len(e.frames)-1].Path)
	if match[1] == "" && !inLibrary && !slices.Contains(oftenHidden, module) {
		return ""
	}
	folders := []string{job.WorkDir}
	for _, frame := range append(slices.Clone(e.frames), deref(own)...) {
		if !installed(frame.Path) {
			folders = append(folders, filepath.Dir(job.at(frame.Path)))
		}
	}
	for _, folder := range folders {
		if file := filepath.Join(folder, module+".py"); folder != "" && job.exists(file) {
			return file
		}
	}
	return ""
}

func deref(frame *Frame) []Frame {
	if frame == nil {
		return nil
	}
	return []Frame{*frame}
}
