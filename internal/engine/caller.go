package engine

import (
	"context"
	"slices"
)

// Caller is the one who called a tool, seen from inside: someone who can be told how far long work is, and perhaps asked.
// Internal code never learns whether that is an MCP client or a terminal.
type Caller interface {
	// Progress tells how far the call is. It must not block and may be called from any goroutine.
	Progress(Progress)
	// Ask puts a question to the user. An error ends the call without an answer: the user may be asked outside of the call,
	// which is then made again from its start and finds the answer here. So whoever asks does it before any side effect, says
	// the same question in the same words each time, and hands the error on as it is.
	Ask(context.Context, Question) (Answer, error)
}

// Progress is one notice of long work. Done and Total count in the work's own unit (phases, epochs, seconds); Total is
// zero when the end is not known. Done never goes down within one call.
type Progress struct {
	Phase   string
	Message string
	Done    float64
	Total   float64
}

// Question is what the user is asked: yes or no, or one of Choices. No question is about a secret.
type Question struct {
	// Field names what is asked for, as one word of a form: allow, target.
	Field string
	// Text is all that the user needs to decide; it may have several lines.
	Text string
	// Choices are the answers to choose from; none for a yes or no.
	Choices []string
}

// Reply is how a question ended.
type Reply string

// The ways in which it can end. The zero value is that nobody can be asked: there is no user, or the client has no way to
// show a question.
const (
	Unable   Reply = ""
	Accepted Reply = "accepted" // yes, or one of the choices
	Declined Reply = "declined" // no
	Ignored  Reply = "ignored"  // the user was asked and did not answer
)

// Answer is what the user said. By names who passed it on, such as the client; Choice is one of the question's.
type Answer struct {
	Reply  Reply
	Choice string
	By     string
}

// Ask asks the caller; a caller of nil can't be asked. A choice that was not offered is no answer.
func Ask(ctx context.Context, caller Caller, q Question) (Answer, error) {
	if caller == nil {
		return Answer{}, nil
	}
	answer, err := caller.Ask(ctx, q)
	if err != nil || answer.Reply != Accepted || len(q.Choices) == 0 || slices.Contains(q.Choices, answer.Choice) {
		return answer, err
	}
	answer.Reply, answer.Choice = Ignored, ""
	return answer, nil
}

// Unasked is the part of a Caller who can't be asked.
type Unasked struct{}

// Ask says that nobody can be asked.
func (Unasked) Ask(context.Context, Question) (Answer, error) { return Answer{}, nil }

// Silent is a Caller who wants to hear nothing and can't be asked.
var Silent Caller = silent{}

type silent struct{ Unasked }

func (silent) Progress(Progress) {}
