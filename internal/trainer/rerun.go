package trainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/snapshot"
)

// freezeJob takes the snapshot of what the job in folder will run, before the job is created, and gives the command and
// the environment that run it. A code base that can't be frozen is a *finding.Refused: the job is not to be started.
func (t *Trainer) freezeJob(ctx context.Context, run *engine.Run, made Codegen, folder string) (snapshot.Command, snapshot.Snapshot, []finding.Finding, error) {
	hardware, findings, err := t.Runtime.Hardware(ctx)
	if err != nil {
		return snapshot.Command{}, snapshot.Snapshot{}, nil, err
	}
	spec := t.snapshotSpec(run, made, folder)
	spec.Machine = machine(hardware.Facilities)
	if spec.Inputs, err = jobInputs(run); err != nil {
		return snapshot.Command{}, snapshot.Snapshot{}, nil, err
	}
	if made.OutputDir == "" && made.CheckpointDir == "" {
		// A script that is not told where to write may write beside itself.
		spec.Outputs = outputFolders(run.CodeSaveDir)
	}
	taken, found, err := snapshot.Take(ctx, spec)
	if err != nil {
		return snapshot.Command{}, snapshot.Snapshot{}, nil, err
	}
	command, more, err := taken.Command(made.Command, run.CodeSaveDir)
	return command, taken, slices.Concat(findings, found, more), err
}

// snapshotSpec is what a snapshot of the job's code is taken of.
func (t *Trainer) snapshotSpec(run *engine.Run, made Codegen, folder string) snapshot.Spec {
	return snapshot.Spec{ProjectRoot: projectRoot(made), CodeSaveDir: run.CodeSaveDir, Entrypoint: made.Entrypoint, Python: made.Command[0], Folder: folder, Exclude: []string{run.Workdir},
		Environ: t.Runtime.Environ(), Now: t.Engine.Now()}
}

// projectRoot is the top of the tree that holds the code.
func projectRoot(made Codegen) string { return cmp.Or(made.Root, filepath.Dir(made.Entrypoint)) }

// outputFolders are where a script that is not told where to write puts its outputs by the names of formats.md.
func outputFolders(root string) []string {
	return []string{filepath.Join(root, "outputs"), filepath.Join(root, "checkpoints")}
}

