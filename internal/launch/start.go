package launch

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
	"github.com/trainwright/trainwright/internal/rundir"
)

// Evidence is preflight.json: what the machine was seen to have, and every check of what the job needs.
type Evidence struct {
	At time.Time `json:"at"`
	local.Report
	Machine  local.Survey      `json:"machine"`
	Findings []finding.Finding `json:"findings"`
}

// start finds the job, or makes it, and starts it: discover, preflight, the folder, execute. False means that a finding
// stops it.
func (e *errand) start(ctx context.Context) (bool, error) {
	if there, err := e.created(); err != nil || there {
		return e.resume(ctx, err)
	}
	if ok, err := e.describe(ctx); err != nil || !ok {
		return false, err
	}
	if f := e.beyondIntent(); f != nil {
		e.stop("", *f)
		return false, nil
	}
	if f := Unserved(e.handoff.Inputs.Runtime, e.order.Launch); f != nil {
		f.Remedy = "runtime_request.json is complete: run it there by hand, or ask the user whether a local run will do and send launch.channel local_direct"
		e.stop(jobs.CategoryPlatform, *f)
		return false, nil
	}
	if found := Unsupported(e.order.Launch); len(found) > 0 {
		e.stop(jobs.CategoryEnvironment, found...)
		return false, nil
	}
	if f := Unenforced(e.order.Launch); f != nil {
		e.findings = append(e.findings, *f)
	}
	if ok, err := e.preflight(ctx); err != nil || !ok {
		return false, err
	}
	if ok, err := e.create(ctx); err != nil || !ok {
		return false, err
	}
	return e.resume(ctx, nil)
}

// beyondIntent tells that the handoff wants nothing to run.
func (e *errand) beyondIntent() *finding.Finding {
	intent := e.handoff.Inputs.Runtime.ExecutionIntent
	if intent != contract.IntentPlanOnly && intent != contract.IntentGenerateCode && intent != contract.IntentValidateOnly {
		return nil
	}
	return &finding.Finding{Code: "beyond_intent", Severity: finding.Error, What: fmt.Sprintf("execution_intent is %s, which runs nothing", intent),
		Where: &finding.Where{Field: "step_handoff.inputs.runtime.execution_intent"}, Expected: contract.IntentRunLocal, Remedy: "ask the user whether the command may run; then send a handoff with execution_intent run_local"}
}

// workDirLock is the lock of a code_save_dir that phase 5 takes too.
const workDirLock = ".trainwright.lock"

// lock keeps every other launch of this tool out, and phase 5 where the working folder may be one of its.
func (e *errand) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(e.workDir, 0o755); err != nil {
		return nil, err
	}
	folder := func() {}
	if e.dedicated() {
		if folder, err = rundir.Lock(ctx, filepath.Join(e.workDir, workDirLock)); err != nil {
			return nil, err
		}
	}
	tool, err := rundir.Lock(ctx, filepath.Join(e.c.root(), jobsLock))
	if err != nil {
		folder()
		return nil, err
	}
	return func() { tool(); folder() }, nil
}

// stop notes why the job is not started.
func (e *errand) stop(category string, found ...finding.Finding) {
	e.findings = append(e.findings, found...)
	e.answer.category = category
}

// preflight looks at the machine and at everything the job needs, and remembers what it saw for keep. What failed is kept
// at once, unless another server has started the job meanwhile.
func (e *errand) preflight(ctx context.Context) (bool, error) {
	e.say("discover and preflight")
	machine, noticed, err := e.c.Runtime.Hardware(ctx)
	if err != nil {
		return false, err
	}
	spec, refused := e.needs()
	report, found, err := e.c.Runtime.Preflight(ctx, spec)
	if err != nil {
		return false, err
	}
	found = slices.Concat(noticed, refused, found)
	report.OK = report.OK && !finding.Has(refused, finding.Error)
	e.seen = Evidence{At: e.c.Now().UTC(), Report: report, Machine: machine, Findings: finding.Merge(nil, found)}
	e.findings = append(e.findings, found...)
	if report.OK {
		return true, nil
	}
	e.answer.category = jobs.CategoryEnvironment
	if slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Code == "package_missing" || f.Code == "import_missing" }) {
		e.answer.category = jobs.CategoryDependency
	}
	if there, err := e.created(); err != nil || there {
		return false, err
	}
	return false, e.keepEvidence()
}

func (e *errand) keepEvidence() error {
	return rundir.WriteJSON(filepath.Join(e.folder, preflightFile), e.seen)
}

// needs is what the preflight looks for. A named file outside the roots is told as a finding.
func (e *errand) needs() (local.PreflightSpec, []finding.Finding) {
	in := e.handoff.Inputs
	spec := local.PreflightSpec{Command: e.argv[0], WorkDir: e.workDir, OutputDir: e.workDir, Packages: in.Runtime.PackageRequirements, Resources: e.order.Resources, Env: e.env}
	file, module := script(e.argv)
	if pythonName.MatchString(filepath.Base(e.argv[0])) {
		spec.Python = e.argv[0]
	}
	spec.Entrypoint = file
	if module != "" {
		spec.Imports = []string{module}
	}
	if spec.Python == "" {
		spec.Python = e.order.Environment.Python
	}
	var refused []finding.Finding
	readable := func(list *[]string, named ...string) {
		for _, name := range named {
			if name == "" || strings.Contains(name, "://") {
				continue
			}
			abs, err := e.c.Roots.Readable(name)
			if err != nil {
				before := len(e.findings)
				_, _ = e.refused(err)
				refused, e.findings = append(refused, e.findings[before:]...), e.findings[:before]
				continue
			}
			*list = append(*list, abs)
		}
	}
	readable(&spec.Inputs, in.Data.TrainSource, in.Data.ValSource, in.Data.TestSource)
	readable(&spec.Checkpoints, in.Checkpoint.InitCheckpoint, in.Checkpoint.ResumeCheckpoint, in.Checkpoint.FinetuneCheckpoint)
	return spec, refused
}

