package diagnose

import (
	"cmp"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// The categories of a cause (contracts.md, failure_category).
const (
	CategoryTransient   = "transient"
	CategoryEnvironment = "environment"
	CategoryDependency  = "dependency"
	CategoryData        = "data"
	CategoryCode        = "code"
	CategoryScientific  = "scientific"
	CategoryPlatform    = "platform"
	CategoryUnknown     = "unknown"
)

// Cause is why a job did not succeed. Where of the finding is the user's own line where a traceback names one, else the
// line of the log.
type Cause struct {
	finding.Finding
	Category string `json:"category"`
	// Evidence is the line of the log that says it; nil where no line does.
	Evidence *Line `json:"evidence,omitempty"`
	// Frame is the innermost line of the user's own code; nil where the traceback has none.
	Frame *Frame `json:"frame,omitempty"`
	// Notes are what else was found, the likeliest first, at most four; then the logs that could not be read.
	Notes []finding.Finding `json:"notes,omitempty"`
}

// Line is a line of a log as a terminal shows it, secrets masked, at most 300 bytes. Line counts from 1; Byte is the
// 0-based offset of its first byte, behind the last carriage return where the line was overwritten.
type Line struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Byte int64  `json:"byte"`
	Text string `json:"text"`
}

// Cut reports whether Text is only the start of the line.
func (l Line) Cut() bool { return len(l.Text) >= textShown && strings.HasSuffix(l.Text, "…") }

// Frame is a line of a Python program, as a traceback writes it.
type Frame struct {
	Path     string `json:"path"`
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
	// Source is the line's text; empty where the interpreter did not have it.
	Source string `json:"source,omitempty"`
}

// Job is what is known of a job that failed.
type Job struct {
	// Logs are the files of its output, the one most likely to hold the error first; a file that is not there is passed over.
	Logs []string
	// Code is the exit code as a shell counts it, nil where a signal ended the command or nobody saw the end.
	Code *int
	// Signal is a name such as "SIGKILL", "" for none.
	Signal string
	// PeakBytes is the largest memory that its processes held, MemoryBytes what they were allowed; 0 where unknown.
	PeakBytes, MemoryBytes int64
	// OutOfMemory is the record that the system ended the job for memory, "" for none: oom_kill in memory.events of its
	// cgroup (cgroup-v2), or SLURM's state OUT_OF_MEMORY.
	OutOfMemory string
	// TimeUp is set where the job's time limit ended it.
	TimeUp bool
	// WorkDir is the directory that relative paths in a traceback start from.
	WorkDir string
	// Exists reports whether a regular file is there; nil asks the file system.
	Exists func(path string) bool
	// Original is a text with paths in it, each of which that names a copy of the user's code replaced by the path of the
	// user's own file: a job runs from a snapshot. Nil leaves texts as they are. Evidence always stays as printed.
	Original func(text string) string
}

// class is a kind of failure.
type class struct {
	code, category, expected, remedy string
	// weight orders claims: what the system did to the job outweighs what the program says, a program's exception outweighs
	// what only followed from another failure.
	weight int
}

const (
	weightConsequence = 10 // follows from a failure elsewhere
	weightHint        = 15 // may be the reason where nothing else is known
	weightLine        = 20 // a line near the end that may have been survived
	weightException   = 40
	weightResource    = 50 // exhausted for every process alike, so that other exceptions follow from it
	weightSystem      = 60
)

// claim is a cause that some lines of the log support.
type claim struct {
	class class
	what  string
	line  Line
	frame *Frame
	// log counts the job's logs; end is the offset behind the last line of the claim.
	log  int
	end  int64
	rank string
	// signal is what the line says a process was ended by, "" where it says nothing of that.
	signal string
	// abort is set where the line is what a library says before it aborts its process, which may be a child of the job's.
	abort bool
	// silent is set where line is only the log's last one.
	silent bool
	// also are the other exceptions of its chain.
	also []claim
}

func (c claim) cause(job Job) Cause {
	line := c.line
	line.Text = clip(line.Text)
	out := Cause{Category: c.class.category, Evidence: &line, Finding: finding.Finding{Code: c.class.code,
		Severity: finding.Error, What: clip(job.original(c.what)), Expected: c.class.expected, Remedy: job.original(c.class.remedy)}}
	out.Where = &finding.Where{Path: line.Path, Line: line.Line, Byte: line.Byte}
	if c.frame != nil {
		frame := *c.frame
		frame.Path = job.original(frame.Path)
		out.Frame, out.Where = &frame, &finding.Where{Path: frame.Path, Line: frame.Line}
	}
	return out
}

// note is the claim beside another cause.
func (c claim) note(job Job) finding.Finding {
	cause := c.cause(job)
	cause.Severity = finding.Note
	cause.Expected = ""
	return cause.Finding
}

// order puts the root cause first: by weight, then the earlier log, then the earlier line.
func order(a, b claim) int {
	return cmp.Or(cmp.Compare(b.class.weight, a.class.weight), cmp.Compare(a.log, b.log), cmp.Compare(a.line.Byte, b.line.Byte))
}

// textShown bounds a quoted text in bytes.
const textShown = 300

func clip(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= textShown {
		return text
	}
	return strings.ToValidUTF8(text[:textShown], "") + "…"
}
