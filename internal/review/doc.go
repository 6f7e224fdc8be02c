// Package review reads a training script and the modules of its project without running them, and says what would go
// wrong, or make the run something else than it claims to be: imports that lead nowhere, paths of one machine, downloads
// that nobody asked for, randomness without a seed. The reading is done by Python's own ast in the interpreter that will run.
package review
