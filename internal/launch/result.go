package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// answer is what a call comes to.
type answer struct {
	status   string // of execution_result
	category string
	summary  string
	advice   string // next_recommendation, where there is more to say than the next call
	missing  []string
	needs    []engine.Need
	next     *engine.NextCall
	job      *engine.JobHandle
}

// needCommand answers a call that names no command: none is made up.
func (e *errand) needCommand() {
	e.stop("", finding.Finding{Code: "command_missing", Severity: finding.Error, What: "there is no command to run", Where: &finding.Where{Field: "launch.command"},
		Expected: `an argv such as ["python3", "train.py", "--epochs", "1"]`, Remedy: `send {"step_handoff": {…}, "launch": {"command": […], "expected_outputs": […]}}`})
	e.answer.needs = []engine.Need{{Field: "launch.command", Why: "nothing is run that nobody named", WhereToLook: []string{}, Candidates: []string{}}}
	e.answer.advice = "name the command, then call runtime"
	e.blocked()
}

// blocked answers a launch that was not started.
func (e *errand) blocked() {
	a := &e.answer
	a.status = contract.StatusBlocked
	a.summary = "not started: " + FirstError(e.findings)
	for _, f := range e.findings {
		if f.Severity == finding.Error {
			a.missing = append(a.missing, f.Code)
		}
	}
	a.missing = slices.Compact(a.missing)
	if _, err := os.Stat(filepath.Join(e.folder, orderFile)); e.id != "" && err == nil && a.next == nil {
		a.next = &engine.NextCall{Tool: "runtime", Arguments: map[string]any{"job_id": e.id}}
		a.advice = "see the findings; when that is settled call runtime with this job_id, or send a changed launch"
	}
}

// underWay answers for a job that goes on.
func (e *errand) underWay(status jobs.Status) {
	e.answer.status = contract.StatusPartial
	e.answer.summary = fmt.Sprintf("job %s is %s after %.0f s", e.id, status.State, status.Seconds)
	e.answer.job = &engine.JobHandle{JobID: e.id, State: status.State}
	e.answer.next = &engine.NextCall{Tool: "runtime", Arguments: map[string]any{"job_id": e.id, "wait_seconds": 300}}
	e.findings = append(e.findings, status.Findings...)
}

// finish judges a job that has ended. It succeeded where its exit status, the state and every expected output say so.
func (e *errand) finish(status jobs.Status) error {
	left, err := e.collect()
	if err != nil {
		return err
	}
	var found []finding.Finding
	if status.State == jobs.StateSucceeded {
		found = e.checkOutputs(left, status.Exit)
		if f := jobs.ExceptionAtExitZero(e.folder); f != nil {
			found = append(found, *f)
		}
	}
	cause := status.Cause
	if cause == nil && status.State != jobs.StateSucceeded {
		cause = &jobs.Cause{Category: jobs.CategoryUnknown, Finding: finding.Finding{Code: "job_" + status.State, Severity: finding.Error, What: fmt.Sprintf("job %s was %s", e.id, status.State),
			Where: &finding.Where{Path: e.folder}, Expected: "a job that comes to its end", Remedy: "to run it again send the handoff with the next inputs.attempt"}}
	}
	if cause == nil && finding.Has(found, finding.Error) {
		at := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Severity == finding.Error })
		cause = &jobs.Cause{Category: jobs.CategoryCode, Finding: found[at]}
		found = slices.Delete(found, at, at+1)
	}
	if cause != nil {
		found = append(told(*cause), found...)
	}
	e.findings = append(e.findings, append(found, status.Findings...)...)
	result, err := e.keepResult(status, left, cause)
	if err != nil {
		return err
	}
	e.conclude(status, result, cause)
	return nil
}

// told is a cause as findings: what, the line of the log that says it, and what else was found.
func told(cause jobs.Cause) []finding.Finding {
	found := []finding.Finding{cause.Finding}
	if line := cause.Evidence; line != nil {
		found = append(found, finding.Finding{Code: "log_evidence", Severity: finding.Note, What: line.Text, Where: &finding.Where{Path: line.Path, Line: line.Line, Byte: line.Byte}})
	}
	return append(found, cause.Notes...)
}

