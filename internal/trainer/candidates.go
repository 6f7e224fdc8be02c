package trainer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/project"
)

// Who stated a fact, weightiest first: the user's handoff, the agent, a configuration file, a script's own default.
const (
	byUser   = "user"
	byAgent  = "agent"
	byServer = "server"
)

// candidates are the facts that were found by reading: from the handoff (the user's word), from configuration files and
// from the entry point's argument defaults. Each has a verbatim quote and its place.
func (c *capture) candidates() []evidence.Fact {
	var facts []evidence.Fact
	add := func(f evidence.Fact) {
		f.ID = fmt.Sprintf("f%d", len(facts)+1)
		f.Status = evidence.Confirmed
		facts = append(facts, f)
	}
	for _, f := range c.handoffFacts() {
		add(f)
	}
	for _, f := range c.requestFacts() {
		add(f)
	}
	for _, f := range c.launchFacts() {
		add(f)
	}
	for _, f := range c.configFacts() {
		add(f)
	}
	for _, f := range c.scriptFacts() {
		add(f)
	}
	for _, f := range c.settingFacts() {
		add(f)
	}
	return facts
}

// handoffFacts are the filled fields of the handoff, quoted from step_handoff.json.
func (c *capture) handoffFacts() []evidence.Fact {
	h := c.step.Run.Handoff
	in := h.Inputs
	var facts []evidence.Fact
	source := c.bySource[c.step.Run.File(contract.FileStepHandoff)]
	say := func(field, key string, value any) {
		switch v := value.(type) {
		case string:
			if v == "" || v == "unknown" {
				return
			}
		case nil:
			return
		case *int:
			if v == nil {
				return
			}
			value = *v
		}
		facts = append(facts, evidence.Fact{Field: field, Value: value, Source: source, By: byUser, Quote: fmt.Sprintf("%q: %s", key, jsonText(value))})
	}
	say("task.objective", "step_goal", h.StepGoal)
	if h.StepGoal == "" {
		say("task.objective", "user_goal", h.TaskContext.UserGoal)
	}
	say("model.code_path", "code_path", in.Model.CodePath)
	say("model.training_entrypoint", "training_entrypoint", in.Model.TrainingEntrypoint)
	say("model.task_type", "task_type", in.Model.TaskType)
	say("checkpoint.init_checkpoint", "init_checkpoint", in.Checkpoint.InitCheckpoint)
	say("checkpoint.resume_checkpoint", "resume_checkpoint", in.Checkpoint.ResumeCheckpoint)
	say("checkpoint.finetune_checkpoint", "finetune_checkpoint", in.Checkpoint.FinetuneCheckpoint)
	say("data.train_source", "train_source", in.Data.TrainSource)
	say("data.val_source", "val_source", in.Data.ValSource)
	say("data.test_source", "test_source", in.Data.TestSource)
	say("data.input_format", "input_format", in.Data.InputFormat)
	say("data.split_hint", "split_hint", in.Data.SplitHint)
	for _, key := range []string{"target", "id", "group", "time"} {
		say("data."+key, key, in.Data.DomainMetadata[key])
	}
	say("training.optimizer", "optimizer", in.Parameters.Optimizer)
	say("training.scheduler", "scheduler", in.Parameters.Scheduler)
	say("training.batch_size", "batch_size", in.Parameters.BatchSize)
	say("training.epochs_or_steps", "epochs_or_steps", in.Parameters.EpochsOrSteps)
	say("training.precision", "precision", in.Parameters.Precision)
	say("training.distributed_mode", "distributed_mode", in.Parameters.DistributedMode)
	others := in.Parameters.Others()
	for _, key := range slices.Sorted(maps.Keys(others)) {
		if scalar(others[key]) {
			say(extraField(key), key, others[key])
		}
	}
	return facts
}

