package trainer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
)

// Strategy is a training strategy as an agent states it (formats.md). A field that is left out is open.
type Strategy struct {
	Loss      string `json:"loss,omitempty"`
	Optimizer *struct {
		Name        string   `json:"name,omitempty"`
		LR          *float64 `json:"lr,omitempty" jsonschema_description:"Learning rate."`
		WeightDecay *float64 `json:"weight_decay,omitempty"`
		Momentum    *float64 `json:"momentum,omitempty"`
	} `json:"optimizer,omitempty"`
	Scheduler *struct {
		Name        string `json:"name,omitempty"`
		WarmupSteps *int   `json:"warmup_steps,omitempty"`
	} `json:"scheduler,omitempty"`
	Batch *struct {
		Micro        *int `json:"micro,omitempty" jsonschema_description:"Samples per micro-batch."`
		Accumulation *int `json:"accumulation,omitempty"`
		WorldSize    *int `json:"world_size,omitempty"`
	} `json:"batch,omitempty"`
	Epochs      *int     `json:"epochs,omitempty"`
	Precision   string   `json:"precision,omitempty"`
	ClipNorm    *float64 `json:"clip_norm,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Distributed string   `json:"distributed,omitempty"`
	Checkpoint  *struct {
		EveryEpochs *int `json:"every_epochs,omitempty"`
		Keep        *int `json:"keep,omitempty"`
		Best        *struct {
			Metric string `json:"metric,omitempty"`
			Mode   string `json:"mode,omitempty" jsonschema:"enum=min,enum=max"`
		} `json:"best,omitempty"`
		Resume []string `json:"resume,omitempty"`
	} `json:"checkpoint,omitempty"`
	Evaluation *struct {
		EveryEpochs *int `json:"every_epochs,omitempty"`
	} `json:"evaluation,omitempty"`
	Patience *int     `json:"patience,omitempty" jsonschema_description:"Evaluations without an improvement that end the training."`
	Tier     string   `json:"tier,omitempty" jsonschema:"enum=smoke,enum=quick,enum=full" jsonschema_description:"smoke: at most 3 epochs and 5 min; quick: 60 min; full when left out."`
	Success  []string `json:"success,omitempty" jsonschema_description:"Criteria such as val/rmse <= 0.5."`
}

// Leaf is one settled value of the plan: what it is, how sure that is, and the fact or the reason behind it. Argument is
// the script's argument that carries it, empty when it does not reach the script. A nil value is decided by the script.
type Leaf struct {
	Value    any    `json:"value"`
	Status   string `json:"status"`
	Fact     string `json:"fact,omitempty"`
	Why      string `json:"why,omitempty"`
	Argument string `json:"argument,omitempty"`
}

// leafSpec ties a leaf of the strategy to the fact (and argument role) that carries it, and to what is proposed when
// nobody says anything. Proposals are common starting points, not findings: each passes only as an ASSUMPTION.
type leafSpec struct {
	path, field string
	proposal    any
	why         string
}

// leaves in the order of the plan. Sources of the proposals: AdamW with lr 3e-4, weight decay 0.01 and clipping at 1.0 are
// the defaults or usual values of torch.optim.AdamW's documentation and of common trainers; the rest keeps things as
// they are.
var leaves = []leafSpec{
	{"loss", "training.extra.loss", nil, ""},
	{"optimizer.name", "training.optimizer", "adamw", "a common first choice"},
	{"optimizer.lr", "training.extra.learning_rate", 3e-4, "a common first choice for AdamW"},
	{"optimizer.weight_decay", "training.extra.weight_decay", 0.01, "the default of AdamW"},
	{"optimizer.momentum", "training.extra.momentum", nil, ""},
	{"scheduler.name", "training.scheduler", "none", "a constant learning rate is the simplest to judge"},
	{"scheduler.warmup_steps", "training.extra.warmup_steps", 0, "no warm-up"},
	{"batch.micro", "training.batch_size", 32, "a common first choice"},
	{"batch.accumulation", "training.extra.accumulation_steps", 1, "no accumulation"},
	{"batch.world_size", "training.extra.world_size", 1, "one process"},
	{"epochs", "training.epochs_or_steps", 20, "enough to see a trend; early results decide"},
	{"precision", "training.precision", "fp32", "no loss of accuracy"},
	{"clip_norm", "training.extra.clip_norm", 1.0, "a common bound"},
	{"seed", "training.extra.seed", 17, "any fixed seed makes the run repeatable"},
	{"distributed", "training.distributed_mode", "single", "one process"},
	{"checkpoint.every_epochs", "checkpoint.every_epochs", 1, "at most one epoch is lost"},
	{"checkpoint.keep", "checkpoint.keep", 3, "the newest three"},
	{"checkpoint.best.metric", "training.extra.best_metric", nil, ""},
	{"checkpoint.best.mode", "training.extra.best_mode", nil, ""},
	{"checkpoint.resume", "training.extra.resume_semantics", nil, ""},
	{"patience", "training.extra.patience", nil, ""},
	{"evaluation.every_epochs", "training.extra.evaluate_every_epochs", 1, "every epoch"},
}

// settler works out every leaf of the plan.
type settler struct {
	facts    []evidence.Fact
	view     projectView
	chosen   map[string]any // flattened strategy of the call
	propose  bool
	target   contract.TargetColumn
	task     string   // task_type of the handoff
	criteria []string // of the handoff
	leaves   map[string]Leaf
	open     []leafSpec // leaves that reach the script and that nobody has settled
	unsure   []leafSpec // leaves that reach the script without being CONFIRMED
	findings []finding.Finding
}

func (s *settler) settle() {
	s.leaves = map[string]Leaf{}
	for _, spec := range leaves {
		leaf := s.leaf(spec)
		s.leaves[spec.path] = leaf
		if leaf.Argument != "" && leaf.Value != nil && leaf.Status != evidence.Confirmed {
			s.unsure = append(s.unsure, spec)
		}
	}
}

// leaf settles one value: the agent's choice, the fact in force, a proposal, or the script's own decision.
func (s *settler) leaf(spec leafSpec) Leaf {
	fact, argument := holding(s.facts, spec.field), s.view.argument(spec.field)
	var leaf Leaf
	if argument != nil {
		leaf.Argument = argument.Name
	}
	chosen, has := s.chosen[spec.path]
	proposal, why := s.proposal(spec)
	if argument != nil && len(argument.Choices) > 0 && !slices.ContainsFunc(argument.Choices, func(c any) bool { return sameNumber(c, proposal) }) {
		proposal = nil // the script would refuse it
	}
	switch {
	case has && fact != nil && sameNumber(chosen, fact.Value):
		leaf.Value, leaf.Status, leaf.Fact = fact.Value, fact.Status, fact.ID
	case has:
		if fact != nil && fact.By == byUser {
			s.findings = append(s.findings, finding.Finding{Code: "contradicts_fact", Severity: finding.Error,
				What:  fmt.Sprintf("%s is %s by the user's handoff (%s), the strategy says %s", spec.path, show(fact.Value), fact.ID, show(chosen)),
				Where: &finding.Where{Field: "strategy." + spec.path}, Expected: show(fact.Value), Remedy: "leave it out, or start a run with a handoff that says otherwise"})
		}
		leaf.Value, leaf.Status, leaf.Why = chosen, evidence.Assumption, "chosen by the agent"
		if fact != nil && fact.By == byServer && fact.Value != nil {
			leaf.Why += fmt.Sprintf(" instead of %s (%s, %s)", show(fact.Value), fact.ID, fact.Why)
			s.findings = append(s.findings, finding.Finding{Code: "replaces_fact", Severity: finding.Note,
				What:  fmt.Sprintf("%s is %s in the project (%s, %s); the strategy makes it %s", spec.path, show(fact.Value), fact.ID, fact.Why, show(chosen)),
				Where: &finding.Where{Field: "strategy." + spec.path}, Remedy: "leave it out to keep the project's value"})
		}
	case fact != nil && fact.Status != evidence.Missing:
		leaf.Value, leaf.Status, leaf.Fact, leaf.Why = fact.Value, fact.Status, fact.ID, fact.Why
	case argument == nil:
		leaf.Status, leaf.Why = evidence.Inferred, "no argument of the script sets it; the script decides"
		if s.view.script() == nil {
			leaf.Status, leaf.Why = evidence.Missing, "nothing says it"
			switch {
			case s.propose && proposal != nil:
				leaf.Value, leaf.Status, leaf.Why = proposal, evidence.Assumption, why
			case s.view.Root == "" && slices.Contains(coreLeaves, spec.path):
				s.open = append(s.open, spec) // without code nobody else decides it
			}
		}
	case s.propose && proposal != nil:
		leaf.Value, leaf.Status, leaf.Why = proposal, evidence.Assumption, why
	case argument.Required || argument.Positional:
		leaf.Status, leaf.Why = evidence.Missing, "the script demands "+argument.Name
		s.open = append(s.open, spec)
	default:
		leaf.Status, leaf.Why = evidence.Inferred, fmt.Sprintf("%s is left at the script's own default", argument.Name)
	}
	return leaf
}

// coreLeaves are what a plan for code that is still to be written can't do without.
var coreLeaves = []string{"loss", "optimizer.name", "batch.micro", "epochs"}

// proposal is what is proposed for a leaf; the loss follows from what the target holds.
func (s *settler) proposal(spec leafSpec) (value any, why string) {
	switch spec.path {
	case "optimizer.lr", "optimizer.weight_decay":
		return s.forOptimizer(spec)
	case "loss":
	default:
		return spec.proposal, spec.why
	}
	switch s.target.Type {
	case dataset.TypeString, dataset.TypeBoolean:
		return "cross_entropy", fmt.Sprintf("%s holds classes", s.target.Name)
	case dataset.TypeNumber:
		return "mse", fmt.Sprintf("%s is a number", s.target.Name)
	case dataset.TypeInteger:
		return s.lossOfWholeNumbers()
	}
	return nil, ""
}

// lossOfWholeNumbers reads from the task and the criteria whether whole numbers are classes or quantities; where neither says it they
// are taken for quantities.
func (s *settler) lossOfWholeNumbers() (value any, why string) {
	said := strings.ToLower(s.task + " " + strings.Join(s.criteria, " "))
	for _, word := range []string{"classif", "accuracy", "f1", "auc", "recall"} {
		if strings.Contains(said, word) {
			return "cross_entropy", fmt.Sprintf("%s holds whole numbers, and %q speaks of classes", s.target.Name, word)
		}
	}
	return "mse", fmt.Sprintf("%s holds whole numbers, taken for quantities; cross_entropy if they name classes", s.target.Name)
}

// forOptimizer proposes what suits the optimizer that is settled already: the rate of AdamW is far too small for SGD, and its decoupled
// decay means something else there.
func (s *settler) forOptimizer(spec leafSpec) (value any, why string) {
	name, _ := s.leaves["optimizer.name"].Value.(string)
	switch name = strings.ToLower(name); {
	case strings.Contains(name, "adamw") || name == "":
		return spec.proposal, spec.why
	case spec.path == "optimizer.weight_decay":
		return nil, ""
	case strings.Contains(name, "sgd"):
		return 0.01, "a common first choice for SGD"
	case strings.Contains(name, "adam"):
		return 1e-3, "the default of Adam (arXiv:1412.6980)"
	}
	return nil, ""
}

// sameNumber compares values as JSON numbers or texts, so that 3e-4 and 0.0003 are one.
func sameNumber(a, b any) bool {
	x, okX := asFloat(a)
	y, okY := asFloat(b)
	if okX && okY {
		return x == y
	}
	return jsonText(a) == jsonText(b)
}

func asFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	}
	return 0, false
}

// flatten gives the leaves of a nested map by dotted path; lists are leaves.
func flatten(prefix string, v map[string]any, into map[string]any) {
	for key, value := range v {
		path := strings.TrimPrefix(prefix+"."+key, ".")
		if nested, ok := value.(map[string]any); ok {
			flatten(path, nested, into)
			continue
		}
		into[path] = value
	}
}

// nested writes leaves back as the tree of formats.md.
func nested(flat map[string]Leaf) map[string]any {
	root := map[string]any{}
	for path, leaf := range flat {
		parts := strings.Split(path, ".")
		at := root
		for _, part := range parts[:len(parts)-1] {
			next, _ := at[part].(map[string]any)
			if next == nil {
				next = map[string]any{}
				at[part] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = leaf
	}
	return root
}

// runnerFunctions maps each function of the ten-function contract to words that name it in a script.
var runnerFunctions = map[string][]string{
	"load_config":      {"load_config", "parse_args", "get_config", "parse_arguments", "build_parser", "config"},
	"load_checkpoint":  {"load_checkpoint", "restore", "resume", "load_state"},
	"build_dataset":    {"build_dataset", "dataset", "load_data", "read_csv", "read_rows", "read_table", "load_table", "load_csv"},
	"build_dataloader": {"build_dataloader", "dataloader", "batches", "minibatch"},
	"build_model":      {"build_model", "model", "network", "init_parameters", "init_weights", "new_model"},
	"build_optimizer":  {"build_optimizer", "optimizer", "sgd", "adam"},
	"build_scheduler":  {"build_scheduler", "scheduler", "schedule", "learning_rate_at", "lr_at"},
	"train_step":       {"train_step", "training_step", "step", "update"},
	"run_training":     {"run_training", "train", "fit", "main"},
	"run_evaluation":   {"run_evaluation", "evaluate", "evaluation", "validate", "predict"},
}

// runnerEntry is one function of the contract and where the project has it.
type runnerEntry struct {
	Function string `json:"function"`
	In       string `json:"in"`
	Status   string `json:"status"`
}

// runnerFacts are the facts whose place tells where a function's work stands, when it has no function of its own.
var runnerFacts = map[string]string{"build_optimizer": "training.optimizer", "build_scheduler": "training.scheduler", "build_dataloader": "training.batch_size", "build_dataset": "data.train_source"}

// runnerTasks say what must be written where there is no script.
var runnerTasks = map[string]string{
	"load_config":      "read arguments and configuration; refuse what is unknown with exit status 78",
	"load_checkpoint":  "restore weights, optimizer, scheduler, step and random state; nothing without its argument",
	"build_dataset":    "read the parts of the split by their arguments",
	"build_dataloader": "batches in an order that the seed fixes",
	"build_model":      "the model of the plan",
	"build_optimizer":  "the optimizer of the plan",
	"build_scheduler":  "the schedule of the plan",
	"train_step":       "loss, gradients, clipping, one step of the optimizer",
	"run_training":     "epochs, checkpoints by rename with .complete.json, metrics.jsonl, SIGTERM saved as exit status 75",
	"run_evaluation":   "metrics of a part and predictions-<split>.jsonl by id",
}

// runner maps the ten functions to the script's own code by their names, with the line where each begins; one without a function of its
// own is where a fact about it was read, else inside the script. Without a script it says what must be written.
func runner(view projectView, facts []evidence.Fact, names []string) []runnerEntry {
	script := view.script()
	out := make([]runnerEntry, 0, len(names))
	for _, name := range names {
		if script == nil {
			out = append(out, runnerEntry{Function: name, In: "MISSING: to be written: " + runnerTasks[name], Status: evidence.Missing})
			continue
		}
		out = append(out, runnerEntry{Function: name, In: runnerPlace(view, script, facts, name), Status: evidence.Inferred})
	}
	return out
}

func runnerPlace(view projectView, script *project.Entrypoint, facts []evidence.Fact, name string) string {
	for _, word := range runnerFunctions[name] {
		for _, alike := range []func(f string) bool{
			func(f string) bool { return strings.EqualFold(f, word) },
			func(f string) bool { return strings.Contains(strings.ToLower(f), word) },
		} {
			if at := slices.IndexFunc(script.Functions, alike); at >= 0 {
				f := script.Functions[at]
				if d := slices.IndexFunc(script.Definitions, func(d project.Definition) bool { return d.Name == f }); d >= 0 {
					return fmt.Sprintf("%s:%d %s", view.Entry, script.Definitions[d].Place.Line, f)
				}
				return view.Entry + ":" + f
			}
		}
	}
	for _, fact := range facts { // what was read off a call in the script stands where the work is done
		if fact.Field == runnerFacts[name] && fact.By == byServer && strings.HasPrefix(fact.Why, view.Entry+":") && !strings.Contains(fact.Quote, "add_argument") && strings.Contains(fact.Quote, "(") {
			return fact.Why + ", not a function of its own"
		}
	}
	return view.Entry + ", not a function of its own"
}

// dig follows a dotted path into decoded JSON.
func dig(tree any, path string) any {
	for _, key := range strings.Split(path, ".") {
		m, ok := tree.(map[string]any)
		if !ok {
			return nil
		}
		tree = m[key]
	}
	return tree
}
