// Package launch decides whether a job may be started, and starts commands that belong to no run.
//
// What phase 5 and the runtime tool share is here once: what a caller says of a launch, which channel it is wanted on,
// and what the user has to allow for it (Authority). The rest is the runtime tool itself (Commands): any command as one
// durable job below .onescience/jobs, discovered, checked, started once, and judged by what it left.
package launch
