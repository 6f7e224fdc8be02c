package diagnose

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// signalNames are the signals that end training jobs; the numbers are those of Linux and darwin alike (signal(7)), but for
// SIGBUS, which is Linux's.
var signalNames = map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}

// number reads digits that an expression has matched; too many of them are 0.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// signalClass is what an end by a signal that nobody asked for means.
func signalClass(signal string) class {
	c := killed
	switch signal {
	case "SIGKILL":
		c.category = CategoryEnvironment
		c.remedy = "a person, a limit or the kernel for want of memory ended it: compare peak_rss_bytes with the memory there is; if they are close, lower the batch size or ask for more"
	case "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT":
		c.category = CategoryDependency
		c.remedy = "a native library crashed: check that its version fits the others; run with PYTHONFAULTHANDLER=1 for the Python line"
	case "SIGTERM", "SIGHUP", "SIGINT":
		c.category = CategoryTransient
		c.remedy = "something outside ended it: a person, a shutdown or a resource watcher; run again and resume"
	}
	return c
}

// exitMeanings are the codes that generated scripts use (formats.md).
var exitMeanings = map[int]struct {
	what  string
	class class
}{
	75: {"the script was interrupted and saved its state", class{"interrupted_after_saving", CategoryTransient, "exit code 0", "run again and resume from the last checkpoint", weightSystem - 2}},
	78: {"the script refused its configuration or data", class{"configuration_or_data_wrong", CategoryData, "exit code 0", "read the message and correct what it names", weightSystem - 2}},
	65: {"the loss became NaN or infinite", lossNotFinite.weighing(weightSystem - 2)},
}

var commandFailed = class{"command_failed", CategoryUnknown, "exit code 0", "read the log around this line", 1}

// memoryShare is the part of its memory from which on a killed job is taken to have run out of it.
const memoryShare = 0.9

// ending is what the end of the command says by itself. The log's last line is its evidence.
func (job Job) ending(last claim) claim {
	out := last
	out.class, out.silent = commandFailed, true
	say := func(what string, c class) claim {
		out.class, out.what = c, what
		if last.what != "" {
			out.what += ": " + last.what
		}
		return out
	}
	signal := job.signal()
	switch {
	case job.TimeUp:
		return say("the job's time limit was reached", timeUp.weighing(weightSystem+2))
	case job.OutOfMemory != "":
		return say("the system ended the job for memory ("+job.OutOfMemory+")"+job.peak(), systemMemory.weighing(weightSystem+1))
	case signal == "SIGKILL" && job.MemoryBytes > 0 && float64(job.PeakBytes) >= memoryShare*float64(job.MemoryBytes):
		return say("the job was killed when it had used up its memory"+job.peak(), systemMemory.weighing(weightSystem-3))
	case signal != "":
		out.class, out.what = signalClass(signal), fmt.Sprintf("the command was ended by %s, which trainwright did not send%s", signal, job.peak())
		return out
	case job.Code == nil:
		return say("nobody saw how the command ended", class{"exit_status_lost", CategoryPlatform, "an exit status", "read the log, then run again", 1})
	}
	code := *job.Code
	if meaning, known := exitMeanings[code]; known {
		return say(meaning.what, meaning.class)
	}
	switch code {
	case 127: // POSIX 2.8.2, Exit Status for Commands
		return say("the command was not found", commandMissing.weighing(weightLine+5))
	case 126:
		return say("the command could not be executed", notExecutable.weighing(weightLine+5))
	case 124: // timeout(1)
		return say("the command exited with code 124, as timeout does when its time is over", timeUp.weighing(2))
	}
	return say(fmt.Sprintf("the command exited with code %d", code), out.class)
}

func (job Job) signal() string {
	if job.Signal == "" && job.Code != nil && *job.Code > 128 {
		return signalNames[*job.Code-128]
	}
	return job.Signal
}

// peak is the memory in words.
func (job Job) peak() string {
	switch {
	case job.PeakBytes <= 0:
		return ""
	case job.MemoryBytes > 0:
		return fmt.Sprintf("; its processes held up to %d of %d MB", job.PeakBytes/1e6, job.MemoryBytes/1e6)
	}
	return fmt.Sprintf("; its processes held up to %d MB", job.PeakBytes/1e6)
}

func (job Job) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(job.WorkDir, path)
}

func (job Job) original(text string) string {
	if job.Original == nil {
		return text
	}
	return job.Original(text)
}

func (job Job) exists(path string) bool {
	if job.Exists != nil {
		return job.Exists(path)
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
