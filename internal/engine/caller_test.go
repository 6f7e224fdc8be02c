package engine

import (
	"context"
	"errors"
	"testing"
)

// oracle answers every question in the same way.
type oracle struct {
	silent
	answer Answer
	err    error
}

func (o oracle) Ask(context.Context, Question) (Answer, error) { return o.answer, o.err }

func TestAsk(t *testing.T) {
	later := errors.New("asked outside")
	choice := Question{Field: "target", Choices: []string{"a", "b"}}
	for name, c := range map[string]struct {
		caller   Caller
		question Question
		want     Answer
		err      error
	}{
		"nobody":                       {nil, choice, Answer{}, nil},
		"someone who can't be asked":   {Silent, choice, Answer{}, nil},
		"yes":                          {oracle{answer: Answer{Reply: Accepted, By: "x"}}, Question{Field: "allow"}, Answer{Reply: Accepted, By: "x"}, nil},
		"no":                           {oracle{answer: Answer{Reply: Declined}}, choice, Answer{Reply: Declined}, nil},
		"a choice":                     {oracle{answer: Answer{Reply: Accepted, Choice: "b"}}, choice, Answer{Reply: Accepted, Choice: "b"}, nil},
		"a choice that is none":        {oracle{answer: Answer{Reply: Accepted, Choice: "c"}}, choice, Answer{Reply: Ignored}, nil},
		"the call has to end for this": {oracle{err: later}, choice, Answer{}, later},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Ask(t.Context(), c.caller, c.question)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
