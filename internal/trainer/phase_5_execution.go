package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/criteria"
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
	if entry == nil || entry.Request.Attempt < run.Attempt {
		return nil
	}
	status, err := p.t.Runtime.Status(ctx, []string{entry.Folder})
	if err != nil || len(status) == 0 {
		return nil
	}
	if over(status[0].State) {
		if outputs, err := readOutputs(entry.Folder); err != nil || outputs != nil {
			return nil // it was taken up already
		}
		return &engine.JobHandle{JobID: entry.JobID, State: status[0].State, Ended: true}
	}
	return &engine.JobHandle{JobID: entry.JobID, State: status[0].State}
}

// over says that nothing more will come of a job by waiting.
func over(state string) bool { return jobs.Terminal(state) || state == jobs.StateUnknown }

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
	var view projectView
	if err := step.ReadJSON(projectFile, &view); err != nil {
		return out, err
	}
	for _, path := range append(append([]string{w.made.Entrypoint}, view.codePaths()...), partPaths(step.Run, manifest)...) {
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
	for _, text := range w.plan.criteriaOf() {
		if c, err := criteria.Parse(text); err == nil {
			w.request.ExpectedMetrics = append(w.request.ExpectedMetrics, metrics.ParseKey(c.Key).String())
		}
	}
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

// environmentServes refuses what a launch asks for and this build would silently leave out.
func (w *launchWork) environmentServes() bool {
	launch := w.launchInput()
	for field, asked := range map[string]bool{"launch.environment.conda": launch.Environment.Conda != "", "launch.environment.container": launch.Environment.Container != "",
		"launch.environment.modules": len(launch.Environment.Modules) > 0, "launch.site": launch.Site != "" && launch.Site != "local"} {
		if asked {
			w.out.Findings = append(w.out.Findings, finding.Finding{Code: "launch_unsupported", Severity: finding.Error, What: field + " is not served on channel local_direct; the job was not started",
				Where: &finding.Where{Field: field}, Expected: "an interpreter in launch.environment.python", Remedy: "name the environment's own python there and leave this out"})
			w.out.Blockers = append(w.out.Blockers, field)
			w.out.Summary = "not started: " + field + " is not served"
		}
	}
	return len(w.out.Blockers) == 0
}

// launch finds this launch's job, or makes it: no other job under way, preflight, no output in the way, inventory, job
// folder, start. It returns nil when the gate stops it. The lock is that of code_save_dir and covers looking and creating,
// so that two servers, or two runs that share the folder, make one job.
func (w *launchWork) launch(ctx context.Context) (*jobs.Entry, error) {
	if err := os.MkdirAll(w.step.Run.CodeSaveDir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := rundir.Lock(ctx, filepath.Join(w.step.Run.CodeSaveDir, launchLock))
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
	if ok, err := w.noneUnderWay(ctx); err != nil || !ok {
		return nil, err
	}
	if ok, err := w.preflight(ctx); err != nil || !ok {
		return nil, err
	}
	if ok, err := w.clearOutputs(); err != nil || !ok {
		return nil, err
	}
	return w.create(ctx)
}

// launchLock is the file in code_save_dir that is locked while a job is looked for and made.
const launchLock = ".trainwright.lock"

// again says whether an explicit launch asks for another job: after one that ended badly, or whose outputs are no longer
// as it left them.
func (w *launchWork) again(ctx context.Context, job *jobs.Entry) (bool, error) {
	if _, asked := w.step.Section["launch"]; !asked {
		return false, nil
	}
	status, err := w.p.t.Runtime.Status(ctx, []string{job.Folder})
	if err != nil || !over(status[0].State) {
		return false, err
	}
	if status[0].State != jobs.StateSucceeded {
		return true, nil
	}
	outputs, err := readOutputs(job.Folder)
	if err != nil {
		return false, err
	}
	for _, o := range outputs {
		if !intact(filepath.Join(w.step.Run.CodeSaveDir, filepath.FromSlash(o.Path)), o) {
			return true, nil
		}
	}
	f, err := w.tampered(job.Folder)
	return f != nil, err
}

// noneUnderWay refuses to start a job while another one writes into the same code_save_dir: one of this run that was
// started with other inputs, or one of another run. What ended jobs of this run left is noted as theirs.
func (w *launchWork) noneUnderWay(ctx context.Context) (bool, error) {
	run := w.step.Run
	roots, err := w.p.t.JobRoots()
	if err != nil {
		return false, err
	}
	entries, _ := jobs.List(roots)
	for _, entry := range entries {
		if entry.Request.WorkDir != run.CodeSaveDir {
			continue
		}
		status, err := w.p.t.Runtime.Status(ctx, []string{entry.Folder})
		if err != nil {
			return false, err
		}
		if over(status[0].State) {
			if entry.RunID == run.ID {
				if _, _, err := collect(run, w.made, entry.Folder); err != nil {
					return false, err
				}
			}
			continue
		}
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "job_under_way", Severity: finding.Error,
			What:     fmt.Sprintf("job %s of run %s is %s and writes into the same code_save_dir", entry.JobID, entry.RunID, status[0].State),
			Where:    &finding.Where{Path: entry.Folder},
			Expected: "one job at a time", Remedy: fmt.Sprintf("wait for it (job_status), or end it: job_cancel {\"job_id\": %q}; then make this call again", entry.JobID)})
		w.out.Blockers = append(w.out.Blockers, "job "+entry.JobID+" is under way")
		w.out.Summary = "not started: job " + entry.JobID + " is under way"
		w.out.Next = &engine.NextCall{Tool: "job_status", Arguments: map[string]any{"job_ids": []string{entry.JobID}}}
		return false, nil
	}
	return true, nil
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
	w.step.Say(w.p.Name(), "freezing the code of job %s", id)
	command, taken, frozen, err := w.p.t.freezeJob(ctx, run, w.made, folder)
	w.out.Findings = append(w.out.Findings, frozen...)
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return nil, notRefused(err)
	}
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
	if w.given.Launch != nil {
		// Kept before the job starts: the next call, which may come from another server, must ask for the same launch.
		if err := rundir.WriteJSON(run.File(answersFile(w.p.Name())), w.given); err != nil {
			return nil, err
		}
		if err := w.step.TrackOwn(answersFile(w.p.Name())); err != nil {
			return nil, err
		}
	}
	request := jobs.Request{JobID: id, RunID: run.ID, Attempt: run.Attempt, Command: command.Argv, Env: command.Env, WorkDir: run.CodeSaveDir, Resources: launch.Resources,
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
	if err := run.Dir.AppendEvent(rundir.Event{Time: w.step.Now(), Phase: w.p.Name(), Event: "job_created", By: "trainwright", Detail: map[string]any{"job_id": id, "snapshot": taken.TreeSHA256}}); err != nil {
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
		if over(state) {
			return w.finish(job, status[0])
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