// conclude words the answer for a job that is over.
func (e *errand) conclude(status jobs.Status, result contract.RuntimeResult, cause *jobs.Cause) {
	a := &e.answer
	a.job = &engine.JobHandle{JobID: e.id, State: status.State, Ended: true}
	a.summary = fmt.Sprintf("job %s %s after %.1f s, %d output files", e.id, status.State, status.Seconds, len(result.OutputFiles))
	if cause != nil {
		a.status, a.category = contract.StatusFailed, cause.Category
		a.summary = fmt.Sprintf("job %s %s after %.1f s: %s", e.id, status.State, status.Seconds, cause.What)
		if status.State == jobs.StateSucceeded {
			a.summary = fmt.Sprintf("job %s exited with 0, and is no success: %s", e.id, cause.What)
		}
		a.next = &engine.NextCall{Tool: "job_logs", Arguments: map[string]any{"job_id": e.id, "stream": "both", "tail": 60}}
		a.advice = fmt.Sprintf("call job_logs; mend the cause, then send the handoff with inputs.attempt %d, or a changed launch", max(1, e.handoff.Inputs.Attempt)+1)
		return
	}
	a.status = contract.StatusSuccess
	for _, name := range e.absentRequired() {
		a.status = contract.StatusPartial
		a.missing = append(a.missing, name)
		e.findings = append(e.findings, finding.Finding{Code: "required_output_missing", Severity: finding.Warning, What: "required_outputs names " + name + ", which is not there",
			Where: &finding.Where{Field: "step_handoff.required_outputs"}, Expected: "a file below " + e.workDir, Remedy: "let the command write it and name it in launch.expected_outputs, or correct the handoff"})
	}
	if len(e.handoff.CompletionCriteria) > 0 {
		e.findings = append(e.findings, finding.Finding{Code: "criteria_unchecked", Severity: finding.Warning, What: "runtime judges exit status, state and expected outputs; completion_criteria were not judged: " + strings.Join(e.handoff.CompletionCriteria, "; "),
			Where: &finding.Where{Field: "step_handoff.completion_criteria"}, Remedy: "judge them by the files in runtime_result, or have the trainer validate the run"})
	}
}

// absentRequired are the required_outputs that look like a path and are not there. A name in words can't be looked for.
func (e *errand) absentRequired() []string {
	var absent []string
	for _, name := range e.handoff.RequiredOutputs {
		if strings.ContainsAny(name, " \t\n") || !strings.ContainsAny(name, "./") || len(e.matches(name)) > 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join(e.folder, filepath.Base(name))); err != nil {
			absent = append(absent, name)
		}
	}
	return absent
}

// keepResult writes runtime_result.json once the end is known; what was written then stays, since files may change later.
func (e *errand) keepResult(status jobs.Status, left []Output, cause *jobs.Cause) (contract.RuntimeResult, error) {
	file := filepath.Join(e.folder, contract.FileRuntimeResult)
	var kept contract.RuntimeResult
	err := rundir.ReadJSON(file, &kept)
	if err == nil && kept.EndedAt != "" {
		return kept, nil
	}
	again := err == nil // written before, while the end was unknown
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	request, err := jobs.ReadRequest(e.folder)
	if err != nil {
		return kept, err
	}
	result := e.result(request, status, left, cause)
	if err := rundir.WriteJSON(file, result); err != nil || again {
		return result, err
	}
	return result, e.dir().AppendEvent(rundir.Event{Time: e.c.Now(), Phase: phaseName, Event: "job_" + status.State, By: "trainwright", Detail: map[string]any{"job_id": e.id}})
}

// result is runtime_result.json: everything in it comes from the one job.
func (e *errand) result(request jobs.Request, status jobs.Status, left []Output, cause *jobs.Cause) contract.RuntimeResult {
	host, _ := os.Hostname()
	var seen Evidence
	_ = rundir.ReadJSON(filepath.Join(e.folder, preflightFile), &seen) // without it the environment is told shorter
	r := contract.RuntimeResult{Command: Join(status.Command), SubmissionScript: filepath.Join(e.folder, jobs.ScriptFile), Channel: request.Channel, Target: host, JobID: e.id,
		LogPaths: []string{filepath.Join(e.folder, jobs.StdoutFile), filepath.Join(e.folder, jobs.StderrFile)}, SyncedLogPaths: []string{},
		OutputFiles: []string{}, Checkpoints: []string{}, KeyMetrics: map[string]any{}, Environment: map[string]any{"program": status.Command[0]}, Evidence: []contract.RuntimeEvidence{}}
	if seen.Python != nil {
		r.Environment["python"], r.Environment["version"], r.Environment["chosen"] = seen.Python.Path, seen.Python.Version, seen.Python.Why
	}
	for _, o := range left {
		r.OutputFiles = append(r.OutputFiles, o.Path)
		if isCheckpoint(o.Path) {
			r.Checkpoints = append(r.Checkpoints, o.Path)
		}
		if filepath.Base(o.Path) == metricsName && o.Intact(e.file(o.Path)) {
			keyMetrics(r.KeyMetrics, e.file(o.Path))
		}
	}
	for _, said := range status.Evidence {
		r.Evidence = append(r.Evidence, contract.RuntimeEvidence{From: said.From, Says: said.Says, At: said.At.UTC().Format(time.RFC3339)})
	}
	if exit := status.Exit; exit != nil {
		r.ExitCode, r.WallSeconds, r.PeakRSSBytes = exit.Code, &exit.Seconds, &exit.PeakRSSBytes
		if exit.Signal != nil {
			r.Signal = *exit.Signal
		}
		r.StartedAt, r.EndedAt = exit.StartedAt.UTC().Format(time.RFC3339Nano), exit.EndedAt.UTC().Format(time.RFC3339Nano)
	}
	if cause != nil {
		class, category := FailureClass(status.State, cause.Category), cause.Category
		r.FailureClass, r.FailureCategory = &class, &category
	}
	return r
}

