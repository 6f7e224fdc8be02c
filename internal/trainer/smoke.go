package trainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/snapshot"
)

// The smoke run is the real command on some rows for one epoch, as a job of its own below smokeFolder of the run. It runs
// copies of the code (smoke_apart.go): what the project and code_save_dir hold stays as it is, and nothing that it leaves is
// evidence of the run. smokeFile keeps what it showed.
const (
	smokeFile   = "smoke.json"
	smokeFolder = "smoke"
	smokeLimit  = 120 * time.Second
	// smokePatience is how long a call waits at least: most smoke runs are over sooner than another call would be made.
	smokePatience = 5 * time.Second
	smokeSkip     = "skip"
	smokeSkipped  = "skipped"
)

// Smoke is smoke.json. State is a job's state, or "skipped" with the reason in Why. Rows are those of each part, "all" for a
// script that splits its file itself. CheckpointBytes is the largest file of its checkpoints: estimates for the real job.
type Smoke struct {
	State           string         `json:"state"`
	Why             string         `json:"why,omitempty"`
	JobID           string         `json:"job_id,omitempty"`
	Marker          string         `json:"marker,omitempty"`
	Command         []string       `json:"command,omitempty"`
	Rows            map[string]int `json:"rows,omitempty"`
	Exit            *int           `json:"exit"`
	Seconds         float64        `json:"seconds"`
	PeakRSSBytes    int64          `json:"peak_rss_bytes"`
	CheckpointBytes int64          `json:"checkpoint_bytes"`
	Outputs         []string       `json:"outputs"`
	// AtMostSeconds is a bound of the whole training's time, and Projection its arithmetic; 0 where too little is known.
	AtMostSeconds float64 `json:"at_most_seconds,omitempty"`
	Projection    string  `json:"projection,omitempty"`
}

// smokeRun is a smoke run while it is put together.
type smokeRun struct {
	p       codegen
	step    *engine.Step
	out     *engine.Outcome
	c       *commander
	made    Codegen
	profile *dataset.Profile
	read    []string // the files that the review read
	marker  string
}

// smoke does the smoke run where the intent runs code here and the script can be kept away from the real data and outputs.
func (p codegen) smoke(ctx context.Context, step *engine.Step, out *engine.Outcome, c *commander, made Codegen, read []string, given CodegenInput) error {
	w := &smokeRun{p: p, step: step, out: out, c: c, made: made, read: read, profile: smokeProfile(step.Run.File(profileFile))}
	if why := w.reasonAgainst(given); why != "" {
		return w.skip(why)
	}
	if err := w.mark(); err != nil {
		return err
	}
	release, found, err := p.t.Authority.Clear(ctx, w.ask())
	if err != nil {
		return err
	}
	defer release()
	if finding.Has(found, finding.Error) {
		return w.skip("the user's policy does not allow it: " + launch.FirstError(found))
	}
	job, err := w.start(ctx)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return w.skip("it could not be started: " + refused.Findings[0].What)
	}
	if err != nil {
		return err
	}
	status, err := w.wait(ctx, job)
	if err != nil {
		return err
	}
	if jobs.Over(status.State) {
		return w.judge(job, status)
	}
	out.Job = &engine.JobHandle{JobID: job.JobID, State: status.State}
	out.Summary = fmt.Sprintf("smoke run %s is %s after %.0f s", job.JobID, status.State, status.Seconds)
	out.Next = &engine.NextCall{Tool: step.Run.Skill.Walker, Arguments: map[string]any{"run_id": step.Run.ID, "wait_seconds": int(smokeLimit.Seconds())}}
	if len(step.Section) == 0 {
		return nil
	}
	// Nothing is committed while a job is under way: what this call brought is kept for the next one.
	return rundir.WriteJSON(step.Run.File(answersFile(p.Name())), given)
}

// ask is what the smoke run takes of the user's budget.
func (w *smokeRun) ask() launch.Ask {
	return launch.Ask{ID: w.step.Run.ID, Command: launch.Join(w.made.Command), Channel: contract.ChannelLocalDirect, Site: "local", WallTimeSeconds: w.limit()}
}

// runsHere says whether the job will run on this machine.
func runsHere(h contract.StepHandoff) bool {
	mode := h.Inputs.Runtime.ExecutionMode
	return h.Inputs.Runtime.ExecutionIntent == contract.IntentRunLocal && slices.Contains([]string{"", contract.ModeUnknown, contract.ModeLocal}, mode)
}

// reasonAgainst says why there is no smoke run, "" where there is one.
func (w *smokeRun) reasonAgainst(given CodegenInput) string {
	switch {
	case given.Smoke == smokeSkip:
		return "the call says skip"
	case !runsHere(w.step.Run.Handoff):
		return "the job does not run on this machine"
	case w.profile == nil:
		return "the data is no table that rows can be taken of"
	}
	return w.c.smokeReason(w.c.smokeParts(""))
}

