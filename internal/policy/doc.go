// Package policy says what the user allows: which effects beyond the workspace, which folders, how many hours. What it
// reads is policy.yaml, which is the user's, and trainwright.yaml, which lies in the workspace and is written by agents
// as often as not (formats.md, "Authority"). The first grants; the second, like a handoff, only narrows, unless the user
// wrote trust_handoff: true. What no file speaks of is asked for, and a file that can't be read is refused: a limit that
// was meant must not be lost in a typing mistake.
//
// A Grant is the user's word for one run. It lives beside policy.yaml, outside every workspace, and only the command line
// writes it.
package policy
