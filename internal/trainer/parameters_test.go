package trainer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

// A parameter counts wherever it stands, in extra or beside the named ones; one without any effect is told.
func TestParametersBesideTheNamedOnes(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Parameters.Unknown = contract.Unknown{"learning_rate": json.RawMessage("0.05"), "hiden_size": json.RawMessage("12")}
	answer := f.phase(4, f.untilCode(), nil)
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(answer))
	}
	smoke := f.smoke(answer)
	if at := slices.Index(smoke.Command, "--learning-rate"); at < 0 || smoke.Command[at+1] != "0.05" {
		t.Errorf("command %v", smoke.Command)
	}
	got := wantCode(t, answer.Findings, "parameter_unused")
	if got.Severity != finding.Warning || got.Where.Field != "inputs.parameters.hiden_size" || !strings.Contains(got.Remedy, "hidden_size") {
		t.Errorf("%s", got)
	}
}

// A script that names the data itself, although it is given parts of it, is told of.
func TestScriptThatNamesTheDataItself(t *testing.T) {
	f := newFixture(t)
	f.first("everything = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data', 'wdbc.csv')")
	answer := f.phase(4, f.untilCode(), nil)
	if got := wantCode(t, answer.Findings, "data_named"); got.Severity != finding.Warning || got.Where.Line == 0 {
		t.Errorf("%s", got)
	}
}

// On this machine nobody holds a job to its memory: that is said.
func TestLimitsThatNobodyEnforces(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	again := f.phase(5, answer.Run.RunID, map[string]any{"launch": map[string]any{"resources": map[string]any{"memory_mb": 2000}}})
	if got := wantCode(t, again.Findings, "limit_not_enforced"); got.Severity != finding.Note {
		t.Errorf("%s", got)
	}
}

// An argument for a part that reading the script did not find may be named by the agent, with the part or its file.
func TestPartsUnderTheScriptsOwnNames(t *testing.T) {
	f := newFixture(t)
	f.edit("train.py", `p.add_argument("--val-data"`, `p.add_argument(*["--watch"], dest="val_data"`)
	answer := f.phase(4, f.untilCode(), nil)
	if got := wantCode(t, answer.Findings, "part_not_taken"); !strings.Contains(got.Remedy, answer.Run.RunID) {
		t.Errorf("%s", got)
	}
	again := f.phase(4, answer.Run.RunID, map[string]any{"arguments": map[string]any{"--watch": "val"}})
	if again.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(again))
	}
	smoke := f.smoke(again)
	if at := slices.Index(smoke.Command, "--watch"); at < 0 || !strings.HasSuffix(smoke.Command[at+1], "/data/val.csv") {
		t.Errorf("command %v", smoke.Command)
	}
}
