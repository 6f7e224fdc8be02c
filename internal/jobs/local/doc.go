// Package local runs jobs on this machine. Submit re-executes the binary as a supervisor that belongs to nobody: a session
// of its own, no inherited descriptor, no parent that a client could take down with its tree. The supervisor owns the job's
// folder through a lock, starts the command once, waits for everything it started, and writes the exit record. Status and
// Cancel need nothing but the folder, so that any process, after any crash, can ask and end.
//
// What a job survives: the end and the kill -9 of the process that submitted it, an upgrade of the binary. What it does not:
// a reboot, and the kill -9 of its supervisor, after which the command runs on but its end is not recorded; such a job is
// unknown, never failed.
package local
