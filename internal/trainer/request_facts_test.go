package trainer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
)

// What the user's own words state is theirs; what they rule out or say twice is not taken.
func TestRequestStatesParameters(t *testing.T) {
	for words, want := range map[string]map[string]any{
		"Train with learning rate 0.01 for 50 epochs, batch size 64, SGD": {"training.batch_size": 64.0, "training.epochs_or_steps": 50.0, "training.extra.learning_rate": 0.01, "training.optimizer": "SGD"},
		"Do not train more than 50 epochs":                                {},
		"Compare 20 epochs and 40 epochs":                                 {},
		"Use Adam instead of SGD":                                         {},
		"学习率 0.01，批大小为 32":                                                {"training.batch_size": 32.0, "training.extra.learning_rate": 0.01},
		"Predict the temperature":                                         {},
	} {
		run := &engine.Run{Handoff: contract.StepHandoff{Inputs: contract.Inputs{InstructionSource: contract.InstructionSource{Text: words}}}}
		c := &capture{step: &engine.Step{Run: run}, sources: []evidence.Source{{ID: "s2", Ref: requestSource}}}
		got := map[string]any{}
		for _, f := range c.requestFacts() {
			got[f.Field] = f.Value
			if f.By != byUser || f.Source != "s2" || !strings.Contains(words, f.Quote) {
				t.Errorf("%s: %+v", words, f)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", words, diff)
		}
	}
}

// A plan is offered to a user who wants no more.
func TestPlanAlone(t *testing.T) {
	for words, want := range map[string]bool{"Plan only, please": true, "Only make a plan": true, "do not train yet": true, "只要训练计划": true, "Train it": false, "the training plan of last year": false} {
		if got := planAlone().MatchString(words); got != want {
			t.Errorf("%s: %v", words, got)
		}
	}
}

// Whole numbers are classes where the task or a criterion says so, else quantities; a proposal always exists.
func TestLossOfWholeNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		task     string
		criteria []string
		want     string
	}{"by the task": {"classification", nil, "cross_entropy"}, "by a criterion": {"", []string{"test/accuracy >= 0.9"}, "cross_entropy"}, "a regression": {"regression", []string{"test/rmse <= 3"}, "mse"}, "unsaid": {"", nil, "mse"}} {
		s := &settler{target: contract.TargetColumn{Name: "n", Type: dataset.TypeInteger}, task: c.task, criteria: c.criteria}
		if got, why := s.proposal(leafSpec{path: "loss"}); got != c.want || why == "" {
			t.Errorf("%s: %v (%s)", name, got, why)
		}
	}
}

// Spellings of one word are no conflict.
func TestSpellingsAreNoConflict(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{{"AdamW", "adamw", true}, {"adam", "adamw", false}, {1.0, 1.0, true}, {"1", 1.0, false}} {
		if got := sameMeaning(c.a, c.b); got != c.want {
			t.Errorf("%v %v: %v", c.a, c.b, got)
		}
	}
}

// A file that can't be read to its end is told as such, and not taken for one that changes.
func TestAFileThatBreaksOff(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.handoff.Inputs.Data.TrainSource = "data/open.csv"
	f.write("data/open.csv", "sample,a,diagnosis\n1,2,benign\n2,\"3,malignant\n")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	wantCode(t, answer.Findings, "quote_unterminated")
}

// Features that a fact lists are the sample's, and a copy of the target among the others gives nothing away.
func TestFeaturesOfAFact(t *testing.T) {
	f, answer := planned(t)
	list := []any{"mean_radius", "mean_texture"}
	f.phase(1, answer.Run.RunID, map[string]any{"facts": []any{map[string]any{"field": "data.features", "value": list, "status": "ASSUMPTION"}}})
	f.phase(2, answer.Run.RunID, nil)
	var manifest contract.DataManifest
	f.must(json.Unmarshal([]byte(f.read(f.file(answer, dataManifestFile))), &manifest))
	if diff := cmp.Diff([]string{"mean_radius", "mean_texture"}, manifest.Schema.Features); diff != "" {
		t.Error(diff)
	}
}
