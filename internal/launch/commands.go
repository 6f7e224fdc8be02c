package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// SkillRuntime is the execution_skill of a handoff for the runtime tool.
const SkillRuntime = "onescience-runtime"

// Input is what the runtime tool takes beside the handoff.
type Input struct {
	Launch *Order `json:"launch,omitempty" jsonschema_description:"What to run, where and with what. The same handoff, launch and attempt is the same job and starts once; the next inputs.attempt runs it again."`
	JobID  string `json:"job_id,omitempty" jsonschema_description:"Come back to a job of this tool: send it alone, with wait_seconds."`
}

// Order is a launch with a command of its own.
type Order struct {
	Command         []string `json:"command,omitempty" jsonschema_description:"The argv; no shell sees it."`
	ExpectedOutputs []string `json:"expected_outputs,omitempty" jsonschema_description:"Paths or globs below the working folder that the command must write; none may exist before."`
	Launch
}

// Commands runs commands that belong to no run, each as one durable job: the runtime tool. It holds no state of a job.
type Commands struct {
	Roots     *rundir.Roots
	Runtime   *local.Runtime
	Authority Authority
	Now       func() time.Time
}

// The files that this tool adds to a job's folder (formats.md, "A job's folder").
const (
	orderFile     = "launch.json"    // the Order, as it was normalised
	preflightFile = "preflight.json" // the evidence without which nothing is started
	inventoryFile = "inventory.json" // what was there before the job
	outputsFile   = "outputs.json"   // what it left
	jobsLock      = ".launch.lock"   // in the folder of the jobs: covers looking and creating
	phaseName     = "runtime"        // in progress and phase_status
)

// errand is one call of the tool.
type errand struct {
	c       *Commands
	caller  engine.Caller
	handoff contract.StepHandoff
	order   Order
	id      string
	marker  string
	folder  string // of the job
	workDir string // where the command starts

	argv     []string
	env      map[string]string
	request  contract.RuntimeRequest
	seen     Evidence
	findings []finding.Finding
	answer   answer
}

// Run carries out one call: it finds the job of this very handoff, launch and attempt or starts it, once however often and
// from how many servers it is called, waits at most call.WaitSeconds, and answers where the job stands.
func (c *Commands) Run(ctx context.Context, caller engine.Caller, call contract.Call, in Input) (engine.Envelope, error) {
	if err := rundir.MayWrite(); err != nil {
		return engine.Envelope{}, err
	}
	e := &errand{c: c, caller: caller}
	if err := e.open(call, in); err != nil {
		return engine.Envelope{}, err
	}
	if len(e.order.Command) == 0 {
		e.needCommand()
		return e.envelope(), nil
	}
	started, err := e.start(ctx)
	if err != nil {
		return engine.Envelope{}, err
	}
	if !started {
		e.blocked()
		return e.envelope(), nil
	}
	wait := contract.DefaultWaitSeconds
	if call.WaitSeconds != nil {
		wait = *call.WaitSeconds
	}
	err = e.wait(ctx, time.Duration(wait)*time.Second)
	return e.envelope(), err
}

// open finds out which job the call speaks of.
func (e *errand) open(call contract.Call, in Input) error {
	if call.RunID != "" {
		return finding.Refuse(finding.Finding{Code: "run_id_not_taken", Severity: finding.Error, What: "a job of this tool belongs to no run", Where: &finding.Where{Field: "run_id"},
			Expected: "job_id, or step_handoff with launch", Remedy: fmt.Sprintf("to go on with the run: trainer {\"run_id\": %q}; for a job of this tool send its job_id", call.RunID)})
	}
	if in.JobID != "" {
		if call.Handoff != nil || in.Launch != nil {
			return finding.Refuse(finding.Finding{Code: "job_is_fixed", Severity: finding.Error, What: "job_id came with a handoff or a launch, but what a job runs never changes", Where: &finding.Where{Field: "job_id"},
				Expected: "job_id alone, or a handoff with launch", Remedy: "leave job_id out to start another job, or send it alone to come back to this one"})
		}
		return e.reopen(in.JobID)
	}
	if call.Handoff != nil {
		if err := e.take(*call.Handoff, call.Request); err != nil {
			return err
		}
	}
	if in.Launch != nil {
		e.order = *in.Launch
		e.order.WaitSeconds = nil
	}
	if err := e.split(); err != nil || len(e.order.Command) == 0 {
		return err
	}
	e.warnOfSecrets()
	return e.name()
}

// take keeps the handoff without what looks like a secret.
func (e *errand) take(handoff contract.StepHandoff, request string) error {
	if request != "" && handoff.StepID == contract.FromRequest(request).StepID {
		handoff.ExecutionSkill = SkillRuntime // plain words: the skill is this tool's
	}
	if name := handoff.ExecutionSkill; name != "" && name != SkillRuntime {
		return finding.Refuse(finding.Finding{Code: "skill_mismatch", Severity: finding.Error, What: "the handoff is for " + name + ", this tool runs commands for " + SkillRuntime,
			Where: &finding.Where{Field: "step_handoff.execution_skill"}, Expected: SkillRuntime, Remedy: "call the tool of that skill (trainer for " + contract.SkillTrainer + "), or correct execution_skill"})
	}
	handoff.ExecutionSkill = SkillRuntime
	data, err := rundir.MarshalStable(handoff)
	if err != nil {
		return err
	}
	masked := redact.Bytes(data)
	if string(masked) != string(data) {
		e.findings = append(e.findings, finding.Finding{Code: "secret_redacted", Severity: finding.Warning, What: "the handoff held what looks like a secret; it was masked and is kept nowhere",
			Where: &finding.Where{Field: "step_handoff"}, Expected: "no secret in a handoff", Remedy: "let the job read it from its environment"})
	}
	e.handoff, _, err = contract.DecodeHandoff(json.RawMessage(masked))
	return err
}