// smokeReason says what about the script or its data is against a smoke run.
func (c *commander) smokeReason(parts []smokePart) string {
	switch {
	case len(parts) == 0:
		return "there is no file of data, or two of the same name"
	case !c.carriesAny("data.train_source", "data.source", "data.dir"):
		return "no argument of " + c.view.Entry + " says where its data is: it would read all of it"
	case !c.carriesAny("output.dir", "checkpoint.dir", "output.metrics", "output.predictions", "output.summary", "output.log_dir"):
		return "no argument of " + c.view.Entry + " says where it writes: it would write where the real job does"
	case c.carriesAny("data.dir") && otherFiles(filepath.Dir(parts[0].from), parts):
		return "the folder of the data holds other files than the parts"
	}
	return ""
}

func (c *commander) carriesAny(fields ...string) bool { return slices.ContainsFunc(fields, c.carries) }

// smokeSteps is the smoke plan in words, for the plan and for the answer.
func smokeSteps(h contract.StepHandoff, view projectView, plan Plan) []string {
	if view.script() == nil {
		return []string{"MISSING: no entry point"}
	}
	steps := []string{"read " + view.Entry + " and the modules of the project that it imports, without running them: they compile, their imports are found; no path of one machine, no hidden download, no random numbers without a seed"}
	if !runs(h) {
		return append(steps, "no smoke run: the intent runs none of the project's code")
	}
	steps = append(steps, "ask it for --help and compare the arguments")
	if !runsHere(h) {
		return append(steps, "no smoke run: the job does not run on this machine")
	}
	epochs := "as many epochs as the script takes by itself"
	if a := view.argument("training.epochs_or_steps"); a != nil {
		epochs = "one epoch (" + a.Name + " 1)"
	}
	c := commander{plan: plan}
	return append(steps, fmt.Sprintf("smoke run: the command itself for %s on rows of each part (%d of train, %d of val and test, every class of the target), in a folder of its own, at most %.0f s; "+
		"a script that is not told where its data is and where it writes is not run", epochs, c.smokeRows(smokeTrainRows), c.smokeRows(smokeOtherRows), smokeLimit.Seconds()))
}

// skip records that there is no smoke run and why.
func (w *smokeRun) skip(why string) error {
	w.out.Check("smoke_run", true, "none: "+why)
	if w.step.Run.Handoff.Inputs.Runtime.ExecutionIntent == contract.IntentRunLocal {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "smoke_skipped", Severity: finding.Note, What: "the script was not tried on a few rows: " + why,
			Where: &finding.Where{Path: w.made.Entrypoint}, Expected: "a script that takes its data and its output folder as arguments", Remedy: "nothing has to be done: the job itself shows whether it runs"})
	}
	return w.out.AddFile(smokeFile, Smoke{State: smokeSkipped, Why: why, Outputs: []string{}})
}

// mark names the smoke run by what it depends on: the same command, code and data are tried once.
func (w *smokeRun) mark() error {
	files := map[string]string{}
	for _, path := range append(slices.Clone(w.read), w.out.Outputs...) {
		sha, _, err := rundir.HashFile(w.step.Run.Dir.Abs(path))
		if err != nil {
			return err
		}
		files[path] = sha
	}
	for _, f := range w.c.manifest.Files {
		files[f.Path] = f.SHA256
	}
	key, err := contract.Canonical(map[string]any{"command": w.made.Command, "files": files})
	if err != nil {
		return err
	}
	w.marker = "sm-" + strings.TrimPrefix(rundir.HashBytes(key), "sha256:")[:16]
	return nil
}

