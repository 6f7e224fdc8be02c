package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// ExecutionInput is the section of phase_5_execution.
type ExecutionInput struct {
	Launch *Launch `json:"launch,omitempty" jsonschema_description:"How to start the job. After a failed job an explicit launch starts another one."`
}

// Launch says where and with what a job runs.
type Launch struct {
	Channel     string            `json:"channel,omitempty" jsonschema:"enum=local_direct,enum=local_slurm,enum=ssh_direct,enum=ssh_slurm"`
	Site        string            `json:"site,omitempty"`
	Resources   jobs.Resources    `json:"resources,omitzero"`
	Environment LaunchEnvironment `json:"environment,omitzero"`
	WaitSeconds *int              `json:"wait_seconds,omitempty"`
}

// LaunchEnvironment is what the job's software comes from.
type LaunchEnvironment struct {
	Python    string   `json:"python,omitempty" jsonschema_description:"Interpreter to run with."`
	Modules   []string `json:"modules,omitempty"`
	Conda     string   `json:"conda,omitempty"`
	Container string   `json:"container,omitempty"`
}

// execution is phase 5: preflight, one durable job, a bounded wait, and a result of what one real execution left.
type execution struct{ t *Trainer }

func (execution) Name() string { return contract.PhaseExecution }
func (execution) Tool() string { return "phase_5_execution" }

// Job is the job that this phase waits for, if there is one (engine.Live).
func (p execution) Job(ctx context.Context, run *engine.Run) *engine.JobHandle {
	entry := newestJob(run, "")
	if entry == nil {
		return nil
	}
	status, err := p.t.Runtime.Status(ctx, []string{entry.Folder})
	if err != nil || len(status) == 0 || jobs.Terminal(status[0].State) || status[0].State == jobs.StateUnknown {
		return nil
	}
	return &engine.JobHandle{JobID: entry.JobID, State: status[0].State}
}

