// Package diagnose says why a job failed, from its logs and from how its command ended.
//
// A log is read once from end to end, whatever its size: an automaton (search.go) looks for the literals of signs.go at the
// speed of grep and keeps the first and the last places of each, so that memory does not grow with the log. Only around
// those places lines are rendered and parsed: tracebacks (traceback.go), sentences of shells, schedulers and native code
// (statement.go). Each becomes a claim with a class; choose.go says which of them is the root cause and which followed from it.
//
// Nothing is claimed that no line says: a process that was killed without a word is killed_by_signal, and out_of_memory only
// where the log, the scheduler or the memory it held says so.
package diagnose
