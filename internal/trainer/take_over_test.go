package trainer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/rundir"
)

// planned is a run whose plan is made.
func planned(t *testing.T) (*fixture, engine.Envelope) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	return f, answer
}

// change edits an artifact of the run by hand.
func (f *fixture) change(answer engine.Envelope, name, from, to string) {
	f.t.Helper()
	text := f.read(f.file(answer, name))
	if !strings.Contains(text, from) {
		f.t.Fatalf("%s does not hold %q:\n%s", name, from, text)
	}
	f.write(f.file(answer, name), strings.Replace(text, from, to, 1))
}

// An edited plan is shown as a difference with the two ways on; taking it over changes the JSON, keeps what no field holds as a
// note, and the edited text stays.
func TestEditedPlanIsTakenOver(t *testing.T) {
	f, answer := planned(t)
	f.change(answer, planText, "| seed | 17 |", "| seed | 23 |")
	f.change(answer, planText, "## Estimates", "Ask Ada whether the seed matters.\n\n## Estimates")
	edited := f.read(f.file(answer, planText))

	shown := wantCode(t, f.walk().Findings, "artifact_edited_by_hand")
	for _, want := range []string{"-| seed | 17 | CONFIRMED", "+| seed | 23 | CONFIRMED", "+Ask Ada whether the seed matters."} {
		if !strings.Contains(shown.What, want) {
			t.Errorf("the difference lacks %q:\n%s", want, shown.What)
		}
	}
	if !strings.Contains(shown.Remedy, `call phase_3_training_strategy with the run_id and "edited": "take_over"`) {
		t.Errorf("remedy %q", shown.Remedy)
	}

	f.phase(3, answer.Run.RunID, map[string]any{"strategy": map[string]any{"patience": 4}}) // what the phase renders meanwhile is no edit
	if shown := wantCode(t, f.walk().Findings, "artifact_edited_by_hand"); strings.Contains(shown.What, "patience") {
		t.Errorf("shown as edited: %s", shown.What)
	}
	taken := f.phase(3, answer.Run.RunID, map[string]any{"edited": "take_over"})
	wantCode(t, taken.Findings, "edit_taken")
	if hasCode(taken.Findings, "artifact_edited_by_hand") {
		t.Error("the artifact still counts as edited")
	}
	var plan Plan
	f.must(json.Unmarshal([]byte(f.read(f.file(answer, planFile))), &plan))
	if patience := plan.Leaves["patience"]; show(patience.Value) != "4" {
		t.Errorf("patience of the plan: %+v", patience)
	}
	if _, err := os.Stat(f.file(answer, "training_plan.new.md")); err == nil {
		t.Error("the offer is still there")
	}
	if seed := plan.Leaves["seed"]; show(seed.Value) != "23" || seed.Status != evidence.Assumption {
		t.Errorf("seed of the plan: %+v", seed)
	}
	text := f.read(f.file(answer, planText))
	if !strings.Contains(text, "| seed | 23 | ASSUMPTION") || !strings.HasSuffix(text, "## Notes by hand\n\nAsk Ada whether the seed matters.\n") {
		t.Errorf("rendered as\n%s", text)
	}
	kept, err := filepath.Glob(f.file(answer, "edits/training_plan-*.md"))
	if err != nil || len(kept) != 1 || f.read(kept[0]) != edited {
		t.Errorf("the edited text is kept as %v, %v", kept, err)
	}
}

// An edit that is not wanted gives way to the rendering, and is kept.
func TestEditedPlanIsRenderedAnew(t *testing.T) {
	f, answer := planned(t)
	rendered := f.read(f.file(answer, planText))
	f.change(answer, planText, "| seed | 17 |", "| seed | 23 |")
	f.phase(3, answer.Run.RunID, map[string]any{"strategy": map[string]any{"patience": 4}})
	back := f.phase(3, answer.Run.RunID, map[string]any{"edited": "render_anew"})
	wantCode(t, back.Findings, "rendered_anew")
	if hasCode(back.Findings, "artifact_edited_by_hand") {
		t.Error("the artifact still counts as edited")
	}
	rendered = strings.Replace(rendered, "| patience | — | INFERRED |  | no argument of the script sets it; the script decides |", "| patience | 4 | ASSUMPTION |  | chosen by the agent |", 1)
	if got := f.read(f.file(answer, planText)); got != rendered {
		t.Errorf("rendered as\n%s", got)
	}
	if entries, err := os.ReadDir(f.file(answer, rundir.EditsDir)); err != nil || len(entries) != 1 {
		t.Errorf("kept: %v, %v", entries, err)
	}
	_, err := f.trainer.TrainingStrategy(t.Context(), engine.Silent, contract.Call{RunID: answer.Run.RunID, Section: map[string]any{"edited": "render_anew"}}, StrategyInput{})
	refusedWith(t, err, "nothing_edited")
	_, err = f.trainer.TrainingStrategy(t.Context(), engine.Silent, contract.Call{RunID: answer.Run.RunID, Section: map[string]any{"edited": "forget"}}, StrategyInput{})
	refusedWith(t, err, "unknown_value")
}

// A value changed in the knowledge is a fact without a quote; what the user's handoff says holds against it.
func TestEditedKnowledgeIsTakenOver(t *testing.T) {
	f, answer := planned(t)
	f.change(answer, knowledgeFile, "| training.extra.seed | 17 |", "| training.extra.seed | 23 |")
	f.change(answer, knowledgeFile, "| data.target | diagnosis |", "| data.target | radius |")
	taken := f.phase(1, answer.Run.RunID, map[string]any{"edited": "take_over"})
	wantCode(t, taken.Findings, "handoff_holds")
	var facts []evidence.Fact
	f.must(json.Unmarshal([]byte(f.read(f.file(answer, factsFile))), &facts))
	if seed := holding(facts, "training.extra.seed"); show(seed.Value) != "23" || seed.Status != evidence.Assumption || len(seed.Conflicts) == 0 {
		t.Errorf("seed %+v", seed)
	}
	if target := holding(facts, "data.target"); show(target.Value) != "diagnosis" {
		t.Errorf("target %+v", target)
	}
}

// Units, meanings and the ways samples are prepared are read back from the data plan.
func TestEditedDataPlanIsTakenOver(t *testing.T) {
	rendered := "## Sample contract\n\n- id: `sample`\n- target: `y` (number, unit not stated)\n\n### Columns\n\n| column | type | unit | meaning |\n|---|---|---|---|\n| `y` | number |  |  |\n| `a\\|b` | number |  |  |\n\n## Preparation\n\n- sampling: MISSING: not stated\n"
	edited := strings.NewReplacer("`y` | number |  |  |", "`y` | number | degC | at noon |", "`a\\|b` | number |  |  |", "`a\\|b` | number | m |  |", "sampling: MISSING: not stated", "sampling: every third row").Replace(rendered)
	section, covered, _, err := dataAndSplit{}.TakeOver(nil, rundir.Edit{Name: "p.md", Rendered: []byte(rendered), Edited: []byte(edited)})
	want := map[string]any{"data": map[string]any{"sampling": "every third row", "columns": map[string]any{
		"y": map[string]any{"unit": "degC", "meaning": "at noon"}, "a|b": map[string]any{"unit": "m"}}}}
	if diff := cmp.Diff(want, section); diff != "" || len(covered) != 3 || err != nil {
		t.Errorf("covered %v, %v, %s", covered, err, diff)
	}
}