// split takes a command apart that came as one string.
func (e *errand) split() error {
	line := e.order.Command
	if len(line) != 1 || !strings.ContainsAny(line[0], " \t\n'\"") {
		return nil
	}
	if _, err := os.Stat(line[0]); err == nil {
		return nil // a program whose path holds a space
	}
	argv, err := Split(line[0])
	if err != nil {
		shown, _ := json.Marshal([]string{"/bin/sh", "-c", line[0]})
		return finding.Refuse(finding.Finding{Code: "command_needs_shell", Severity: finding.Error, What: "the command is one string that can't be split into words: " + err.Error(),
			Where: &finding.Where{Field: "launch.command"}, Expected: `an argv such as ["python3", "train.py"]`, Remedy: "send the words one by one; if a shell is meant, send " + string(shown)})
	}
	shown, _ := json.Marshal(argv)
	e.findings = append(e.findings, finding.Finding{Code: "command_split", Severity: finding.Note, What: "launch.command was one string and is run as " + string(shown),
		Where: &finding.Where{Field: "launch.command"}, Remedy: "send the argv"})
	e.order.Command = argv
	return nil
}

// warnOfSecrets tells of words of the command that look like a secret: it has to be kept on disk to be run.
func (e *errand) warnOfSecrets() {
	option := ""
	for i, word := range e.order.Command {
		if redact.Value(option, word) != word {
			e.findings = append(e.findings, finding.Finding{Code: "secret_in_command", Severity: finding.Warning, What: fmt.Sprintf("word %d of the command looks like a secret, and is kept in the job's folder", i),
				Where: &finding.Where{Field: fmt.Sprintf("launch.command[%d]", i)}, Expected: "no secret in a command", Remedy: "let the command read it from a file"})
		}
		option = ""
		if strings.HasPrefix(word, "-") {
			option = strings.TrimLeft(word, "-") // --token VALUE
		}
	}
}

// name gives the job its id, which is that of what it runs.
func (e *errand) name() error {
	marker, err := e.identity()
	if err != nil {
		return err
	}
	e.marker, e.id = "tw-"+marker, "j-"+marker
	e.folder = filepath.Join(e.c.root(), e.id)
	return nil
}

// identity is the hash of handoff, launch and attempt.
func (e *errand) identity() (string, error) {
	order := e.order
	order.WaitSeconds = nil
	key, err := contract.Canonical(map[string]any{"handoff": contract.HandoffSHA256(e.handoff), "attempt": e.handoff.Inputs.Attempt, "launch": order})
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(rundir.HashBytes(key), "sha256:")[:16], nil
}

// root is where jobs without a run live.
func (c *Commands) root() string {
	return filepath.Join(c.Roots.Workspace(), ".onescience", "jobs")
}

var ownID = regexp.MustCompile(`^j-[0-9a-f]{16}$`)

// reopen reads the job that an id names. A launch that was blocked has a folder too, and is tried again.
func (e *errand) reopen(id string) error {
	folder := filepath.Join(e.c.root(), id)
	if _, err := os.Stat(filepath.Join(folder, orderFile)); !ownID.MatchString(id) || err != nil {
		return e.notOurs(id)
	}
	if err := rundir.ReadJSON(filepath.Join(folder, orderFile), &e.order); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(folder, contract.FileStepHandoff))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the handoff of job %s: %w", id, err)
	}
	if err == nil {
		if e.handoff, _, err = contract.DecodeHandoff(json.RawMessage(data)); err != nil {
			return err
		}
	}
	if err := e.name(); err != nil {
		return err
	}
	if e.id != id {
		return finding.Refuse(finding.Finding{Code: "artifact_edited", Severity: finding.Error, What: fmt.Sprintf("%s or %s of job %s is not what the job was made of", orderFile, contract.FileStepHandoff, id),
			Where: &finding.Where{Path: folder}, Expected: "the files as they were written", Remedy: "undo the edit, or send the handoff and the launch without job_id: they are a job of their own"})
	}
	return nil
}

// notOurs refuses the id of a job that this tool did not start, naming the tool that goes on with it.
func (e *errand) notOurs(id string) error {
	roots, err := e.c.Authority.Jobs()
	if err != nil {
		return err
	}
	folder, err := jobs.Find(roots, id)
	if err != nil {
		return err
	}
	request, err := jobs.ReadRequest(folder)
	if err != nil {
		return err
	}
	f := finding.Finding{Code: "job_of_a_run", Severity: finding.Error, What: fmt.Sprintf("job %s was not started by this tool", id), Where: &finding.Where{Field: "job_id"},
		Expected: "a job that runtime answered with", Remedy: fmt.Sprintf("look at it: job_status {\"job_ids\": [%q]}", id)}
	if request.RunID != "" {
		f.Remedy = fmt.Sprintf("go on with its run: trainer {\"run_id\": %q}", request.RunID)
	}
	return finding.Refuse(f)
}
