package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
)

func fitted(t *testing.T, v any) (map[string]any, int, *finding.Finding) {
	t.Helper()
	got, err := Fit(v, "ask for less")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(encoded, &root); err != nil {
		t.Fatal(err)
	}
	var cut struct{ Findings []finding.Finding }
	if err := json.Unmarshal(encoded, &cut); err != nil {
		t.Fatal(err)
	}
	for i := range cut.Findings {
		if cut.Findings[i].Code == "result_cut" {
			return root, len(encoded), &cut.Findings[i]
		}
	}
	return root, len(encoded), nil
}

func TestFitLeavesWhatFits(t *testing.T) {
	_, n, cut := fitted(t, map[string]any{"text": strings.Repeat("a", maxResult-20)})
	if cut != nil || n > maxResult {
		t.Errorf("%d bytes, cut %v", n, cut)
	}
}

func TestFitCutsTheLargestAndSaysSo(t *testing.T) {
	rows := make([]map[string]any, 3000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": "row-" + fmt.Sprint(i)}
	}
	for _, c := range []struct {
		name string
		v    any
		says string
	}{
		{"a list loses entries", map[string]any{"rows": rows, "small": "stays"}, "rows: the first "},
		{"a text loses characters", map[string]any{"log": map[string]any{"text": strings.Repeat("äöü\n", 30_000)}, "small": "stays"}, "log.text: the first "},
		{"one long text in a list", map[string]any{"streams": []any{map[string]any{"text": strings.Repeat("x", 90_000)}}, "small": "stays"}, "streams[0].text: the first "},
		{"findings too", map[string]any{"findings": rows, "small": "stays"}, "findings: the first "},
		{"quotes count twice", map[string]any{"text": strings.Repeat(`"`, 39_000), "small": "stays"}, "text: the first "},
		{"many small fields", wide(2000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, n, cut := fitted(t, c.v)
			if n > maxResult {
				t.Errorf("%d bytes", n)
			}
			if c.says == "" {
				return
			}
			if cut == nil || !strings.Contains(cut.What, c.says) || cut.Remedy != "ask for less" || cut.Severity != finding.Note {
				t.Errorf("finding %+v", cut)
			}
			if n < maxResult*3/4 {
				t.Errorf("only %d bytes are left", n)
			}
			if root["small"] != "stays" {
				t.Error("a small field was cut")
			}
		})
	}
}

// wide has many texts of middling length, none of which is the culprit.
func wide(n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("f%04d", i)] = strings.Repeat("x", 300)
	}
	return m
}

func TestFitNeverCutsTheNextCall(t *testing.T) {
	long := strings.Repeat("v", 5000)
	e := engine.Envelope{Run: engine.RunView{RunID: "r-1", NextCall: &engine.NextCall{Tool: "trainer", Arguments: map[string]any{"x": long}}}}
	for range 2000 {
		e.Needs = append(e.Needs, engine.Need{Field: "training.optimizer", Why: "gate of phase 1"})
	}
	root, _, cut := fitted(t, e)
	run, _ := root["run"].(map[string]any)
	next, _ := run["next_call"].(map[string]any)
	arguments, _ := next["arguments"].(map[string]any)
	if arguments["x"] != long || cut == nil {
		t.Errorf("next_call %v, cut %v", next, cut)
	}
}
