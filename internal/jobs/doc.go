// Package jobs is what a job is on disk and how it is judged, whatever runs it: the folder with its request and records,
// the Runtime interface, the verdict fused from those records, the diagnosis of a failure and the cursor through a log.
//
// A job is a folder (formats.md, "A job's folder"):
//
//	request.json   what to run; written once by Create, never changed
//	script.sh      the same for a person to read and to run again
//	stdout.log, stderr.log   the bytes the command wrote, appended by the command itself
//	state.json     who runs it: process ids, boot id, heartbeat; written by the supervisor
//	runner.sh      the supervisor for a machine without this binary; see Runner
//	exit.reserve   room for the records of the end, while the command runs
//	cancel.json    someone asked for the end
//	left.json      what it left in the folders that its request watches; written just before exit.json
//	exit.json      how it ended; written once, by rename, after fsync
//	verdict.json   what follows from that, with its evidence
//
// The logs and the records share the folder and so a disk. When it gets full, the command sees the error of its write, as
// it would anywhere; its supervisor gives back the room that it kept, writes how the job ended, and leaves.
//
// The states of a job are derived from these files and from the processes they name; nothing is held in memory. A job
// for which neither speaks is unknown, which is a legal answer and never dressed up as failed or succeeded.
package jobs
