package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// jobsOf are the run's jobs, the newest first: by the number in their ids, since clocks are set back.
func jobsOf(run *engine.Run) []jobs.Entry {
	entries, _ := jobs.List([]string{run.File("jobs")})
	slices.SortStableFunc(entries, func(a, b jobs.Entry) int { return jobNumber(b.JobID) - jobNumber(a.JobID) })
	return entries
}

// jobNumber is n of j-<run's hash>-<n>.
func jobNumber(id string) int {
	n, _ := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:]) // another id has none, and sorts last
	return n
}

// newestJob is the run's newest job with that marker (any job where marker is empty), or nil.
func newestJob(run *engine.Run, marker string) *jobs.Entry {
	entries := jobsOf(run)
	for i := range entries {
		if marker == "" || entries[i].Request.Marker == marker {
			return &entries[i]
		}
	}
	return nil
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
	job := newestJob(w.step.Run, w.marker)
	if job == nil {
		if job, err = w.ofOtherCode(ctx); err != nil {
			return nil, err
		}
	}
	if job != nil {
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
	release, ok, err := w.authorised(ctx)
	if err != nil || !ok {
		return nil, err
	}
	defer release()
	if ok, err := w.preflight(ctx); err != nil || !ok {
		return nil, err
	}
	if ok, err := w.clearOutputs(); err != nil || !ok {
		return nil, err
	}
	return w.create(ctx)
}

// ofOtherCode is the run's newest job where it was asked for the same with other code, or nil. A job that runs, that nobody
// has judged yet, or that succeeded is not to be lost because somebody went on editing: it ran on its own snapshot. One that
// failed, or whose evidence did not hold, is done again with the code that was repaired.
func (w *launchWork) ofOtherCode(ctx context.Context) (*jobs.Entry, error) {
	run := w.step.Run
	job := newestJob(run, "")
	if _, asked := w.step.Section["launch"]; asked || job == nil || job.Request.Attempt != run.Attempt || job.Request.Basis != w.basis {
		return nil, nil
	}
	record, err := run.Dir.Record(w.p.Name())
	if err != nil {
		return nil, err
	}
	if judged := record != nil && record.Outputs[run.Rel(filepath.Join(job.Folder, jobs.ExitFile))] != ""; judged {
		status, err := w.p.t.Runtime.Status(ctx, []string{job.Folder})
		if err != nil || status[0].State != jobs.StateSucceeded {
			return nil, err
		}
		verdict, err := run.Dir.Record(contract.PhaseValidation)
		if err != nil || verdict != nil && verdict.Status == contract.StateFailed {
			return nil, err
		}
	}
	w.marker = job.Request.Marker
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "code_changed_since_start", Severity: finding.Warning,
		What:  fmt.Sprintf("the code changed after job %s had started: what it comes to is that of the code it started with", job.JobID),
		Where: &finding.Where{Path: filepath.Join(job.Folder, "snapshot")}, Expected: "code that rests after a run", Remedy: fmt.Sprintf("to run the changed code: phase_5_execution {\"run_id\": %q, \"launch\": {}}", run.ID)})
	return job, nil
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
	if err != nil || !jobs.Over(status[0].State) {
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
		if !o.Intact(filepath.Join(w.step.Run.CodeSaveDir, filepath.FromSlash(o.Path))) {
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
		if jobs.Over(status[0].State) {
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
	spec := local.PreflightSpec{Python: w.made.Command[0], WorkDir: run.CodeSaveDir, Entrypoint: w.made.Entrypoint, Imports: w.made.Imports, OutputDir: run.CodeSaveDir, Packages: run.Handoff.Inputs.Runtime.PackageRequirements, Resources: w.launchInput().Resources}
	for _, a := range w.made.Arguments {
		if strings.HasPrefix(a.Field, "data.") && strings.HasSuffix(a.Field, "source") {
			spec.Inputs = append(spec.Inputs, text(a.Value))
		}
	}
	if err := w.estimate(&spec); err != nil {
		return false, err
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
	w.tellRepeated(id)
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
	given := w.launchInput()
	if w.given.Launch != nil {
		// Kept before the job starts: the next call, which may come from another server, must ask for the same launch.
		if err := rundir.WriteJSON(run.File(answersFile(w.p.Name())), w.given); err != nil {
			return nil, err
		}
		if err := w.step.TrackOwn(answersFile(w.p.Name())); err != nil {
			return nil, err
		}
	}
	request := jobs.Request{JobID: id, RunID: run.ID, Attempt: run.Attempt, Command: command.Argv, Env: command.Env, WorkDir: run.CodeSaveDir, Resources: given.Resources,
		ExpectedOutputs: w.made.Outputs, Watch: []string{run.CodeSaveDir}, Site: "local", Channel: contract.ChannelLocalDirect, Marker: w.marker, Basis: w.basis, SubmittedBy: w.submitter(), Task: run.Handoff.StepGoal,
		WallTimeSeconds: w.ask().WallTimeSeconds, CreatedAt: w.step.Now()}
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

// tellRepeated says that a job follows another one of the same attempt which nobody asked to repeat: what it reads changed.
func (w *launchWork) tellRepeated(id string) {
	last := newestJob(w.step.Run, "")
	if _, asked := w.step.Section["launch"]; asked || w.because != "" || last == nil || last.Request.Attempt != w.step.Run.Attempt {
		return
	}
	if exit, err := jobs.ReadExit(last.Folder); err == nil && exit != nil && (exit.Code == nil || *exit.Code != 0) {
		return // what failed was repaired
	}
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "job_repeated", Severity: finding.Warning, What: fmt.Sprintf("what job %s read has changed since: job %s ran with what is there now", last.JobID, id),
		Where: &finding.Where{Path: last.Folder}, Expected: "inputs that rest after a run", Remedy: "what the earlier job left is kept in its folder under superseded/"})
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
