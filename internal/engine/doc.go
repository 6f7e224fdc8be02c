// Package engine runs a step of a skill: it opens or creates the run that a step_handoff names, keeps the order of
// the skill's phases, runs one or walks them all, commits what they made, and answers with the envelope.
//
// The engine knows phases only through the Phase interface, so that every skill can use it. Truth is on disk: the
// phase records under phases/ say what is done, and everything else (manifest, envelope, status) is derived from them.
// A lock covers reading, checking and committing, never a phase's work or a wait.
package engine
