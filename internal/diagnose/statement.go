package diagnose

import (
	"regexp"
	"strings"
)

// statement is a line that speaks for itself.
type statement struct {
	// says matches the line; a first group is what it is about.
	says  func() *regexp.Regexp
	what  string
	class class
}

// weighing is the class with another weight.
func (c class) weighing(weight int) class {
	c.weight = weight
	return c
}

var (
	commandMissing = class{"command_not_found", CategoryEnvironment, "a command on PATH or an existing path", "install it, load its module, or send the right path", weightLine + 6}
	notExecutable  = class{"command_not_executable", CategoryEnvironment, "an executable file and a working directory that exist", "check the path, its permissions and the interpreter in its first line, or run it through its interpreter", weightLine + 6}
	entryMissing   = class{"entrypoint_missing", CategoryCode, "an existing script", "check the entry point's path; relative ones start at the job's working directory", weightLine + 6}
	wrongArguments = class{"arguments_wrong", CategoryCode, "arguments that the script takes", "run it with --help and send the names and values it lists", weightLine + 6}
	timeUp         = class{"wall_time_reached", CategoryEnvironment, "an end within the limit", "resume from the last checkpoint, with a higher limit or less work", weightSystem}
	killed         = class{"killed_by_signal", CategoryUnknown, "an end by itself", "read the end of the log", weightLine - 2}
	systemMemory   = outOfMemory.weighing(weightSystem)
)

// statements are tried in order on each line that a sign of kindStatement points to. The sentences are those of bash, dash,
// zsh and coreutils; of Linux (mm/oom_kill.c), SLURM 22.05, PBS and LSF; of CUDA, argparse and click.
var statements = []statement{
	{says(`oom-kill|oom_kill event|[Oo]ut of memory: Kill(?:ed)? process|[Ee]xceeded (?:job|step) memory limit|TERM_MEMLIMIT`), "the system ended a process for memory", systemMemory},
	{says(`DUE TO TIME LIMIT|walltime \d+ exceeded limit|TERM_RUNLIMIT`), "the job's time limit was reached", timeUp},
	{says(`CANCELLED AT .* DUE TO PREEMPTION`), "the job was preempted", class{"job_preempted", CategoryTransient, timeUp.expected, "submit again and resume from the last checkpoint", weightSystem}},
	{says(`CANCELLED AT .* DUE TO NODE`), "the node failed", class{"node_failed", CategoryPlatform, timeUp.expected, "submit again and resume from the last checkpoint; leave out that node", weightSystem}},
	{says(`\*\*\* (?:JOB|STEP) .* CANCELLED AT`), "the job was cancelled", class{"job_cancelled", CategoryTransient, killed.expected, "somebody or something outside cancelled it; submit again if that was not meant", weightSystem - 1}},
	{says(`No space left on device|Disk quota exceeded`), "the disk is full", diskFull.weighing(weightLine + 8)},
	{says(`CUDA_ERROR_OUT_OF_MEMORY|(?:CUDA|HIP).{0,20}out of memory|cudaErrorMemoryAllocation`), "the accelerator's memory is used up", gpuOutOfMemory.weighing(weightLine + 8)},
	{says(`CUDA driver version is insufficient|no kernel image is available|Driver/library version mismatch|NVIDIA driver on your system is too old|lib(?:cudart|cublas|cudnn|nccl)[\w-]*\.so[^ ]*: cannot open`), "CUDA does not fit", cudaMismatch.weighing(weightLine + 5)},
	{says(`CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|no CUDA-capable device|Found no NVIDIA driver|libcuda\.so[^ ]*: cannot open`), "there is no usable accelerator", cudaMissing.weighing(weightLine + 5)},
	{says(`std::bad_alloc|[Cc]annot allocate memory`), "no memory could be had", outOfMemory.weighing(weightLine + 8)},
	{says(`^\S*\bpython[\d.]*: can't open file '([^']+)'.*No such file`), "Python did not find the script", entryMissing},
	{says(`\bpython[\d.]*: No module named '?([\w.]+)|^\S*python\S*: Error while finding module specification for '([^']+)'`), "Python did not find the module", importMissing.weighing(weightLine + 6)},
	{says(`: (?:exec: )?(?:\S+: )?(?:command )?not found$|command not found: \S+$|^(?:\S*/)?(?:env|nohup|nice|timeout|setsid|xargs): .*: No such file or directory$|execve\(\): \S+: No such file`), "the command was not found", commandMissing},
	{says(`: cannot execute(?:: |$)|bad interpreter|cannot execute binary file`), "the command could not be executed", notExecutable},
	{says(`cannot open shared object file`), "a library could not be loaded", importBroken.weighing(weightLine + 4)},
	{says(`^(?:Error|Usage error): (?:No such option|Missing option|Invalid value)`), "the script does not take its arguments", wrongArguments},
	{says(`[Pp]ermission denied`), "access was denied", permission.weighing(weightLine + 2)},
	{says(`^(?:[\w./-]+: )+.*: No such file or directory$`), "a file is missing", inputMissing.weighing(weightLine + 1)},
}

