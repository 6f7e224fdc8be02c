// Package rundir is a run on disk: which paths may be touched, how files are committed so that a crash leaves either the
// old or the new one, who holds the lock, what each phase recorded, and where runs are found.
//
// The records under phases/ are the truth about a run. Dir.State derives from them and from the hashes of the files they
// name which phases still hold; nothing else is asked.
//
// rundir never locks for its caller. Dir.WriteArtifact, Dir.CommitRecord and Dir.AppendEvent belong inside the run's Lock.
package rundir
