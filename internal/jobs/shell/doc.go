// Package shell runs jobs on a machine of which it needs nothing but a POSIX shell: it renders runner.sh into the job's
// folder and starts it there. The machine is a Shell: Local is this one; another kind only has to run a script and to carry
// the files of a folder there and back.
//
// What a job survives is what package local promises: the end of whoever submitted it; not a reboot, nor a kill -9 of the
// runner. A shell can't adopt orphans as local's supervisor does (prctl(2), PR_SET_CHILD_SUBREAPER), so that it finds what
// leaves its parents by the session and by the job's mark in the environment. A process that leaves all three between two
// looks (2 s apart at most) escapes.
package shell