// start finds the smoke run of these inputs, or makes it. One that failed and was judged is tried again: the call was made
// because something else was repaired.
func (w *smokeRun) start(ctx context.Context) (*jobs.Entry, error) {
	run := w.step.Run
	unlock, err := rundir.Lock(ctx, run.File(smokeFolder+"/.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, _ := jobs.List([]string{run.File(smokeFolder)})
	var judged Smoke
	_ = rundir.ReadJSON(run.File(smokeFile), &judged) // none: nothing was judged
	at := slices.IndexFunc(entries, func(e jobs.Entry) bool {
		_, err := os.Stat(filepath.Join(e.Folder, smokeWork))
		return e.Request.Marker == w.marker && err == nil
	})
	if at < 0 || judged.JobID == entries[at].JobID && judged.State == jobs.StateFailed {
		if err := w.clear(ctx, entries); err != nil {
			return nil, err
		}
		return w.create(ctx)
	}
	_, err = w.p.t.Runtime.Submit(ctx, entries[at].Folder)
	return &entries[at], err
}

// clear removes what earlier smoke runs that are over left, since checkpoints can be large; their logs stay.
func (w *smokeRun) clear(ctx context.Context, entries []jobs.Entry) error {
	for _, e := range entries {
		status, err := w.p.t.Runtime.Status(ctx, []string{e.Folder})
		if err != nil {
			return err
		}
		if !jobs.Terminal(status[0].State) {
			continue
		}
		for _, name := range []string{smokeWork, smokeData, snapshot.Folder} {
			if err := os.RemoveAll(filepath.Join(e.Folder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// create writes the cuts of the data, the copies of the code and the job's folder, and starts it. The request is last: a
// folder without one is what a crash left, and is written anew.
func (w *smokeRun) create(ctx context.Context) (*jobs.Entry, error) {
	id, folder := w.freeID()
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	work := filepath.Join(folder, smokeWork)
	data := filepath.Join(folder, smokeData)
	for _, dir := range []string{data, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	parts := w.c.smokeParts(data)
	rows, target := map[string]int{}, w.c.smokeTarget(w.profile)
	for _, p := range parts {
		n, err := p.cut(w.profile.Format, target)
		if err != nil {
			return nil, finding.Refuse(finding.Finding{Code: "input_missing", Severity: finding.Error, What: err.Error(), Where: &finding.Where{Path: p.from}})
		}
		rows[partOrAll(p.part)] = n
	}
	if err := os.WriteFile(filepath.Join(folder, smokeRowsFile), []byte(jsonText(rows)+"\n"), 0o644); err != nil {
		return nil, err
	}
	argv, err := w.c.smokeCommand(w.made, parts, work)
	if err != nil {
		return nil, err
	}
	command, workDir, err := w.apart(ctx, folder, argv)
	if err != nil {
		return nil, err
	}
	w.step.Say(w.p.Name(), "smoke run %s: one epoch on %s", id, rowsText(rows))
	request := jobs.Request{JobID: id, RunID: w.step.Run.ID, Command: command.Argv, Env: command.Env, WorkDir: workDir, WallTimeSeconds: w.limit(),
		Site: "local", Channel: contract.ChannelLocalDirect, Marker: w.marker, SubmittedBy: "trainwright", Task: "smoke run", CreatedAt: w.step.Now()}
	if err := jobs.Create(folder, request); err != nil {
		return nil, err
	}
	_, err = w.p.t.Runtime.Submit(ctx, folder)
	return &jobs.Entry{JobID: id, RunID: w.step.Run.ID, Folder: folder, Request: request}, err
}

// limit is the wall time of the smoke run in seconds: never more than what the step may take.
func (w *smokeRun) limit() int {
	limit := int(smokeLimit.Seconds())
	if budget := w.step.Run.Handoff.Inputs.StepWallclockBudgetSeconds; budget > 0 {
		limit = min(limit, budget)
	}
	return limit
}

// In the job's folder: smokeRowsFile keeps how many rows were cut of each part, smokeData the cuts, and into smokeWork the
// script is told to write.
const (
	smokeRowsFile = "rows.json"
	smokeData     = "data"
	smokeWork     = "work"
)

func partOrAll(part string) string {
	if part == "" {
		return "all"
	}
	return part
}

func rowsText(rows map[string]int) string {
	var out []string
	for _, part := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, fmt.Sprintf("%d rows of %s", rows[part], part))
	}
	return strings.Join(out, ", ")
}

// freeID is the next id of a smoke run: smoke-<run's hash>-<n>.
func (w *smokeRun) freeID() (id, folder string) {
	hash := w.step.Run.ID[strings.LastIndexByte(w.step.Run.ID, '-')+1:]
	for n := 1; ; n++ {
		id = fmt.Sprintf("smoke-%s-%d", hash, n)
		folder = w.step.Run.File(smokeFolder + "/" + id)
		if _, err := os.Stat(filepath.Join(folder, jobs.RequestFile)); err != nil {
			return id, folder
		}
	}
}

// smokeCommand is the real command with the cuts as its data, folders of work as its outputs and one epoch. A configuration
// copy that the run makes is made anew in work.
func (c *commander) smokeCommand(made Codegen, parts []smokePart, work string) ([]string, error) {
	run := *c.run
	run.CodeSaveDir = work
	plan := c.plan
	plan.Leaves = maps.Clone(c.plan.Leaves)
	for _, path := range []string{"epochs", "checkpoint.every_epochs"} {
		plan.Leaves[path] = Leaf{Value: 1.0, Status: evidence.Assumption, Why: "smoke run"}
	}
	s := &commander{run: &run, view: c.view, plan: plan, facts: c.facts, manifest: smokeManifest(c.manifest, parts), extra: c.extra}
	s.build()
	name, data, _, err := s.configCopy()
	if err != nil {
		return nil, err
	}
	if name != "" {
		path := filepath.Join(work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
	}
	return append([]string{made.Command[0], made.Entrypoint}, s.argv()...), nil
}

// wait follows the job for as long as the call may wait.
func (w *smokeRun) wait(ctx context.Context, job *jobs.Entry) (jobs.Status, error) {
	var last jobs.Status
	_, err := jobs.Await(ctx, max(w.step.Wait, smokePatience), func() (bool, error) {
		status, err := w.p.t.Runtime.Status(ctx, []string{job.Folder})
		if err != nil {
			return false, err
		}
		last = status[0]
		return jobs.Over(last.State), nil
	})
	return last, err
}