// jobInputs are the files that the job reads without being code: the parts of the data and the checkpoints.
func jobInputs(run *engine.Run) ([]string, error) {
	var manifest contract.DataManifest
	if err := rundir.ReadJSON(run.File(dataManifestFile), &manifest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := partPaths(run, manifest)
	named := run.Handoff.Inputs.Checkpoint
	for _, path := range []string{named.InitCheckpoint, named.ResumeCheckpoint, named.FinetuneCheckpoint} {
		if path == "" {
			continue
		}
		if abs, err := run.Roots.Readable(path); err == nil {
			out = append(out, abs) // else the preflight tells
		}
	}
	return out, nil
}

func machine(f jobs.Facilities) snapshot.Machine {
	m := snapshot.Machine{Host: f.Host, OS: f.OS, Arch: f.Arch, CPUs: f.CPUs, MemoryTotalMB: f.MemoryTotalMB}
	for _, gpu := range f.GPUs {
		m.Accelerators = append(m.Accelerators, snapshot.Accelerator{Index: gpu.Index, Name: gpu.Name, MemoryTotalMB: gpu.MemoryTotalMB})
		m.Driver = gpu.Driver
	}
	return m
}

// Repetition is what a rerun came to. Same, Differing and Missing compare its outputs with those of the job it repeats, by
// hash, as paths below code_save_dir; they are empty while the job runs.
type Repetition struct {
	RunID    string            `json:"run_id"`
	Repeats  string            `json:"repeats"`
	Snapshot string            `json:"snapshot"`
	Job      jobs.Status       `json:"job"`
	Same     []string          `json:"same"`
	Differ   []string          `json:"differ"`
	Missing  []string          `json:"missing"`
	Findings []finding.Finding `json:"findings"`
}

// Rerun starts the newest job of a run again, exactly: the same command on the same snapshot of the code, as a new job of
// the run, and waits for its end, at most that long. What the earlier job left in code_save_dir is set aside into its
// folder. It refuses with job_unknown where the run has no job, job_under_way, snapshot_missing, snapshot_altered,
// snapshot_input_changed, and what keeps outputs in the way; packages that changed since are told as packages_changed.
func (t *Trainer) Rerun(ctx context.Context, caller engine.Caller, runID string, wait time.Duration) (Repetition, error) {
	run, _, err := t.Engine.Open(ctx, t.skill, contract.Call{RunID: runID})
	if err != nil {
		return Repetition{}, err
	}
	last := newestJob(run, "")
	if last == nil {
		return Repetition{}, finding.Refuse(finding.Finding{Code: "job_unknown", Severity: finding.Error, What: "run " + run.ID + " has not started a job", Where: &finding.Where{Path: run.File("jobs")},
			Expected: "a run with a job", Remedy: "go on with the run: trainer with run_id"})
	}
	r := &repeat{t: t, run: run, last: last, caller: caller, out: Repetition{RunID: run.ID, Repeats: last.JobID, Same: []string{}, Differ: []string{}, Missing: []string{}, Findings: []finding.Finding{}}}
	job, err := r.start(ctx)
	if err != nil {
		return r.out, err
	}
	if err := r.wait(ctx, job, wait); err != nil {
		return r.out, err
	}
	return r.out, r.compare(job)
}

// repeat is one rerun.
type repeat struct {
	t      *Trainer
	run    *engine.Run
	last   *jobs.Entry
	made   Codegen
	caller engine.Caller
	out    Repetition
}

// start makes the new job and starts it, under the lock of code_save_dir.
func (r *repeat) start(ctx context.Context) (*jobs.Entry, error) {
	unlock, err := rundir.Lock(ctx, filepath.Join(r.run.CodeSaveDir, launchLock))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := rundir.ReadJSON(r.run.File(codegenFile), &r.made); err != nil {
		return nil, fmt.Errorf("read %s: %w", codegenFile, err)
	}
	var outcome engine.Outcome
	work := &launchWork{p: execution{r.t}, step: &engine.Step{Run: r.run, Caller: r.caller, Now: r.t.Engine.Now}, out: &outcome, made: r.made}
	work.given.Launch = &Launch{Channel: r.last.Request.Channel, Resources: r.last.Request.Resources}
	work.request.Command = launch.Join(r.last.Request.Command)
	if ok, err := work.noneUnderWay(ctx); err != nil || !ok {
		return nil, errors.Join(err, refusalUnless(ok, outcome.Findings))
	}
	release, ok, err := work.authorised(ctx)
	if err != nil || !ok {
		return nil, errors.Join(err, refusalUnless(ok, outcome.Findings))
	}
	defer release()
	taken, err := r.verify(ctx)
	if err != nil {
		return nil, err
	}
	if ok, err := work.clearOutputs(); err != nil || !ok {
		return nil, errors.Join(err, refusalUnless(ok, outcome.Findings))
	}
	id, folder := work.freeID()
	r.caller.Progress(engine.Progress{Phase: contract.PhaseExecution, Message: fmt.Sprintf("starting job %s, which repeats %s", id, r.last.JobID)})
	return r.create(ctx, taken, id, folder)
}

func refusalUnless(ok bool, findings []finding.Finding) error {
	if ok {
		return nil
	}
	return finding.Refuse(slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool { return f.Severity != finding.Error })...)
}

