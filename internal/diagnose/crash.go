package diagnose

import (
	"slices"
	"strings"
)

// crashes are the signals that a process gets for what it did itself.
var crashes = []string{"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"}

// leads are the codes of lines that say why a process then crashes; other complaints do not end one by a signal.
var leads = []string{gpuOutOfMemory.code, outOfMemory.code, diskFull.code, cudaMissing.code, cudaMismatch.code}

// epilogueMost is how many ordinary lines may stand between what leads to a crash and the end of the log: libraries
// explain themselves, shells report.
const epilogueMost = 10

// crash is the signal of a process that crashed, "" for another end.
func (job Job) crash() string {
	if signal := job.signal(); slices.Contains(crashes, signal) {
		return signal
	}
	return ""
}

// demoted is the claim with the weight of one that may have been survived.
func (c claim) demoted() claim {
	c.class.weight = min(c.class.weight, weightHint)
	return c
}

// beforeCrash weighs a line of the log of a process that crashed: below the crash, unless it is known to lead to one and
// stands at the end.
func (s *scanned) beforeCrash(c claim, signal string) claim {
	switch {
	case c.class.weight >= weightException:
		return c
	case c.signal == signal, slices.Contains(leads, c.class.code) && s.ordinary(c.end, s.size, c.rank) <= epilogueMost:
		return c
	}
	return c.demoted()
}

// survivedCrash reports whether the program wrote on behind its last traceback before it crashed.
func (s *scanned) survivedCrash(tracebacks []told) bool {
	if len(tracebacks) == 0 {
		return false
	}
	last := tracebacks[len(tracebacks)-1]
	return s.ordinary(last.end, s.size, last.rank) > epilogueMost
}

// naming adds the signal that ended the job to what a line of the log says of the crash.
func (c claim) naming(signal string) claim {
	if c.class.code == killed.code && !strings.Contains(c.what, signal) {
		c.what = "the command was ended by " + signal + ": " + c.what
	}
	return c
}