// newestJob is the run's newest job with that marker (any job where marker is empty), or nil.
func newestJob(run *engine.Run, marker string) *jobs.Entry {
	entries, _ := jobs.List([]string{run.File("jobs")})
	for i := range entries {
		if marker == "" || entries[i].Request.Marker == marker {
			return &entries[i]
		}
	}
	return nil
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
	marker  string
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
	for _, path := range append([]string{w.made.Entrypoint}, partPaths(step.Run, manifest)...) {
		if _, err := step.Track(path); err != nil {
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
	if !w.channelServes() {
		out.Decide()
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

func partPaths(run *engine.Run, manifest contract.DataManifest) []string {
	var out []string
	for _, f := range manifest.Files {
		if f.Part == "" {
			continue
		}
		if filepath.IsAbs(f.Path) {
			out = append(out, f.Path)
		} else {
			out = append(out, run.File(f.Path))
		}
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
	launch := w.launchInput()
	if launch.Environment.Python != "" {
		command[0] = launch.Environment.Python
	}
	w.made.Command = command
	env := contract.EnvironmentRequirements{Python: command[0], Frameworks: w.made.Imports, Accelerator: hardware(in.Runtime.EnvironmentRequirements), Modules: launch.Environment.Modules,
		Conda: launch.Environment.Conda, ContainerOrImage: launch.Environment.Container, Memory: text(in.Runtime.EnvironmentRequirements["memory"])}
	w.request = contract.RuntimeRequest{Task: run.Handoff.StepGoal, CodeSaveDir: run.CodeSaveDir, TrainerWorkdir: run.Workdir, Workdir: run.Workdir, Entrypoint: w.made.Entrypoint,
		Command: shellJoin(command), TrainCommand: shellJoin(command), ExecutionMode: orUnknown(in.Runtime.ExecutionMode), Hardware: hardware(in.Runtime.EnvironmentRequirements),
		PackageRequirements: in.Runtime.PackageRequirements, EnvironmentRequirements: env,
		KnowledgeInputs: contract.KnowledgeInputs{SourceCapturePath: captureFile, TrainingKnowledgePath: knowledgeFile, DataManifestPath: dataManifestFile, TrainingPlanPath: planText},
		PreflightChecks: []string{"interpreter answers", "entry point is there", "imports are found", "data parts are readable", "code_save_dir is writable", "no expected output exists yet"},
		ExpectedOutputs: w.made.Outputs, InitCheckpoint: in.Checkpoint.InitCheckpoint, ResumeCheckpoint: in.Checkpoint.ResumeCheckpoint,
		ExpectedCheckpoints: []string{}, ExpectedMetrics: []string{}, LogDir: filepath.Join(run.CodeSaveDir, "logs"), ManifestPath: contract.FileRunManifest}
	if w.made.CheckpointDir != "" {
		w.request.ExpectedCheckpoints = []string{filepath.Join(w.made.CheckpointDir, "*")}
	}
	w.request.ExpectedMetrics = append(w.request.ExpectedMetrics, w.plan.criteriaOf()...)
	key, err := contract.Canonical(map[string]any{"command": command, "attempt": run.Attempt, "inputs": w.inputHashes()})
	if err != nil {
		return err
	}
	w.marker = "tw-" + strings.TrimPrefix(rundir.HashBytes(key), "sha256:")[:16]
	return nil
}

// inputHashes are the hashes of what the job reads: another training part or script is another launch.
func (w *launchWork) inputHashes() map[string]string { return w.step.Inputs() }

func (w *launchWork) launchInput() Launch {
	if w.given.Launch == nil {
		return Launch{}
	}
	return *w.given.Launch
}

// channelServes says whether this build can run the job where it is wanted. A remote intent never falls back to a local
// run.
func (w *launchWork) channelServes() bool {
	in := w.step.Run.Handoff.Inputs.Runtime
	channel := w.launchInput().Channel
	if channel == "" {
		channel = map[string]string{contract.ModeLocalSlurm: contract.ChannelLocalSlurm, contract.ModeRemoteSlurm: contract.ChannelSSHSlurm, contract.ModeRemoteDirect: contract.ChannelSSHDirect}[in.ExecutionMode]
	}
	if channel == "" && in.ExecutionIntent == contract.IntentRunRemote {
		channel = contract.ChannelSSHDirect
	}
	if channel == "" || (channel == contract.ChannelLocalDirect && in.ExecutionIntent != contract.IntentRunRemote) {
		return true
	}
	w.out.Category = jobs.CategoryPlatform
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "channel_unavailable", Severity: finding.Error,
		What:     fmt.Sprintf("the job is wanted on channel %s, which this trainwright does not serve; it was not started anywhere", channel),
		Where:    &finding.Where{Field: "step_handoff.inputs.runtime.execution_mode"},
		Expected: "local_direct", Remedy: "runtime_request.json is complete: run it there by hand, or ask the user whether a local run will do and start a run with execution_intent run_local"})
	w.out.Blockers = append(w.out.Blockers, "channel "+channel)
	w.out.Check("channel", false, "the channel is served")
	w.out.Summary = "not started: channel " + channel + " is not served"
	return false
}

// launch finds this launch's job, or makes it: preflight, no output in the way, inventory, job folder, start. It returns
// nil when the gate stops it. The lock covers looking and creating, so that two servers make one job.
func (w *launchWork) launch(ctx context.Context) (*jobs.Entry, error) {
	unlock, err := rundir.Lock(ctx, w.step.Run.File(".launch.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if job := newestJob(w.step.Run, w.marker); job != nil {
		again, err := w.again(ctx, job)
		if err != nil {
			return nil, err
		}
		if !again {
			_, err := w.p.t.Runtime.Submit(ctx, job.Folder)
			return job, err
		}
	}
	if ok, err := w.preflight(ctx); err != nil || !ok {
		return nil, err
	}
	if ok, err := w.clearOutputs(); err != nil || !ok {
		return nil, err
	}
	return w.create(ctx)
}

// again says whether an explicit launch asks for another job after one that ended badly.
func (w *launchWork) again(ctx context.Context, job *jobs.Entry) (bool, error) {
	if _, asked := w.step.Section["launch"]; !asked {
		return false, nil
	}
	status, err := w.p.t.Runtime.Status(ctx, []string{job.Folder})
	if err != nil {
		return false, err
	}
	switch status[0].State {
	case jobs.StateFailed, jobs.StateCancelled, jobs.StateTimeout, jobs.StateUnknown:
		return true, nil
	}
	return false, nil
}

func (w *launchWork) preflight(ctx context.Context) (bool, error) {
	w.step.Say(w.p.Name(), "preflight")
	run := w.step.Run
	spec := local.PreflightSpec{Python: w.made.Command[0], WorkDir: run.CodeSaveDir, Entrypoint: w.made.Entrypoint, Imports: w.made.Imports, OutputDir: run.CodeSaveDir, Resources: w.launchInput().Resources}
	for _, a := range w.made.Arguments {
		if strings.HasPrefix(a.Field, "data.") && strings.HasSuffix(a.Field, "source") {
			spec.Inputs = append(spec.Inputs, text(a.Value))
		}
	}
	report, found, err := w.p.t.Runtime.Preflight(ctx, spec)
	if err != nil {
		return false, err
	}
	w.out.Findings = append(w.out.Findings, found...)
	for _, c := range report.Checks {
		w.out.Check("preflight_"+c.Name, c.OK, c.Evidence)
	}
	if !report.OK {
		w.out.Category = jobs.CategoryEnvironment
		w.out.Summary = "not started: preflight failed"
		w.out.Blockers = append(w.out.Blockers, "preflight")
	}
	return report.OK, nil
}

// create writes the job's folder and starts it.
func (w *launchWork) create(ctx context.Context) (*jobs.Entry, error) {
	run := w.step.Run
	id, folder := w.freeID()
	w.step.Say(w.p.Name(), "starting job %s", id)
	before, found, err := inventory(run, w.made)
	if err != nil {
		return nil, err
	}
	w.out.Findings = append(w.out.Findings, found...)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := rundir.WriteJSON(filepath.Join(folder, inventoryFile), before); err != nil {
		return nil, err
	}
	launch := w.launchInput()
	request := jobs.Request{JobID: id, RunID: run.ID, Attempt: run.Attempt, Command: w.made.Command, WorkDir: run.CodeSaveDir, Resources: launch.Resources,
		ExpectedOutputs: w.made.Outputs, Site: "local", Channel: contract.ChannelLocalDirect, Marker: w.marker, SubmittedBy: "trainwright", Task: run.Handoff.StepGoal,
		WallTimeSeconds: run.Handoff.Inputs.StepWallclockBudgetSeconds, CreatedAt: w.step.Now()}
	if err := jobs.Create(folder, request); err != nil {
		var refused *finding.Refused
		if errors.As(err, &refused) {
			w.out.Findings = append(w.out.Findings, refused.Findings...)
			return nil, nil
		}
		return nil, err
	}
	if err := run.Dir.AppendEvent(rundir.Event{Time: w.step.Now(), Phase: w.p.Name(), Event: "job_created", By: "trainwright", Detail: map[string]any{"job_id": id}}); err != nil {
		return nil, err
	}
	if _, err := w.p.t.Runtime.Submit(ctx, folder); err != nil {
		return nil, err
	}
	return &jobs.Entry{JobID: id, RunID: run.ID, Folder: folder, Request: request}, nil
}

// freeID is the next job id of the run: j-<run's hash>-<n>. A folder without a request is one that a crash left while it
// was being made; it is taken up.
func (w *launchWork) freeID() (id, folder string) {
	run := w.step.Run
	hash := run.ID[strings.LastIndexByte(run.ID, '-')+1:]
	for n := 1; ; n++ {
		id = fmt.Sprintf("j-%s-%d", hash, n)
		folder = run.File("jobs/" + id)
		if _, err := os.Stat(filepath.Join(folder, jobs.RequestFile)); err != nil {
			return id, folder
		}
	}
}

// wait follows the job to its end or to the end of the call's patience, telling the caller of every new metric.
func (w *launchWork) wait(ctx context.Context, job *jobs.Entry) error {
	deadline := time.Now().Add(w.step.Wait)
	follower := metrics.NewFollower(filepath.Join(w.step.Run.CodeSaveDir, "outputs", "metrics.jsonl"))
	pause := 40 * time.Millisecond
	for {
		status, err := w.p.t.Runtime.Status(ctx, []string{job.Folder})
		if err != nil {
			return err
		}
		w.tell(follower)
		state := status[0].State
		if jobs.Terminal(state) || state == jobs.StateUnknown {
			return w.finish(ctx, job, status[0])
		}
		if !time.Now().Before(deadline) {
			w.out.Job = &engine.JobHandle{JobID: job.JobID, State: state}
			w.out.Summary = fmt.Sprintf("job %s is %s after %.0f s", job.JobID, state, status[0].Seconds)
			w.out.Next = &engine.NextCall{Tool: w.step.Run.Skill.Walker, Arguments: map[string]any{"run_id": w.step.Run.ID, "wait_seconds": 300}}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, time.Until(deadline)+time.Millisecond)):
		}
		pause = min(pause*5/4, 500*time.Millisecond)
	}
}

// tell passes the newest values on as progress.
func (w *launchWork) tell(follower *metrics.Follower) {
	points, err := follower.Poll()
	if err != nil || len(points) == 0 {
		return
	}
	last := map[string]metrics.Point{}
	var order []string
	for _, p := range points {
		if key := p.Key().String(); !slices.Contains(order, key) {
			order = append(order, key)
		}
		last[p.Key().String()] = p
	}
	var epoch float64
	parts := []string{}
	for _, key := range order {
		p := last[key]
		if p.Epoch != nil {
			epoch = *p.Epoch
		}
		parts = append(parts, key+" "+pointText(p))
	}
	total, _ := asFloat(w.plan.Leaves["epochs"].Value)
	w.step.Caller.Progress(engine.Progress{Phase: w.p.Name(), Done: epoch, Total: total, Message: fmt.Sprintf("epoch %g/%g: %s", epoch, total, strings.Join(parts[:min(4, len(parts))], ", "))})
}
