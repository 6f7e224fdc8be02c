package trainer

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/criteria"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// ExecutionInput is the section of phase_5_execution.
type ExecutionInput struct {
	Launch *Launch `json:"launch,omitempty" jsonschema_description:"How to start the job. After a failed job an explicit launch starts another one."`
}

// execution is phase 5: preflight, one durable job, a bounded wait, and a result of what one real execution left.
type execution struct{ t *Trainer }

func (execution) Name() string { return contract.PhaseExecution }

func (execution) Tool() string { return "phase_5_execution" }

// Job is the job that this phase waits for, if there is one (engine.Live).
func (p execution) Job(ctx context.Context, run *engine.Run) *engine.JobHandle {
	entry := newestJob(run, "")
	if entry == nil || entry.Request.Attempt < run.Attempt {
		return nil
	}
	status, err := p.t.Runtime.Status(ctx, []string{entry.Folder})
	if err != nil || len(status) == 0 {
		return nil
	}
	if jobs.Over(status[0].State) {
		if outputs, err := readOutputs(entry.Folder); err != nil || outputs != nil {
			return nil // it was taken up already
		}
		return &engine.JobHandle{JobID: entry.JobID, State: status[0].State, Ended: true}
	}
	return &engine.JobHandle{JobID: entry.JobID, State: status[0].State}
}

// launchWork is the state of phase 5 while it is put together.
type launchWork struct {
	p       execution
	step    *engine.Step
	out     *engine.Outcome
	made    Codegen
	plan    Plan
	given   ExecutionInput
	request contract.RuntimeRequest
	parts   []string // the files of data that the job reads
	marker  string
	basis   string // the marker without the code: what was asked for
	spent   int    // seconds of the step's budget that the try before this one used
	because string // the cause for which a job is started again, "" for a first one
}

// Run does phase 5.
func (p execution) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	if adopts(step.Run.Handoff) {
		return skipped(step, "the run was started elsewhere: no job is started")
	}
	var out engine.Outcome
	w := &launchWork{p: p, step: step, out: &out}
	var manifest contract.DataManifest
	for name, v := range map[string]any{codegenFile: &w.made, planFile: &w.plan, dataManifestFile: &manifest} {
		if err := step.ReadJSON(name, v); err != nil {
			return out, err
		}
	}
	var view projectView
	if err := step.ReadJSON(projectFile, &view); err != nil {
		return out, err
	}
	w.parts = partPaths(step.Run, manifest)
	for _, path := range slices.Concat([]string{w.made.Entrypoint}, view.codePaths(), w.parts) {
		// What is gone is told by the preflight, or was not needed.
		if _, err := step.Track(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
	}
	if err := stored(step, p.Name(), &w.given); err != nil {
		return out, err
	}
	if err := brought(step, &w.given); err != nil {
		return out, err
	}
	if err := w.describe(); err != nil {
		return out, err
	}
	if err := out.AddFile(runtimeRequest, w.request); err != nil {
		return out, err
	}
	if !w.channelServes() || !w.environmentServes() {
		out.Decide()
		out.Next = &engine.NextCall{}
		return out, nil
	}
	job, err := w.launch(ctx)
	if err != nil || job == nil {
		out.Decide()
		return out, err
	}
	if err := keepAnswers(&out, step, p.Name(), w.given); err != nil {
		return out, err
	}
	return out, w.wait(ctx, job)
}

// partPaths are the files that the job reads: the parts, or the whole table of a script that splits it itself.
func partPaths(run *engine.Run, manifest contract.DataManifest) []string {
	var out []string
	whole := !slices.ContainsFunc(manifest.Files, func(f contract.DataFile) bool { return f.Part != "" })
	for _, f := range manifest.Files {
		if f.Part == "" && !whole {
			continue // the table that the parts were cut from
		}
		out = append(out, run.Dir.Abs(f.Path))
	}
	return out
}

