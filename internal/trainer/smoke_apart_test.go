package trainer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/policy"
)

// begins is where the example's script starts its work: an edit puts statements before it.
const begins = "    config = load_config(argv)\n    try:"

func (f *fixture) first(statements ...string) {
	f.t.Helper()
	f.edit("train.py", begins, "    config = load_config(argv)\n    "+strings.Join(statements, "\n    ")+"\n    try:")
}

// What a script writes beside itself, or relative to where it runs, stays in the smoke run's folder: nothing is there from
// which the job could resume in silence.
func TestWhatASmokeRunWritesBesideItselfStaysApart(t *testing.T) {
	f := newFixture(t)
	f.write("checkpoints/last.pt", "of an earlier training")
	f.write("logs/train.log", "first line\n")
	f.first("here = os.path.dirname(os.path.abspath(__file__))",
		"os.makedirs(os.path.join(here, 'checkpoints'), exist_ok=True)",
		"assert not os.listdir(os.path.join(here, 'checkpoints'))",
		"open(os.path.join(here, 'checkpoints', 'last.pt'), 'w').write('of the smoke run')",
		"open(os.path.join(here, 'logs', 'train.log'), 'a').write('another line')",
		"open('state.json', 'w').write('{}')")
	id := f.untilCode()
	workdir := f.phase(3, id, nil).ExecutionResult.Artifacts["trainer_workdir"]
	before := hashes(t, workdir, f.dir)
	answer := f.phase(4, id, nil)
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess || f.smoke(answer).State != jobs.StateSucceeded {
		t.Fatalf("%s", describe(answer))
	}
	after := hashes(t, workdir, f.dir)
	delete(after, filepath.Join(answer.ExecutionResult.Artifacts["code_save_dir"], overrideFile))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the tree changed:\n%s", diff)
	}
}

// A script that writes by an absolute path is found out, by what is there afterwards.
func TestASmokeRunThatWroteOutsideIsTold(t *testing.T) {
	for _, c := range []struct {
		name     string
		severity finding.Severity
	}{{"last.pt", finding.Error}, {"notes.txt", finding.Note}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			path := filepath.Join(f.dir, "shared", c.name)
			f.write("shared/keep", "")
			f.first("open(" + jsonText(path) + ", 'w').write('left')")
			answer := f.phase(4, f.untilCode(), nil)
			got := wantCode(t, answer.Findings, "smoke_wrote_outside")
			if got.Severity != c.severity || got.Where.Path != path {
				t.Errorf("%s %s", got.Severity, got.Where)
			}
			if passed := answer.Run.PhaseStatus[contract.PhaseCodegen] == contract.StateSuccess; passed != (c.severity == finding.Note) {
				t.Errorf("%s", describe(answer))
			}
			if f.read(path) != "left" {
				t.Error("a file of the user's tree was taken away")
			}
		})
	}
}

// A failure that a few rows may have brought about is not the end: the next call goes on without the smoke run.
func TestAFailureOnAFewRowsOffersToGoOn(t *testing.T) {
	f := newFixture(t)
	f.first("rows = sum(1 for _ in open(config.train))", "assert rows > 100, 'needs at least 100 rows, has %d' % rows")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	if answer.Run.Phase != contract.PhaseCodegen {
		t.Fatalf("%s", describe(answer))
	}
	next := answer.Run.NextCall
	if next == nil || next.Tool != "phase_4_codegen" || next.Arguments["smoke"] != "skip" {
		t.Fatalf("next call %+v", next)
	}
	again := f.phase(4, answer.Run.RunID, map[string]any{"smoke": "skip"})
	if again.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Errorf("%s", describe(again))
	}
}

// One that the whole data would not take away waits for the repair, and says what has to be repaired.
func TestASureFailureWaitsForTheRepair(t *testing.T) {
	f := newFixture(t)
	f.first("undefined_name")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	if next := answer.Run.NextCall; next != nil || len(answer.Needs) != 1 || answer.Needs[0].Field != "code" || !strings.Contains(answer.Needs[0].WhereToLook[0], "train.py:") {
		t.Errorf("next %+v needs %+v", next, answer.Needs)
	}
}

// The user's budget holds for the smoke run too: what it does not allow is left out.
func TestNoBudgetNoSmokeRun(t *testing.T) {
	f := newFixture(t)
	none := 0.0
	f.trainer.Authority.Policy = policy.Policy{Budget: policy.Budget{CoreHours: &none}}
	answer := f.phase(4, f.untilCode(), nil)
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess || f.smoke(answer).State != smokeSkipped {
		t.Fatalf("%s", describe(answer))
	}
	if got := wantCode(t, answer.Findings, "smoke_skipped"); !strings.Contains(got.What, "policy") {
		t.Errorf("%s", got.What)
	}
}
