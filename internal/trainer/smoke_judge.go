package trainer

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// judge turns the end of the smoke run into the gate's check. A failure stops here, with its cause; a time limit says
// nothing about the script, nor does a failure on rows that a checkpoint to be resumed was not trained on.
func (w *smokeRun) judge(job *jobs.Entry, status jobs.Status) error {
	smoke := w.record(job, status)
	said := fmt.Sprintf("%s: %s on %s, %.1f s", job.JobID, status.State, rowsText(smoke.Rows), status.Seconds)
	w.step.Say(w.p.Name(), "smoke run %s", said)
	failed := status.State == jobs.StateFailed
	switch {
	case status.State == jobs.StateSucceeded:
		w.out.Summary += "; smoke run succeeded"
	case failed && w.step.Run.Handoff.Inputs.Checkpoint.ResumeCheckpoint == "":
		w.fail(job, status)
	default:
		w.inconclusive(job, status)
	}
	w.project(&smoke)
	if err := w.tellOutside(job); err != nil {
		return err
	}
	w.out.Check("smoke_run", w.out.Status != contract.StateFailed, said)
	return w.out.AddFile(smokeFile, smoke)
}

// surely are the causes that the whole data would not take away: the repair comes before anything else.
var surely = []string{"import_missing", "import_broken", "import_shadowed", "arguments_wrong", "command_not_found", "command_not_executable", "entrypoint_missing", "cuda_missing", "cuda_mismatch"}

// surelyRaised are the exceptions of which the same holds.
var surelyRaised = regexp.MustCompile(`\b(?:SyntaxError|IndentationError|NameError|UnboundLocalError|ImportError|ModuleNotFoundError)\b`)

func (w *smokeRun) fail(job *jobs.Entry, status jobs.Status) {
	f := finding.Finding{Code: "smoke_failed", Severity: finding.Error, What: "the script ended with " + exitText(status.Exit), Where: &finding.Where{Path: job.Folder}, Expected: "exit status 0",
		Remedy: "read stderr.log in that folder"}
	w.out.Category = jobs.CategoryUnknown
	if status.Cause != nil {
		f, w.out.Category = status.Cause.Finding, status.Cause.Category
		f.Severity = finding.Error
	}
	sure := slices.Contains(surely, f.Code) || surelyRaised.MatchString(f.What)
	f.What = "smoke run: " + f.What
	w.out.Status, w.out.Step = contract.StateFailed, contract.StatusFailed
	w.out.Blockers = append(w.out.Blockers, "smoke run "+job.JobID+" failed")
	w.out.Summary = f.What
	if sure {
		f.Remedy += fmt.Sprintf("; then phase_4_codegen {\"run_id\": %q}", w.step.Run.ID)
		w.p.askForRepair(w.out, w.step, w.made, f)
	} else {
		f.Remedy += fmt.Sprintf("; then phase_4_codegen {\"run_id\": %q}. If only the few rows (%s) are to blame, as the next call has it: \"smoke\": \"skip\"", w.step.Run.ID, rowsText(w.rows(job)))
		w.out.Next = &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "smoke": smokeSkip}}
	}
	w.out.Findings = append(w.out.Findings, f)
}

// project bounds the time of the whole training, and warns where that is more than the job may take.
func (w *smokeRun) project(smoke *Smoke) {
	if smoke.State != jobs.StateSucceeded {
		return
	}
	smoke.AtMostSeconds, smoke.Projection = projection(w.c.plan, trainRows(w.c.manifest), *smoke)
	limit := tierLimit(w.c.plan.Tier, w.step.Run.Handoff.Inputs.StepWallclockBudgetSeconds)
	if limit == 0 || smoke.AtMostSeconds <= float64(limit) {
		return
	}
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "time_may_not_suffice", Severity: finding.Note, Where: &finding.Where{Path: w.step.Run.File(smokeFile)},
		What:     fmt.Sprintf("the training may take up to %.0f s (%s), the job may take %d s", smoke.AtMostSeconds, smoke.Projection, limit),
		Expected: "time for the whole training", Remedy: "nothing has to be done where steps are faster than the start of the interpreter; else lower the epochs or raise the limit"})
}

func (w *smokeRun) inconclusive(job *jobs.Entry, status jobs.Status) {
	what := fmt.Sprintf("the smoke run was %s after %.0f s", status.State, status.Seconds)
	if status.State == jobs.StateFailed {
		what = "the smoke run failed, as a resumed run may on other rows and epochs"
		if status.Cause != nil {
			what += ": " + status.Cause.What
		}
	}
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "smoke_inconclusive", Severity: finding.Note, What: what + "; that the script runs is not shown", Where: &finding.Where{Path: job.Folder},
		Expected: fmt.Sprintf("an end within %.0f s", smokeLimit.Seconds()), Remedy: "nothing has to be done: the job itself shows whether it runs"})
}

// record is smoke.json of a job that is over.
func (w *smokeRun) record(job *jobs.Entry, status jobs.Status) Smoke {
	smoke := Smoke{State: status.State, JobID: job.JobID, Marker: w.marker, Command: job.Request.Command, Rows: w.rows(job), Seconds: status.Seconds, Outputs: []string{}}
	if status.Exit != nil {
		smoke.Exit, smoke.PeakRSSBytes = status.Exit.Code, status.Exit.PeakRSSBytes
	}
	work := filepath.Join(job.Folder, smokeWork)
	_ = filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error { // what can't be read is not counted
		if err != nil || !d.Type().IsRegular() || len(smoke.Outputs) == maxSmokeOutputs {
			return nil
		}
		rel, err := filepath.Rel(work, path)
		if err != nil || strings.HasPrefix(filepath.ToSlash(rel), "logs/") || strings.HasPrefix(filepath.ToSlash(rel), "config/") {
			return nil
		}
		smoke.Outputs = append(smoke.Outputs, filepath.ToSlash(rel))
		if info, err := d.Info(); err == nil && isCheckpoint(rel) {
			smoke.CheckpointBytes = max(smoke.CheckpointBytes, info.Size())
		}
		return nil
	})
	return smoke
}

// rows is how many rows of each part the smoke run had.
func (w *smokeRun) rows(job *jobs.Entry) map[string]int {
	rows := map[string]int{}
	_ = rundir.ReadJSON(filepath.Join(job.Folder, smokeRowsFile), &rows) // written before the request
	return rows
}

// maxSmokeOutputs bounds the files that smoke.json lists.
const maxSmokeOutputs = 200

// isCheckpoint says whether an output is one by its folder or its kind.
func isCheckpoint(rel string) bool {
	return strings.HasPrefix(filepath.ToSlash(rel), "checkpoints/") || slices.Contains([]string{".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".keras", ".pkl", ".joblib", ".npz"}, strings.ToLower(filepath.Ext(rel)))
}