var (
	// shellEnd is how bash and dash report the end of a child: "x.sh: line 6: 15408 Killed   python3 train.py", or the
	// word alone, which is also what a shell without job control writes.
	shellEnd  = regexp.MustCompile(`^(?:.*: line \d+: +\d+ )?(Killed|Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Terminated)(?:\s+\(core dumped\))?(?:\s{2,}.*)?$`)
	usageLine = regexp.MustCompile(`(?i)^usage: `)
	// abortMessage is what libstdc++, glibc's allocator and stack protector, and assert(3) say before abort(3).
	abortMessage  = regexp.MustCompile("^(?:terminate called |double free or corruption|(?:free|malloc|realloc|munmap_chunk)\\(\\): |corrupted (?:size|double)|\\*\\*\\* stack smashing detected)|: Assertion `.*' failed\\.$")
	argparseError = regexp.MustCompile(`^(\S+(?: \S+)?): error: (.*)`)
)

// shellWords are the words of strsignal(3) in glibc.
var shellWords = map[string]string{"Killed": "SIGKILL", "Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT", "Bus error": "SIGBUS",
	"Illegal instruction": "SIGILL", "Floating point exception": "SIGFPE", "Terminated": "SIGTERM"}

// usageBytes is how far before an argparse error its usage may begin: a script with a hundred options has 8 kB of it.
const usageBytes = 16 << 10

// statementAt is what the line at offset, one of the last of the log, says; nil for nothing.
func (s *scanned) statementAt(offset int64) *claim {
	at := s.rowAt(offset)
	if at < 0 {
		return nil
	}
	r := s.end()[at]
	text := strings.TrimSpace(r.text)
	out := func(class class, what string) *claim {
		return &claim{class: class, what: what, line: s.line(r), end: r.end, rank: r.prefix}
	}
	if match := shellEnd.FindStringSubmatch(text); match != nil {
		signal := shellWords[match[1]]
		c := out(signalClass(signal).weighing(weightLine-1), "a process was ended by "+signal+": "+text)
		c.signal = signal
		return c
	}
	for _, st := range statements {
		if match := st.says().FindStringSubmatch(text); match != nil {
			class := st.class
			if class.code == importMissing.code {
				class.remedy = "install " + strings.Join(match[1:], "") + " for the interpreter that runs, or run with the one that has it"
			}
			return out(class, st.what+": "+text)
		}
	}
	if abortMessage.MatchString(text) {
		if next := at + 1; next < len(s.end()) && strings.HasPrefix(strings.TrimSpace(s.end()[next].text), "what():") {
			text += " " + strings.TrimSpace(s.end()[next].text)
		}
		c := out(signalClass("SIGABRT").weighing(weightLine), "the program aborted: "+text)
		c.signal, c.abort = "SIGABRT", true
		return c
	}
	if match := argparseError.FindStringSubmatch(text); match != nil && s.usageBefore(r.offset) {
		return out(wrongArguments, "the script does not take its arguments: "+match[2])
	}
	return nil
}