// describe fills runtime_request.json.
func (w *launchWork) describe() error {
	run, in := w.step.Run, w.step.Run.Handoff.Inputs
	command := slices.Clone(w.made.Command)
	if len(command) == 0 {
		return errors.New("codegen.json names no command")
	}
	given := w.launchInput()
	if given.Environment.Python != "" {
		command[0] = given.Environment.Python
	}
	w.made.Command = command
	env := contract.EnvironmentRequirements{Python: command[0], Frameworks: w.made.Imports, Accelerator: hardware(in.Runtime.EnvironmentRequirements), Modules: given.Environment.Modules,
		Conda: given.Environment.Conda, ContainerOrImage: given.Environment.Container, Memory: text(in.Runtime.EnvironmentRequirements["memory"])}
	w.request = contract.RuntimeRequest{Task: run.Handoff.StepGoal, CodeSaveDir: run.CodeSaveDir, TrainerWorkdir: run.Workdir, Workdir: run.Workdir, Entrypoint: w.made.Entrypoint,
		Command: launch.Join(command), TrainCommand: launch.Join(command), ExecutionMode: orUnknown(in.Runtime.ExecutionMode), Hardware: hardware(in.Runtime.EnvironmentRequirements),
		PackageRequirements: in.Runtime.PackageRequirements, EnvironmentRequirements: env,
		KnowledgeInputs: contract.KnowledgeInputs{SourceCapturePath: captureFile, TrainingKnowledgePath: knowledgeFile, DataManifestPath: dataManifestFile, TrainingPlanPath: planText},
		PreflightChecks: []string{"interpreter answers", "entry point is there", "imports are found", "data parts are readable", "code_save_dir is writable", "no expected output exists yet"},
		ExpectedOutputs: w.made.Outputs, InitCheckpoint: in.Checkpoint.InitCheckpoint, ResumeCheckpoint: in.Checkpoint.ResumeCheckpoint,
		ExpectedCheckpoints: []string{}, ExpectedMetrics: []string{}, LogDir: filepath.Join(run.CodeSaveDir, "logs"), ManifestPath: contract.FileRunManifest}
	if w.made.CheckpointDir != "" {
		w.request.ExpectedCheckpoints = []string{filepath.Join(w.made.CheckpointDir, "*")}
	}
	if err := launch.Note(&w.request, w.ask()); err != nil {
		return err
	}
	for _, text := range w.plan.criteriaOf() {
		if c, err := criteria.Parse(text); err == nil {
			w.request.ExpectedMetrics = append(w.request.ExpectedMetrics, metrics.ParseKey(c.Key).String())
		}
	}
	return w.mark(command)
}

// mark names the launch by what it runs on what. Another training part or script is another launch; how the agent asked for
// it is not: that is in the command.
func (w *launchWork) mark(command []string) error {
	inputs := w.step.Inputs()
	delete(inputs, answersFile(w.p.Name()))
	sum := func() (string, error) {
		key, err := contract.Canonical(map[string]any{"command": command, "attempt": w.step.Run.Attempt, "inputs": inputs})
		return strings.TrimPrefix(rundir.HashBytes(key), "sha256:"), err
	}
	marker, err := sum()
	if err != nil {
		return err
	}
	w.marker = "tw-" + marker[:16]
	// The code is left out, and the plan with all that was read out of the code: what was asked for stays, in the command, in
	// the handoff, and in what the agent said of the plan and of the code.
	maps.DeleteFunc(inputs, func(path, _ string) bool { return !slices.Contains(w.parts, path) })
	asked, err := contract.Canonical(map[string]any{"parameters": w.step.Run.Handoff.Inputs.Parameters, "checkpoint": w.step.Run.Handoff.Inputs.Checkpoint})
	if err != nil {
		return err
	}
	inputs["asked"] = rundir.HashBytes(asked)
	for _, phase := range []string{contract.PhaseTrainingStrategy, contract.PhaseCodegen} {
		file := w.step.Run.File(answersFile(phase))
		if sha, _, err := rundir.HashFile(file); err == nil { // none: nothing was said
			inputs[file] = sha
		}
	}
	w.basis, err = sum()
	return err
}
