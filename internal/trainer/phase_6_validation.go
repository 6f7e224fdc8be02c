package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// ValidationInput is the section of phase_6_validation.
type ValidationInput struct {
	Checks []string `json:"checks,omitempty" jsonschema_description:"Extra criteria, such as accuracy >= 0.9."`
	Adopt  *Adopt   `json:"adopt,omitempty" jsonschema_description:"For execution_intent validate_only: a run that was started elsewhere."`
	engine.EditedInput
}

// Adopt names the folder of a run that was started elsewhere.
type Adopt struct {
	Path  string `json:"path" jsonschema_description:"Folder with outputs/ and checkpoints/."`
	JobID string `json:"job_id,omitempty" jsonschema_description:"Its id where it ran."`
}

// validation is phase 6: the outputs as the job left them, the checkpoint, the metrics, the numbers computed anew from the
// predictions, and the criteria judged by the best evidence there is.
type validation struct{ t *Trainer }

func (validation) Name() string { return contract.PhaseValidation }
func (validation) Tool() string { return "phase_6_validation" }

// judged is one criterion with its verdict. Level is empty where no value was found.
type judged struct {
	Text    string
	Met     bool
	Parsed  bool
	Claim   *evidence.Claim
	Problem string
}

// validationWork is the state of phase 6 while it is put together.
type validationWork struct {
	t           *Trainer
	step        *engine.Step
	out         *engine.Outcome
	made        Codegen
	plan        Plan
	manifest    contract.DataManifest
	result      contract.RuntimeResult
	given       ValidationInput
	base        string // folder that output paths are relative to
	outputs     []Output
	exit        *jobs.Exit
	external    bool
	jobFailed   bool // phase 5 failed, and what its job left is looked at all the same
	checkpoints []checkpoint.Info
	log         *metrics.Log
	metricsName string // the output that the log was read from
	oldBytes    int64  // how much of metrics.jsonl an earlier job wrote, where this one resumed
	rewritten   bool   // a job that resumed wrote the file anew instead of going on with it
	start       *checkpoint.Info
	best        bestEpoch
	summary     summaryFile
	claims      []evidence.Claim
	baselines   []scored
	notBetter   []string // where the model does not beat the best of them
	criteria    []judged
	unchecked   []string
}

// Run does phase 6.
func (p validation) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	var out engine.Outcome
	w := &validationWork{t: p.t, step: step, out: &out, base: step.Run.CodeSaveDir, external: adopts(step.Run.Handoff)}
	for name, v := range map[string]any{planFile: &w.plan, dataManifestFile: &w.manifest} {
		if err := step.ReadJSON(name, v); err != nil {
			return out, err
		}
	}
	if err := stored(step, p.Name(), &w.given); err != nil {
		return out, err
	}
	if err := brought(step, &w.given); err != nil {
		return out, err
	}
	if err := w.gather(); err != nil || w.external && len(w.outputs) == 0 {
		return out, err
	}
	step.Say(p.Name(), "checking %d outputs", len(w.outputs))
	w.integrity()
	w.checkCheckpoints()
	w.readMetrics()
	if err := w.crossCheck(); err != nil {
		return out, err
	}
	w.recompute()
	step.Say(p.Name(), "scoring trivial models on the same split")
	w.compareBaselines(ctx)
	w.judge()
	out.Findings = append(out.Findings, tierRisk(w.plan, step.Run.File(reportFile))...)
	w.verdict()
	if err := out.AddFile(claimsFile, w.claims); err != nil {
		return out, err
	}
	w.plot()
	out.AddText(reportFile, w.render())
	return out, keepAnswers(&out, step, p.Name(), w.given)
}

func adopts(h contract.StepHandoff) bool {
	return h.Inputs.Runtime.ExecutionIntent == contract.IntentValidateOnly
}

// gather finds what there is to validate: the job of phase 5 with the outputs it left, or the folder that is adopted.
func (w *validationWork) gather() error {
	if w.external {
		return w.adopt()
	}
	for name, v := range map[string]any{runtimeResult: &w.result, codegenFile: &w.made} {
		if err := w.step.ReadJSON(name, v); err != nil {
			return err
		}
	}
	folder := w.step.Run.File("jobs/" + w.result.JobID)
	record, err := w.step.Run.Dir.Record(contract.PhaseExecution)
	if err != nil {
		return err
	}
	w.jobFailed = record != nil && record.Status == contract.StateFailed
	if record != nil { // a phase 5 that is done again makes this verdict stale
		if _, err := w.step.Track("phases/" + contract.PhaseExecution + ".json"); err != nil {
			return err
		}
	}
	if w.outputs, err = readOutputs(folder); err != nil {
		return err
	}
	w.exit, err = jobs.ReadExit(folder)
	return err
}

// abs is where an output lies; a path that is absolute already, such as that of the job's own log, stays as it is.
func (w *validationWork) abs(o string) string { return under(w.base, o) }

// under is the path of a file that is named with slashes, from base where it is not absolute.
func under(base, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(base, filepath.FromSlash(name))
}