func (s *scanned) usageBefore(offset int64) bool {
	for _, r := range s.rows(max(0, offset-usageBytes), offset) {
		if usageLine.MatchString(r.text) {
			return true
		}
	}
	return false
}

var fatalFrame = regexp.MustCompile(`^\s+File "([^"]+)", line (\d+) in (.*)$`)

// fatalAt is the report of CPython's faulthandler.
func (s *scanned) fatalAt(offset int64) *claim {
	rows := s.rows(offset, offset+windowBytes)
	if len(rows) == 0 {
		return nil
	}
	text := strings.TrimSpace(rows[0].text)
	_, what, ok := strings.Cut(text, "Fatal Python error: ")
	if !ok {
		return nil
	}
	c := signalClass(shellWords[what])
	if c.category == CategoryUnknown {
		c.category = CategoryDependency
	}
	out := &claim{class: c.weighing(weightException), what: text, line: s.line(rows[0]), end: rows[0].end, rank: rows[0].prefix}
	var e exception
	current := false // behind "Current thread"; the other threads only waited
	for _, r := range rows[1:] {
		match := fatalFrame.FindStringSubmatch(r.text)
		switch {
		case match != nil && current:
			e.frames = append([]Frame{{Path: match[1], Line: number(match[2]), Function: match[3]}}, e.frames...)
		case match == nil && current && len(e.frames) > 0:
			out.frame = e.own()
			return out
		case match == nil:
			current = strings.HasPrefix(strings.TrimSpace(r.text), "Current thread")
		}
		out.end = r.end
	}
	out.frame = e.own()
	return out
}

// syntaxAt is a SyntaxError without the header of a traceback: that of the main script.
func (s *scanned) syntaxAt(offset int64) *claim {
	rows := s.rows(max(0, offset-lookBack), offset+lookBack)
	at := -1
	for i, r := range rows {
		if r.end > offset {
			at = i
			break
		}
	}
	if at < 0 {
		return nil
	}
	match := exceptionLine.FindStringSubmatch(strings.TrimSpace(rows[at].text))
	if match == nil {
		return nil
	}
	for i := at - 1; i >= max(0, at-4); i-- {
		if frame := frameLine.FindStringSubmatch(rows[i].text); frame != nil {
			e := exception{class: match[1], message: match[2], frames: []Frame{{Path: frame[1], Line: number(frame[2])}}}
			if i+1 < at {
				e.frames[0].Source = clip(rows[i+1].text)
			}
			return &claim{class: e.classify(), what: e.class + ": " + e.message, line: s.line(rows[at]), frame: e.own(), end: rows[at].end, rank: rows[at].prefix}
		}
	}
	return nil
}

var elasticExit = regexp.MustCompile(`^\s*exitcode\s*: (-?\d+)`)

// elasticAt is torchrun's report of the rank that it saw fail first. Only an end by a signal is taken from it: a rank that
// raised wrote a traceback of its own, and the first one seen is often a rank that lost its peer.
func (s *scanned) elasticAt(offset int64) *claim {
	for i, r := range s.rows(offset, offset+lookBack) {
		if match := elasticExit.FindStringSubmatch(r.text); match != nil && strings.HasPrefix(match[1], "-") {
			signal := signalNames[number(match[1][1:])]
			if signal == "" {
				return nil
			}
			return &claim{class: signalClass(signal).weighing(weightLine + 9), what: "a worker of torchrun was ended by " + signal, line: s.line(r), end: r.end, rank: r.prefix}
		}
		if i > 8 {
			break
		}
	}
	return nil
}
