package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// knowing is a Library that completes: it repeats what it was asked.
type knowing struct{ shelf }

func (knowing) Complete(_ context.Context, template, argument, typed string, known map[string]string) ([]string, error) {
	if typed == "fault" {
		return nil, errors.New("open /very/private: denied")
	}
	values := []string{}
	for i := range map[string]int{"path": 120, "run_id": 2, "artifact": 1}[argument] {
		values = append(values, fmt.Sprintf("%s-%s%s-%d", template[:3], typed, known["run_id"], i))
	}
	return values, nil
}

// What a user may be about to type, for the arguments of prompts and the variables of templates.
func TestCompletion(t *testing.T) {
	log := &safeBuffer{}
	s := New(Options{Resources: knowing{}, Skills: demoSkills, Log: zerolog.New(log)})
	for _, c := range []struct {
		name, ref, argument, typed, context string
		want                                string // values, total and whether there are more
		code                                int
	}{
		{"runs", `"ref/prompt","name":"continue_run"`, "run_id", "r-", "", "[run-r--0 run-r--1] 2 false", 0},
		{"paths, cut", `"ref/prompt","name":"train"`, "data", "d", "", "100 of wor-d-0 … 120 true", 0},
		{"plain words", `"ref/prompt","name":"train"`, "goal", "classify", "", "[] 0 false", 0},
		{"an unknown prompt", `"ref/prompt","name":"trains"`, "goal", "", "", `did you mean "train"?`, codeInvalidParams},
		{"an unknown argument", `"ref/prompt","name":"train"`, "golas", "", "", "prompts/list has its arguments", codeInvalidParams},
		{"artifacts of a run", `"ref/resource","uri":"run://{run_id}/{+artifact}"`, "artifact", "tr", `"run_id":"r-1"`, "[run-trr-1-0] 1 false", 0},
		{"an unknown variable", `"ref/resource","uri":"run://{run_id}/{+artifact}"`, "art", "", "", "with a variable", codeInvalidParams},
		{"an unknown template", `"ref/resource","uri":"file:///{path}"`, "path", "", "", "resources/templates/list", codeInvalidParams},
		{"a fault", `"ref/prompt","name":"continue_run"`, "run_id", "fault", "", "internal error, incident", codeInternal},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":` + c.ref + `},"argument":{"name":"` + c.argument + `","value":"` + c.typed + `"},"context":{"arguments":{` + c.context + `}}}}`
			encoded, err := json.Marshal(s.HandleMessage(t.Context(), json.RawMessage(line)))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Result struct {
					Completion struct {
						Values  []string
						Total   int
						HasMore bool
					}
				}
				Error struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			text := got.Error.Message
			if v := got.Result.Completion; got.Error.Code == 0 {
				text = fmt.Sprintf("%v %d %t", v.Values, v.Total, v.HasMore)
				if len(v.Values) == maxValues {
					text = fmt.Sprintf("%d of %s … %d %t", len(v.Values), v.Values[0], v.Total, v.HasMore)
				}
			}
			if got.Error.Code != c.code || !strings.Contains(text, c.want) || c.code == 0 && text != c.want {
				t.Errorf("%d %s", got.Error.Code, text)
			}
		})
	}
	if !strings.Contains(log.String(), "very/private") {
		t.Error("the log lacks what went wrong")
	}
}
