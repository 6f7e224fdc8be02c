package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/project"
)

// AcquisitionInput is the section of phase_0_input_acquisition.
type AcquisitionInput struct {
	Sources []SourceInput `json:"sources,omitempty" jsonschema_description:"More sources to capture, beside those the handoff names."`
	engine.EditedInput
}

// SourceInput is one source that the agent adds. Ref is a path inside the workspace or a read root, or a URL; Text is the text
// itself for kind text.
type SourceInput struct {
	Kind string `json:"kind" jsonschema:"enum=text,enum=url,enum=file,enum=directory,enum=checkpoint,enum=dataset" jsonschema_description:"What it is."`
	Ref  string `json:"ref,omitempty" jsonschema_description:"Path, relative to the workspace; or the URL; for text a short name."`
	Text string `json:"text,omitempty" jsonschema_description:"The text, for kind text."`
	Note string `json:"note,omitempty"`
}

// acquisition is phase 0: recall, capture every source with its hash, scan the project, and work out candidate facts.
type acquisition struct{ t *Trainer }

func (acquisition) Name() string { return contract.Phases[0] }
func (acquisition) Tool() string { return "phase_0_input_acquisition" }

// capture is the state of one acquisition while it is put together.
type capture struct {
	step      *engine.Step
	authority launch.Authority
	sources   []evidence.Source
	bySource  map[string]string // absolute path → source id
	findings  []finding.Finding
	root      string // absolute folder of the project, "" when none is known
	entry     string // entry point relative to root, slashes
	scan      *project.Tree
	// surroundings is a scan of the workspace for suggestions, made where no project is known.
	surroundings *project.Tree
}

// Run does phase 0.
func (p acquisition) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	var out engine.Outcome
	var given, fresh AcquisitionInput
	if err := stored(step, p.Name(), &given); err != nil {
		return out, err
	}
	if err := brought(step, &fresh); err != nil {
		return out, err
	}
	for _, s := range fresh.Sources {
		if !slices.Contains(given.Sources, s) {
			given.Sources = append(given.Sources, s)
		}
	}
	if _, err := step.Track(contract.FileStepHandoff); err != nil {
		return out, err
	}
	step.Say(p.Name(), "recalling what the skills know")
	recalled, use, err := p.t.recall(ctx, step)
	if err != nil {
		return out, err
	}
	c := &capture{step: step, authority: p.t.Authority, bySource: map[string]string{}}
	if c.sources, err = evidence.LoadSources(step.Run.Workdir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return out, err
	}
	if err := c.all(ctx, given); err != nil {
		return out, err
	}
	c.findings = append(c.findings, step.Run.Contradiction()...)
	for _, m := range recalled.file.Result.MatchedResources {
		if err := c.add(evidence.CaptureInput{Kind: evidence.KindText, Ref: m.Path, Text: m.Content, Note: "recalled: " + m.WhyMatched}, ""); err != nil {
			return out, err
		}
	}
	candidates := c.candidates()
	out.Recall = use
	out.Findings = append(c.findings, recalled.findings...)
	p.gate(&out, c, candidates)
	request := trainingRequest(step.Run, c)
	for name, v := range map[string]any{sourcesFile: c.sources, projectFile: c.projectView(), candidatesFile: candidates, recallFile: recalled.file, requestFile: request} {
		if err := out.AddFile(name, v); err != nil {
			return out, err
		}
	}
	out.AddText(captureFile, renderCapture(step.Run, c, candidates, recalled))
	out.Summary = fmt.Sprintf("%d sources captured, %d candidate facts found", len(c.sources), len(candidates))
	return out, keepAnswers(&out, step, p.Name(), given)
}

// gate 0: a source, an entry point or model code, a goal, minimal data, at least one strategy parameter (settled.md).
func (p acquisition) gate(out *engine.Outcome, c *capture, candidates []evidence.Fact) {
	handoff := c.step.Run.Handoff
	has := func(prefix string) bool {
		return slices.ContainsFunc(candidates, func(f evidence.Fact) bool { return strings.HasPrefix(f.Field, prefix) })
	}
	out.Check("source", len(c.sources) > 0, "something was captured")
	entry := c.scan != nil && (c.entry != "" && c.scan.Entrypoint(c.entry) != nil || c.entry == "" && handoff.Inputs.Model.TrainingEntrypoint == "")
	planned := !entry && c.codeless()
	out.Check("entrypoint_or_model_code", entry || planned, "a training entry point or model code is known, or accepted as MISSING by a step that ends with a plan")
	if planned {
		out.Assumptions = append(out.Assumptions, "MISSING: model.training_entrypoint (nothing here trains; the plan says what must be written)")
		out.Findings = append(out.Findings, finding.Finding{Code: "code_to_be_written", Severity: finding.Warning, What: "no script here trains a model: the plan is for code that must be written",
			Where: &finding.Where{Path: c.step.Run.Roots.Workspace()}, Remedy: "if there is code after all, name it in inputs.model.training_entrypoint"})
	} else if !entry {
		out.Needs = append(out.Needs, c.entryNeed())
	}
	goal := handoff.StepGoal != "" || handoff.TaskContext.UserGoal != ""
	out.Check("objective", goal, "step_goal or user_goal says what to reach")
	if !goal {
		out.Needs = append(out.Needs, engine.Need{Field: "task.objective", Why: "gate of phase 0: the goal of the step", WhereToLook: []string{"ask the user"}, Candidates: []string{}})
	}
	data := has("data.")
	out.Check("minimal_data", data, "a data source is named")
	if !data {
		out.Needs = append(out.Needs, c.dataNeed())
		out.Choices = append(out.Choices, dataChoice(c.dataFiles()))
	}
	strategy := has("training.")
	out.Check("strategy_constraint", strategy || planned, "at least one strategy parameter is known, or accepted as MISSING by a step that ends with a plan")
	if !strategy && entry { // without a script there is nobody yet whose defaults could say it
		out.Needs = append(out.Needs, engine.Need{Field: "training.epochs_or_steps", Why: "gate of phase 0: at least one core strategy parameter",
			WhereToLook: []string{"the project's README or config", "ask the user"}, Candidates: []string{}})
	}
	out.Decide()
	if !out.Gate.Passed {
		out.Next = amendCall(c.step.Run, out.Needs)
		for _, n := range out.Needs {
			out.Blockers = append(out.Blockers, n.Field)
		}
	}
}