func keyMetrics(into map[string]any, file string) {
	log, _, err := metrics.ReadJSONL(file)
	if err != nil {
		return
	}
	for _, key := range log.Names {
		if p, ok := log.Last(key); ok {
			into[key.String()] = p.Plain()
		}
	}
}

// FailureClass is the class of contracts.md of a job that did not succeed.
func FailureClass(state, category string) string {
	switch {
	case state == jobs.StateUnknown:
		return contract.FailureLogsNotReady
	case category == jobs.CategoryEnvironment || category == jobs.CategoryDependency:
		return contract.FailureEnvironmentNotReady
	}
	return contract.FailureBusinessScript
}

// phaseStatus is the state of the tool's one phase.
var phaseStatus = map[string]string{contract.StatusSuccess: contract.StateSuccess, contract.StatusPartial: contract.StatePartial, contract.StatusFailed: contract.StateFailed, contract.StatusBlocked: contract.StateBlocked}

// envelope is the answer as formats.md has it. There is no run: run.job names the job.
func (e *errand) envelope() engine.Envelope {
	a := e.answer
	state := phaseStatus[a.status]
	if a.job != nil && !a.job.Ended {
		state = contract.StateRunning
	}
	out := engine.Envelope{Needs: a.needs, Findings: finding.Merge(nil, e.findings), Resources: []string{},
		Run: engine.RunView{Attempt: max(1, e.handoff.Inputs.Attempt), Phase: phaseName, PhaseStatus: map[string]string{phaseName: state}, NextCall: a.next, Job: a.job}}
	if out.Needs == nil {
		out.Needs = []engine.Need{}
	}
	r := &out.ExecutionResult
	r.Skill, r.Status, r.Artifacts = SkillRuntime, a.status, e.artifacts()
	r.Observation = contract.Observation{Summary: a.summary, Completed: []string{}, Missing: orNone(a.missing), Risks: []string{}, NextRecommendation: a.advice}
	if a.status == contract.StatusSuccess {
		r.Observation.Completed = []string{cmp.Or(e.handoff.StepGoal, "the command ran")}
	}
	for _, f := range out.Findings {
		if f.Severity == finding.Warning {
			r.Observation.Risks = append(r.Observation.Risks, f.Code+": "+f.What)
		}
	}
	switch {
	case a.advice != "":
	case a.next == nil:
		r.Observation.NextRecommendation = "return to the orchestrator"
	default:
		r.Observation.NextRecommendation = "call " + a.next.Tool
	}
	if n := e.handoff.Inputs.Attempt; n > 0 {
		r.Attempt, r.Events = &n, e.events()
		if a.category != "" {
			r.FailureCategory = &a.category
		}
	}
	return out
}

// artifacts are the files of the job that are there, by the keys of contracts.md.
func (e *errand) artifacts() map[string]string {
	out := map[string]string{}
	if e.id == "" {
		return out
	}
	for key, file := range map[string]string{"runtime_request": filepath.Join(e.folder, contract.FileRuntimeRequest), "runtime_result": filepath.Join(e.folder, contract.FileRuntimeResult),
		"handoff": filepath.Join(e.folder, contract.FileStepHandoff), "workdir": e.folder, "code_save_dir": e.workDir} {
		if _, err := os.Stat(file); file != "" && err == nil {
			out[key] = file
		}
	}
	return out
}

// events are those of the job, as a result carries them.
func (e *errand) events() []map[string]any {
	out := []map[string]any{}
	if e.id == "" {
		return out
	}
	list, _, err := e.dir().Events()
	if err != nil {
		return out // the events are no evidence; a file that can't be read holds nothing up
	}
	for _, event := range list {
		out = append(out, map[string]any{"time": event.Time.Format(time.RFC3339), "event": event.Event, "by": event.By, "phase": event.Phase})
	}
	return out
}