// optimizerWords are optimizers as people name them in a sentence.
var optimizerWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(SGD|Adam|AdamW|RMSprop|Adagrad|Adafactor|L-BFGS|LBFGS|sgd|adam|adamw|rmsprop|adagrad)\b`)
})

// requestSource is the name of the source that the handoff's own text is.
const requestSource = "instruction_source.text"

// requestFacts are the parameters that the user's own words state, such as "50 epochs": theirs, as if they stood in the handoff's
// fields. Where the words state two values of one parameter, or say that a value is not to be, nobody can say which counts.
func (c *capture) requestFacts() []evidence.Fact {
	said := c.step.Run.Handoff.Inputs.InstructionSource.Text
	at := slices.IndexFunc(c.sources, func(s evidence.Source) bool { return s.Ref == requestSource })
	if said == "" || at < 0 {
		return nil
	}
	var facts []evidence.Fact
	for _, field := range slices.Sorted(maps.Keys(prosePatterns())) {
		matches := prosePatterns()[field].FindAllStringSubmatchIndex(said, -1)
		if len(matches) != 1 || negated(said[:matches[0][0]]) {
			continue
		}
		for g := 2; g < len(matches[0]); g += 2 {
			if from, to := matches[0][g], matches[0][g+1]; from >= 0 {
				if value, err := strconv.ParseFloat(strings.ReplaceAll(said[from:to], ",", ""), 64); err == nil {
					facts = append(facts, evidence.Fact{Field: field, Value: value, Source: c.sources[at].ID, By: byUser, Quote: strings.TrimSpace(said[matches[0][0]:matches[0][1]]), Why: "the user's words"})
				}
			}
		}
	}
	if named := optimizerWords().FindAllStringIndex(said, -1); len(named) == 1 && !negated(said[:named[0][0]]) {
		word := said[named[0][0]:named[0][1]]
		facts = append(facts, evidence.Fact{Field: "training.optimizer", Value: word, Source: c.sources[at].ID, By: byUser, Quote: word, Why: "the user's words"})
	}
	return facts
}

// negated says whether the words before a value turn it into something that is not to be.
func negated(before string) bool {
	words := strings.Fields(strings.ToLower(before))
	for _, word := range words[max(0, len(words)-4):] {
		if slices.Contains([]string{"not", "no", "instead", "than", "never", "avoid", "don't", "without", "except", "unlike"}, strings.Trim(word, ",.;:")) {
			return true
		}
	}
	return false
}

// extraField names the fact of a free parameter. A spelling that the role table knows gets the role's name, so that
// "lr" in a handoff and "--learning-rate" in a script are one field.
func extraField(key string) string {
	if role := project.RoleOf(key); strings.HasPrefix(role, "training.") {
		return role
	}
	return "training.extra." + key
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// isFact says whether a role is a field of the training request that a candidate may fill. Folders, files to write and
// machine settings are trainwright's own business.
func isFact(role string) bool {
	for _, prefix := range []string{"data.", "training.", "checkpoint.init", "checkpoint.resume", "checkpoint.finetune", "checkpoint.every_epochs", "checkpoint.keep"} {
		if strings.HasPrefix(role, prefix) {
			return role != "data.dir"
		}
	}
	return false
}

func (c *capture) configFacts() []evidence.Fact {
	var facts []evidence.Fact
	if c.scan == nil {
		return facts
	}
	for _, config := range c.relevantConfigs() {
		for _, v := range config.Values {
			if !isFact(v.Role) || v.Value == nil {
				continue
			}
			if f, ok := c.placed(v.Role, v.Value, v.Quote, v.Place); ok {
				facts = append(facts, f)
			}
		}
	}
	return facts
}

// launchFacts are the arguments that the project's own launch line gives the script; of several lines nobody can say which counts.
func (c *capture) launchFacts() []evidence.Fact {
	var facts []evidence.Fact
	if c.scan == nil || c.entry == "" {
		return facts
	}
	launches := c.scan.LaunchesOf(c.entry)
	if len(launches) != 1 {
		return facts
	}
	for _, a := range launches[0].Arguments {
		if !isFact(a.Role) || a.Value == nil {
			continue
		}
		if f, ok := c.placed(a.Role, a.Value, a.Quote, a.Place); ok && stated(f) {
			facts = append(facts, f)
		}
	}
	return facts
}

// stated says that the quote holds the value: a variable that the line puts in does not.
func stated(f evidence.Fact) bool {
	return evidence.ValueInQuote(f.Value, f.Quote)
}

// settingFacts are what the script fixes in its text. Where it says one thing twice, such as two optimizers, neither is taken; what an
// argument or a configuration says already stays theirs.
func (c *capture) settingFacts() []evidence.Fact {
	var facts []evidence.Fact
	if c.scan == nil || c.entry == "" {
		return facts
	}
	script := c.scan.Entrypoint(c.entry)
	if script == nil {
		return facts
	}
	values := map[string][]string{}
	settings := c.scan.SettingsOf(c.entry, c.configHint())
	for _, s := range settings {
		if value := fmt.Sprint(s.Value); !slices.Contains(values[s.Role], value) {
			values[s.Role] = append(values[s.Role], value)
		}
	}
	told := map[string]bool{}
	for _, s := range settings {
		argument := slices.ContainsFunc(script.Arguments, func(a project.Argument) bool { return a.Role == s.Role })
		if !isFact(s.Role) || argument || told[s.Role] || len(values[s.Role]) != 1 || !scalar(s.Value) {
			continue
		}
		if f, ok := c.placed(s.Role, s.Value, s.Quote, s.Place); ok && stated(f) {
			told[s.Role] = true
			facts = append(facts, f)
		}
	}
	return facts
}

// configHint is the configuration that the handoff names, as the tree names files.
func (c *capture) configHint() string {
	return filepath.ToSlash(filepath.Clean(c.step.Run.Handoff.Inputs.Model.ConfigHint))
}

// relevantConfigs are the configuration files that the entry point reads: named by the handoff, by the default of its
// config argument, by @hydra.main, or by name in its text; and what those are built on. Any other file of the tree, such as what an earlier run left, says nothing
// about this training.
func (c *capture) relevantConfigs() []project.Config {
	var text string
	if c.entry != "" {
		data, err := os.ReadFile(filepath.Join(c.root, filepath.FromSlash(c.entry)))
		if err == nil {
			text = string(data)
		}
	}
	hint := c.configHint()
	var out []project.Config
	hydra := c.scan.HydraFiles(c.entry)
	for _, config := range c.scan.Configs {
		if slices.Contains(hydra, config.Path) || config.Path == hint || strings.Contains(text, filepath.Base(config.Path)) {
			out = append(out, config)
		}
	}
	return c.scan.Composed(out)
}

// scriptFacts are the defaults of the entry point's arguments.
func (c *capture) scriptFacts() []evidence.Fact {
	var facts []evidence.Fact
	if c.scan == nil || c.entry == "" {
		return facts
	}
	script := c.scan.Entrypoint(c.entry)
	if script == nil {
		return facts
	}
	for _, a := range script.Arguments {
		if !isFact(a.Role) || !a.HasDefault || a.Default == nil || a.Default == "" {
			continue
		}
		quote, place := a.Quote, a.Place
		if a.DefaultPlace != nil {
			quote, place = a.DefaultQuote, *a.DefaultPlace
		}
		if f, ok := c.placed(a.Role, a.Default, quote, place); ok {
			facts = append(facts, f)
		}
	}
	return facts
}

// placed makes a fact of something that the scan found at a place. A file that was not captured gives no fact.
func (c *capture) placed(field string, value any, quote string, place project.Place) (evidence.Fact, bool) {
	source, ok := c.bySource[filepath.Join(c.root, filepath.FromSlash(place.Path))]
	return evidence.Fact{Field: field, Value: value, Source: source, By: byServer, Quote: quote, Start: place.Start, End: place.End,
		Why: fmt.Sprintf("%s:%d", place.Path, place.Line)}, ok
}
