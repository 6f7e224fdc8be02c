package diagnose

import "sync"

// kind says what is done around a sign.
type kind int

const (
	kindTraceback kind = iota // a Python traceback begins
	kindSyntax                // a SyntaxError, which may have no header
	kindFatal                 // faulthandler's report
	kindElastic               // torchrun's report
	kindStatement             // a line that speaks for itself; see statements
	kindNonFinite             // a number that is none; counted where the line speaks of a loss
)

// sign is a literal that is looked for, case by case as programs write it. Short ones that end before the first letter that
// differs between versions.
type sign struct {
	literal string
	kind    kind
}

// signs are what the scan looks for. Each costs nothing until it is found.
var signs = func() []sign {
	out := []sign{{"Traceback (most recent call last)", kindTraceback}, {"SyntaxError: ", kindSyntax},
		{"IndentationError: ", kindSyntax}, {"TabError: ", kindSyntax}, {"Fatal Python error: ", kindFatal},
		{"Root Cause (first observed", kindElastic}}
	for _, literal := range []string{
		// shells, POSIX tools and the loader
		"ommand not found", ": not found", ": No such file or directory", "cannot execute", "ermission denied", "Disk quota exceeded",
		"No space left on device", "No module named ", "can't open file", "cannot open shared object file",
		// how processes ended: shells, glibc, C++
		"Killed", "Segmentation fault", "Aborted", "Bus error", "Illegal instruction", "Floating point exception", "Terminated",
		"terminate called ", "double free or", "free(): ", "alloc(): ", "munmap_chunk(): ", "corrupted size", "corrupted double", "stack smashing", ": Assertion `",
		"std::bad_alloc", "annot allocate memory",
		// the kernel and schedulers: SLURM, PBS, LSF
		"oom-kill", "oom_kill", "ut of memory", "DUE TO TIME LIMIT", "CANCELLED AT", "walltime", "TERM_RUNLIMIT", "TERM_MEMLIMIT",
		"xceeded job memory limit", "xceeded step memory limit",
		// accelerators
		"CUDA_ERROR_", "cudaError", "CUDA error", "CUDA driver version", "NVIDIA driver", "no kernel image", "HIP error",
		// argparse and click
		": error: ", "Error: No such option", "Error: Missing option", "Error: Invalid value",
	} {
		out = append(out, sign{literal, kindStatement})
	}
	// What stands before a number that is none: "loss nan", "loss=nan", "loss: inf", "(-inf", "[nan".
	for _, before := range []string{" ", "=", ":", "(", "[", "-"} {
		for _, number := range []string{"nan", "NaN", "inf"} {
			out = append(out, sign{before + number, kindNonFinite})
		}
	}
	out = append(out, sign{" is NaN", kindNonFinite}, sign{"Infinity", kindNonFinite}, sign{"on-finite", kindNonFinite}, sign{"not finite", kindNonFinite})
	return out
}()

// seeker is the automaton of signs.
var seeker = sync.OnceValue(func() *automaton {
	literals := make([]string, len(signs))
	for i, s := range signs {
		literals[i] = s.literal
	}
	return newAutomaton(literals)
})