// verify makes sure that the snapshot is what the last job ran.
func (r *repeat) verify(ctx context.Context) (snapshot.Snapshot, error) {
	taken, found, err := snapshot.Verify(r.last.Folder, r.last.Request.Env[snapshot.TreeVariable])
	if err != nil {
		return taken, err
	}
	if finding.Has(found, finding.Error) {
		return taken, refusalUnless(false, found)
	}
	r.out.Findings = append(r.out.Findings, found...)
	r.out.Snapshot = taken.TreeSHA256
	changed, err := taken.Packages(ctx, r.t.Runtime.Environ())
	if err != nil {
		return taken, finding.Refuse(finding.Finding{Code: "python_missing", Severity: finding.Error, What: "the interpreter of the job does not answer any more: " + err.Error(), Where: &finding.Where{Path: taken.Python.Path},
			Expected: "the interpreter that ran the job", Remedy: "restore this environment, or start the job anew with another one"})
	}
	if len(changed) > 0 {
		r.out.Findings = append(r.out.Findings, finding.Finding{Code: "packages_changed", Severity: finding.Warning, What: "the environment is not what it was: " + some(changed, 5), Where: &finding.Where{Path: taken.Python.Path},
			Expected: "the packages of the snapshot", Remedy: "restore the versions that snapshot.json lists where the results must be the same"})
	}
	return taken, nil
}

// create copies the snapshot into the new job's folder and starts the same command on it.
func (r *repeat) create(ctx context.Context, taken snapshot.Snapshot, id, folder string) (*jobs.Entry, error) {
	if _, err := taken.CopyTo(folder); err != nil {
		return nil, err
	}
	before, found, err := inventory(r.run, r.made)
	if err != nil {
		return nil, err
	}
	r.out.Findings = append(r.out.Findings, found...)
	if err := rundir.WriteJSON(filepath.Join(folder, inventoryFile), before); err != nil {
		return nil, err
	}
	request := r.last.Request
	request.JobID, request.CreatedAt, request.SubmittedBy = id, r.t.Engine.Now(), "rerun of "+r.last.JobID
	request.Command, request.Env = snapshot.Moved(request.Command, request.Env, r.last.Folder, folder)
	if err := jobs.Create(folder, request); err != nil {
		return nil, err
	}
	event := rundir.Event{Time: r.t.Engine.Now(), Phase: contract.PhaseExecution, Event: "job_created", By: "user", Detail: map[string]any{"job_id": id, "repeats": r.last.JobID, "snapshot": taken.TreeSHA256}}
	if err := r.run.Dir.AppendEvent(event); err != nil {
		return nil, err
	}
	_, err = r.t.Runtime.Submit(ctx, folder)
	return &jobs.Entry{JobID: id, RunID: r.run.ID, Folder: folder, Request: request}, err
}

// wait follows the job to its end, or as long as the caller waits.
func (r *repeat) wait(ctx context.Context, job *jobs.Entry, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for pause := 40 * time.Millisecond; ; pause = min(pause*5/4, 500*time.Millisecond) {
		status, err := r.t.Runtime.Status(ctx, []string{job.Folder})
		if err != nil {
			return err
		}
		if r.out.Job = status[0]; jobs.Over(r.out.Job.State) || !time.Now().Before(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// compare tells which outputs are those of the repeated job, byte for byte.
func (r *repeat) compare(job *jobs.Entry) error {
	if !jobs.Over(r.out.Job.State) {
		return nil
	}
	now, found, err := collect(r.run, r.made, job.Folder)
	if err != nil {
		return err
	}
	r.out.Findings = append(r.out.Findings, found...)
	was, err := readOutputs(r.last.Folder)
	if err != nil {
		return err
	}
	hashes := map[string]string{}
	for _, o := range now {
		hashes[o.Path] = o.SHA256
	}
	for _, o := range was {
		switch sha, there := hashes[o.Path]; {
		case !there:
			r.out.Missing = append(r.out.Missing, o.Path)
		case sha == o.SHA256 && sha != "":
			r.out.Same = append(r.out.Same, o.Path)
		default:
			r.out.Differ = append(r.out.Differ, o.Path)
		}
	}
	return nil
}