// integrity compares every output and every data part with what was recorded when the job ended.
func (w *validationWork) integrity() {
	changed := func(code, path, what, remedy string) {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Path: path}, Expected: "the file as the job left it", Remedy: remedy})
	}
	again := "put it back as it was, or run the job again: phase_5_execution with launch"
	if w.external {
		again = "put it back as it was, or adopt the folder anew: send adopt"
	}
	good := 0
	for _, o := range w.outputs {
		sha, err := w.step.Track(w.abs(o.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changed("artifact_missing", w.abs(o.Path), o.Path+" was left by the job and is gone", again)
		case err != nil:
			changed("artifact_unreadable", w.abs(o.Path), fmt.Sprintf("%s: %v", o.Path, err), again)
		case sha != o.SHA256 && !o.Intact(w.abs(o.Path)):
			changed("artifact_edited", w.abs(o.Path), o.Path+" is not what the job left", again)
		default:
			good++
		}
	}
	w.out.Check("outputs_unchanged", good == len(w.outputs) && good > 0, fmt.Sprintf("%d of %d outputs are as the job left them", good, len(w.outputs)))
	for _, f := range w.manifest.Files {
		if f.Part == "" || w.external {
			continue
		}
		if sha, err := w.step.Track(w.step.Run.Dir.Abs(f.Path)); err != nil || sha != f.SHA256 {
			changed("artifact_edited", w.step.Run.Dir.Abs(f.Path), "the "+f.Part+" part changed after it was split", "call phase_2_data_and_split again")
		}
	}
	w.outputTimes()
}

// checkCheckpoints looks at what the job left as checkpoints.
func (w *validationWork) checkCheckpoints() {
	dir := w.made.CheckpointDir
	if dir == "" {
		w.unchecked = append(w.unchecked, "checkpoint: the script has no argument that says where it writes one")
		return
	}
	infos, found, err := checkpoint.List(dir)
	if err != nil {
		found = append(found, refusalOf(err)...)
	}
	w.out.Findings = append(w.out.Findings, found...)
	// Only what the job itself left counts: not what was put there later, nor what a link leads to.
	infos = slices.DeleteFunc(infos, func(i checkpoint.Info) bool {
		return !slices.ContainsFunc(w.outputs, func(o Output) bool { return w.abs(o.Path) == i.Path })
	})
	w.checkpoints = infos
	w.out.Check("checkpoint", w.usableCheckpoint(dir), fmt.Sprintf("%d checkpoints, newest: %s", len(infos), newestCheckpoint(infos)))
}

// usableCheckpoint says whether the job left a checkpoint that is complete, or one of a format that can't be looked into:
// that is a doubt, and no fault of the run.
func (w *validationWork) usableCheckpoint(dir string) bool {
	complete := func(state string) func(checkpoint.Info) bool {
		return func(i checkpoint.Info) bool { return i.Complete == state }
	}
	unread := slices.IndexFunc(w.outputs, func(o Output) bool {
		return rundir.Inside(dir, w.abs(o.Path)) && !strings.HasSuffix(o.Path, ".complete.json") && !slices.ContainsFunc(w.checkpoints, func(i checkpoint.Info) bool { return i.Path == w.abs(o.Path) })
	})
	spoilt := func(path string) bool {
		return slices.ContainsFunc(w.out.Findings, func(f finding.Finding) bool {
			return f.Severity == finding.Error && f.Where != nil && f.Where.Path == path
		})
	}
	unknown := slices.IndexFunc(w.checkpoints, func(i checkpoint.Info) bool { return i.Complete == checkpoint.Unknown && !spoilt(i.Path) })
	var path string
	switch {
	case slices.ContainsFunc(w.checkpoints, complete(checkpoint.Complete)):
		return true
	case unknown >= 0:
		path = w.checkpoints[unknown].Path
	case len(w.checkpoints) == 0 && unread >= 0:
		path = w.abs(w.outputs[unread].Path)
	case len(w.checkpoints) > 0 && spoilt(w.checkpoints[0].Path):
		return false
	case len(w.checkpoints) > 0:
		w.found(finding.Finding{Code: "checkpoint_incomplete", Severity: finding.Error, What: "none of the checkpoints that the job left is complete", Where: &finding.Where{Path: w.checkpoints[0].Path},
			Expected: "at least one complete checkpoint", Remedy: "read job_logs around the time of the last one: did saving fail, or was the job stopped while it saved?"})
		return false
	case w.external:
		w.unchecked = append(w.unchecked, "checkpoint: the adopted folder has none in checkpoints/")
		return true
	default:
		w.found(finding.Finding{Code: "checkpoint_missing", Severity: finding.Error, What: "the job left no checkpoint", Where: &finding.Where{Path: dir},
			Expected: "at least one complete checkpoint", Remedy: "read job_logs; check the checkpoint cadence in training_plan.md"})
		return false
	}
	w.unchecked = append(w.unchecked, "checkpoint: whether "+w.rel(path)+" is complete can't be seen from its format")
	w.found(finding.Finding{Code: "checkpoint_unverified", Severity: finding.Warning, What: "no checkpoint of the job is of a format that shows whether it is complete", Where: &finding.Where{Path: path},
		Expected: "safetensors, a PyTorch file, or a marker <file>.complete.json with its hash", Remedy: "load it once before you rely on it, or let the script write the marker (formats.md)"})
	return true
}

func newestCheckpoint(infos []checkpoint.Info) string {
	if len(infos) == 0 {
		return "none"
	}
	return filepath.Base(infos[0].Path) + " (" + infos[0].Complete + ")"
}

// outputNamed is the job's output with that file name, "" when there is none: the one in outputs/, else the one that lies
// highest.
func (w *validationWork) outputNamed(name string) string {
	best := ""
	for _, o := range w.outputs {
		if path.Base(o.Path) != name {
			continue
		}
		if o.Path == "outputs/"+name {
			return o.Path
		}
		if best == "" || strings.Count(o.Path, "/") < strings.Count(best, "/") {
			best = o.Path
		}
	}
	return best
}
