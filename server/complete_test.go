package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/resources"
)

// crowded has more pages of resources than one.
type crowded struct{ shelf }

func (crowded) List(_ context.Context, cursor string) ([]resources.Item, string, error) {
	if cursor == "" {
		return []resources.Item{{URI: "skill://demo/SKILL.md"}, {URI: "run://r-1/training_plan.md"}, {URI: "job://j-1/stdout.log"}}, "second", nil
	}
	return []resources.Item{{URI: "run://r-1/training_request.json"}, {URI: "run://r-2/training_plan.md"}, {URI: "run://r-1/validation_report.md"}}, "", nil
}

func known(_ context.Context, kind, typed string) ([]string, error) {
	if typed == "fault" {
		return nil, errors.New("open /very/private: denied")
	}
	values := []string{}
	for i := range 120 {
		values = append(values, fmt.Sprintf("%s-%s-%d", kind, typed, i))
	}
	return values[:map[string]int{"path": 120, "run": 2, "job": 1}[kind]], nil
}

// What a user may be about to type, for the arguments of prompts and the variables of templates.
func TestCompletion(t *testing.T) {
	log := &safeBuffer{}
	s := New(Options{Resources: crowded{}, Skills: demoSkills, Log: zerolog.New(log), Complete: known})
	for _, c := range []struct {
		name, ref, argument, typed, context string
		want                                string // values, total and whether there are more
		code                                int
	}{
		{"runs", `"ref/prompt","name":"continue_run"`, "run_id", "r-", "", "[run-r--0 run-r--1] 2 false", 0},
		{"paths, cut", `"ref/prompt","name":"train"`, "data", "d", "", "100 of path-d-0 … 120 true", 0},
		{"plain words", `"ref/prompt","name":"train"`, "goal", "classify", "", "[] 0 false", 0},
		{"an unknown prompt", `"ref/prompt","name":"trains"`, "goal", "", "", `did you mean "train"?`, codeInvalidParams},
		{"an unknown argument", `"ref/prompt","name":"train"`, "golas", "", "", "prompts/list has its arguments", codeInvalidParams},
		{"runs of a template", `"ref/resource","uri":"run://{run_id}/{+artifact}"`, "run_id", "x", "", "[run-x-0 run-x-1] 2 false", 0},
		{"artifacts of that run", `"ref/resource","uri":"run://{run_id}/{+artifact}"`, "artifact", "training_", `"run_id":"r-1"`, "[training_plan.md training_request.json] 2 false", 0},
		{"artifacts of no run", `"ref/resource","uri":"run://{run_id}/{+artifact}"`, "artifact", "", "", "[] 0 false", 0},
		{"skills", `"ref/resource","uri":"skill://{name}/{+path}"`, "name", "d", "", "[demo] 1 false", 0},
		{"files of a skill", `"ref/resource","uri":"skill://{name}/{+path}"`, "path", "S", `"name":"demo"`, "[SKILL.md] 1 false", 0},
		{"jobs", `"ref/resource","uri":"job://{job_id}"`, "job_id", "j", "", "[job-j-0] 1 false", 0},
		{"artifacts where a range may follow", `"ref/resource","uri":"run://{run_id}/{+artifact}{?offset,limit}"`, "artifact", "val", `"run_id":"r-1"`, "[validation_report.md] 1 false", 0},
		{"a range", `"ref/resource","uri":"run://{run_id}/{+artifact}{?offset,limit}"`, "limit", "1", `"run_id":"r-1"`, "[] 0 false", 0},
		{"files of a job", `"ref/resource","uri":"job://{job_id}/{+file}{?offset,limit}"`, "file", "", `"job_id":"j-1"`, "[stdout.log] 1 false", 0},
		{"paths of the workspace", `"ref/resource","uri":"workspace:///{+path}{?offset,limit}"`, "path", "d", "", "100 of path-d-0 … 120 true", 0},
		{"a variable that the template lacks", `"ref/resource","uri":"run://{run_id}/{+artifact}"`, "art", "", "", "resources/templates/list", codeInvalidParams},
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