// create makes the job's folder, under the lock: nothing in the way, the user's authority, the inventory, the request,
// whose presence is the commit. Another server may have been faster.
func (e *errand) create(ctx context.Context) (bool, error) {
	unlock, err := e.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if there, err := e.created(); err != nil || there {
		return there, err
	}
	if ok, err := e.noneInTheWay(ctx); err != nil || !ok {
		return false, err
	}
	release, found, err := e.c.Authority.Permit(ctx, e.caller, e.dir(), e.ask(), e.c.Now())
	defer release()
	if err != nil {
		return false, err
	}
	e.findings = append(e.findings, found...)
	if finding.Has(found, finding.Error) {
		return false, nil
	}
	if ok, err := e.clearOutputs(ctx); err != nil || !ok {
		return false, err
	}
	before, err := e.inventory()
	if err != nil {
		return false, err
	}
	if err := errors.Join(rundir.WriteJSON(filepath.Join(e.folder, inventoryFile), before), e.keepEvidence()); err != nil {
		return false, err
	}
	ask := e.ask()
	request := jobs.Request{JobID: e.id, Attempt: e.handoff.Inputs.Attempt, Command: e.argv, Env: e.env, WorkDir: e.workDir, Resources: e.order.Resources, WallTimeSeconds: ask.WallTimeSeconds,
		ExpectedOutputs: e.order.ExpectedOutputs, Site: "local", Channel: contract.ChannelLocalDirect, Marker: e.marker, SubmittedBy: "trainwright", Task: e.request.Task, CreatedAt: e.c.Now()}
	if err := jobs.Create(e.folder, request); err != nil {
		return e.refused(err)
	}
	err = e.dir().AppendEvent(rundir.Event{Time: e.c.Now(), Phase: phaseName, Event: "job_created", By: "trainwright", Detail: map[string]any{"job_id": e.id}})
	return err == nil, err
}

func (e *errand) dir() rundir.Dir { return rundir.Dir{Path: e.folder} }

// resume starts the job whose folder is there, unless it was started before. Execute is a hard gate: without the evidence
// of a preflight that passed nothing is started.
func (e *errand) resume(ctx context.Context, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	request, err := jobs.ReadRequest(e.folder)
	if err != nil {
		return false, err
	}
	e.workDir, e.argv, e.env = request.WorkDir, request.Command, request.Env
	state, err := jobs.ReadState(e.folder)
	if err != nil {
		return false, err
	}
	exit, err := jobs.ReadExit(e.folder)
	if err != nil {
		return false, err
	}
	if state != nil || exit != nil {
		return true, nil
	}
	var seen Evidence
	if err := rundir.ReadJSON(filepath.Join(e.folder, preflightFile), &seen); err != nil || !seen.OK {
		if ok, err := e.preflight(ctx); err != nil || !ok {
			return false, err
		}
		if err := e.keepEvidence(); err != nil {
			return false, err
		}
	}
	e.say("starting job %s", e.id)
	_, err = e.c.Runtime.Submit(ctx, e.folder)
	return err == nil, err
}

// noneInTheWay refuses to start while another job under way writes what this one is to write: a run's job in the same
// folder, one that expects the same output, and any job where the folder is the step's own: what is new in it afterwards is
// the output of one execution.
func (e *errand) noneInTheWay(ctx context.Context) (bool, error) {
	roots, err := e.c.Authority.Jobs()
	if err != nil {
		return false, err
	}
	entries, _ := jobs.List(roots)
	for _, entry := range entries {
		shares := slices.ContainsFunc(entry.Request.ExpectedOutputs, func(o string) bool { return slices.Contains(e.order.ExpectedOutputs, o) })
		if entry.Request.WorkDir != e.workDir || entry.RunID == "" && !shares && !e.dedicated() {
			continue
		}
		status, err := e.c.Runtime.Status(ctx, []string{entry.Folder})
		if err != nil {
			return false, err
		}
		if jobs.Over(status[0].State) {
			continue
		}
		e.findings = append(e.findings, finding.Finding{Code: "job_under_way", Severity: finding.Error,
			What:     fmt.Sprintf("job %s is %s and writes into %s too", entry.JobID, status[0].State, e.c.Roots.Rel(e.workDir)),
			Where:    &finding.Where{Path: entry.Folder},
			Expected: "one job at a time", Remedy: fmt.Sprintf("wait for it (job_status), or end it: job_cancel {\"job_id\": %q}; then come back with job_id", entry.JobID)})
		e.answer.next = &engine.NextCall{Tool: "job_status", Arguments: map[string]any{"job_ids": []string{entry.JobID}}}
		return false, nil
	}
	return true, nil
}

// say tells the caller what is being done.
func (e *errand) say(format string, args ...any) {
	e.caller.Progress(engine.Progress{Phase: phaseName, Message: fmt.Sprintf(format, args...)})
}
