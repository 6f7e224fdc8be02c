package jobs

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Diagnose says why the job in folder failed: the Python exception with the user's own line, a command that was not found
// or not allowed, the signal, or else the exit code with the last line of the log. Nil where the job has no exit record,
// exited 0, or was ended on purpose.
func Diagnose(folder string) *Cause {
	exit, err := ReadExit(folder)
	if err != nil || exit == nil || exit.Reason == ReasonCancelled || exit.Reason == ReasonWallTime {
		return nil
	}
	if exit.Code != nil && *exit.Code == 0 {
		return nil
	}
	return diagnoseExit(folder, *exit)
}

// exitMeanings are the codes that generated scripts use (formats.md).
var exitMeanings = map[int]struct{ code, what, category, remedy string }{
	75: {"interrupted_after_saving", "the script was interrupted and saved its state", CategoryTransient, "run again and resume from the last checkpoint"},
	78: {"configuration_or_data_wrong", "the script refused its configuration or data", CategoryData, "read the message and correct what it names"},
	65: {"loss_not_finite", "the loss became NaN or infinite", CategoryScientific, "lower the learning rate, clip gradients, or check the data for extreme values"},
}

func diagnoseExit(folder string, exit Exit) *Cause {
	stderr, stdout := readEnd(filepath.Join(folder, StderrFile)), readEnd(filepath.Join(folder, StdoutFile))
	last, lastOK := stderr.lastLine()
	if !lastOK {
		last, lastOK = stdout.lastLine()
	}
	where := func() *finding.Where {
		if !lastOK {
			return nil
		}
		return &finding.Where{Path: last.path, Line: last.number, Byte: last.offset}
	}
	if exit.Code != nil {
		if meaning, known := exitMeanings[*exit.Code]; known {
			return cause(meaning.code, meaning.category, said(meaning.what, last), where(), "exit code 0", meaning.remedy)
		}
	}
	for _, end := range []logEnd{stderr, stdout} {
		if found := end.traceback(); found != nil {
			return found
		}
	}
	if exit.Signal != nil {
		return signalCause(*exit.Signal, exit, where())
	}
	switch {
	case exit.Code != nil && *exit.Code == 0:
		return cause("exit_reason_unknown", CategoryPlatform, fmt.Sprintf("the exit record has code 0 and the reason %q", exit.Reason), where(),
			"the reason "+ReasonExited, "look at "+ExitFile+"; whatever wrote it does not keep to the format")
	case exit.Code == nil:
		return cause("exit_status_lost", CategoryPlatform, "nobody saw how the command ended", where(), "an exit status", "read the log, then run again")
	}
	return codeCause(*exit.Code, exit, last, where())
}

// codeCause reads the exit codes that a POSIX shell gives (2.8.2 Exit Status for Commands): 126 found but not executable,
// 127 not found, above 128 ended by a signal.
func codeCause(code int, exit Exit, last logLine, where *finding.Where) *Cause {
	switch {
	case code == 127:
		return cause("command_not_found", CategoryEnvironment, said("the command was not found", last), where,
			"a command on PATH or an existing path", "install it, load its module, or send the right path")
	case code == 126:
		return cause("command_not_executable", CategoryEnvironment, said("the command could not be executed", last), where,
			"an executable file and a working directory that exist", "check the path and its permissions, or run it through its interpreter")
	case code > 128 && signalNames[code-128] != "":
		return signalCause(signalNames[code-128], exit, where)
	case strings.Contains(last.text, "ermission denied"):
		return cause("permission_denied", CategoryEnvironment, said(fmt.Sprintf("the command exited with code %d", code), last), where,
			"access to what it opens", "check the owner and the permissions of that path")
	case strings.Contains(last.text, "can't open file") && strings.Contains(last.text, "No such file"):
		return cause("entrypoint_missing", CategoryCode, said("Python did not find the script", last), where,
			"an existing script", "check the entry point's path")
	}
	return cause("command_failed", CategoryUnknown, said(fmt.Sprintf("the command exited with code %d", code), last), where,
		"exit code 0", "read the log around this line")
}

// signalNames are the signals that end training jobs; the numbers are those of Linux and darwin alike (signal(7)).
var signalNames = map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}

func signalCause(signal string, exit Exit, where *finding.Where) *Cause {
	what := fmt.Sprintf("the command was ended by %s, which trainwright did not send", signal)
	remedy, category := "read the end of the log", CategoryUnknown
	switch signal {
	case "SIGKILL":
		what += fmt.Sprintf("; its processes held up to %d MB", exit.PeakRSSBytes/1e6)
		remedy = "most often the machine ran out of memory: compare the peak with what it has, lower the batch size or ask for more memory"
		category = CategoryEnvironment
	case "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT":
		remedy = "a native library crashed: check that its version fits the others; run with PYTHONFAULTHANDLER=1 for the Python line"
		category = CategoryDependency
	case "SIGTERM", "SIGHUP", "SIGINT":
		remedy = "something outside ended it: a person, a shutdown or a resource watcher; run again and resume"
		category = CategoryTransient
	}
	return cause("killed_by_signal", category, what, where, "an end by itself", remedy)
}

func cause(code, category, what string, where *finding.Where, expected, remedy string) *Cause {
	return &Cause{Category: category, Finding: finding.Finding{Code: code, Severity: finding.Error, What: what, Where: where,
		Expected: expected, Remedy: remedy}}
}

// said is the sentence with what the log said last.
func said(what string, last logLine) string {
	if last.text == "" {
		return what
	}
	return what + ": " + clip(last.text)
}

// lineShown bounds a quoted log line, in bytes.
const lineShown = 300

func clip(line string) string {
	if len(line) <= lineShown {
		return line
	}
	return strings.ToValidUTF8(line[:lineShown], "") + "…"
}