// codeless says that there is no code to plan with, and that the step ends before any would run: a folder with data and a
// sentence. The handoff names no code, and the workspace has no script that trains.
func (c *capture) codeless() bool {
	in := c.step.Run.Handoff.Inputs
	if in.Model.CodePath != "" || in.Model.TrainingEntrypoint != "" || in.Runtime.ExecutionIntent == contract.IntentValidateOnly || runs(c.step.Run.Handoff) {
		return false
	}
	tree := c.around()
	return tree != nil && len(tree.Entrypoints) == 0
}

// around is what the project says, or where no project is known what the workspace does.
func (c *capture) around() *project.Tree {
	if c.scan == nil && c.surroundings == nil {
		// An error here only means that there is nothing to suggest.
		c.surroundings, _, _ = project.Scan(context.Background(), c.step.Run.Roots.Workspace(), project.Options{})
	}
	if c.scan != nil {
		return c.scan
	}
	return c.surroundings
}

// entryNeed says that no entry point is known, and which scripts could be one.
func (c *capture) entryNeed() engine.Need {
	var scripts []string
	if tree := c.around(); tree != nil {
		for _, e := range tree.Entrypoints {
			scripts = append(scripts, e.Path)
		}
	}
	return suggest("model.training_entrypoint", "gate of phase 0: a training entry point or model code", scripts, "no script looks like one; ask the user")
}

func (c *capture) dataNeed() engine.Need {
	return suggest("data.train_source", "gate of phase 0: minimal data", c.dataFiles(), "no data file was found; ask the user")
}

// suggest is a need with at most five places to look.
func suggest(field, why string, places []string, none string) engine.Need {
	places = slices.Clone(places[:min(5, len(places))])
	if len(places) == 0 {
		places = []string{none}
	}
	return engine.Need{Field: field, Why: why, WhereToLook: places, Candidates: []string{}}
}

// amendCall is the call that supplies what a gate of handoff fields waits for: an amendment of the run. Where the run's
// handoff has a value that is wrong, no amendment can change it, and the call is the corrected handoff: a run of its own.
func amendCall(run *engine.Run, needs []engine.Need) *engine.NextCall {
	var amendment, wrong contract.StepHandoff
	for _, n := range needs {
		value := "<" + n.Field + ">"
		if len(n.WhereToLook) == 1 && !strings.Contains(n.WhereToLook[0], " ") {
			value = n.WhereToLook[0]
		}
		switch n.Field {
		case "model.training_entrypoint":
			amendment.Inputs.Model.TrainingEntrypoint, wrong.Inputs.Model.TrainingEntrypoint = value, run.Handoff.Inputs.Model.TrainingEntrypoint
		case "data.train_source":
			amendment.Inputs.Data.TrainSource = value
		case "task.objective":
			amendment.StepGoal = "<what the step must reach>"
		}
	}
	arguments := map[string]any{"run_id": run.ID, "step_handoff": amendment}
	if wrong.Inputs.Model.TrainingEntrypoint != "" {
		corrected := run.Handoff
		corrected.Inputs.Model.TrainingEntrypoint = amendment.Inputs.Model.TrainingEntrypoint
		arguments = map[string]any{"step_handoff": corrected}
	} else if slices.ContainsFunc(needs, func(n engine.Need) bool { return n.Field == "training.epochs_or_steps" }) {
		arguments["step_handoff"] = map[string]any{"inputs": map[string]any{"parameters": map[string]any{"epochs_or_steps": "<epochs>"}}}
	}
	return &engine.NextCall{Tool: run.Skill.Walker, Arguments: arguments}
}

// locate resolves a path of the handoff: inside the project at root first where there is one, else from the workspace.
func locate(run *engine.Run, root, path string) (string, error) {
	if root != "" && !filepath.IsAbs(path) {
		if abs, err := run.Roots.Readable(filepath.Join(root, path)); err == nil {
			if _, err := os.Stat(abs); err == nil {
				return abs, nil
			}
		}
	}
	return run.Roots.Readable(path)
}
