package project

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Weights of the ranking. They only have to order the scripts of one project; being named by the caller outweighs all.
const (
	scoreHint       = 100
	scoreTrainName  = 30
	scoreRunName    = 10
	scoreMain       = 15
	scoreArguments  = 10
	scoreRoles      = 10
	scoreTraining   = 12
	scoreFramework  = 8
	scoreOtherStage = -20
	scoreTest       = -60
	scoreDepth      = -1
)

var (
	trainName      = regexp.MustCompile(`^(train|training|trainer|finetune|fine_tune|pretrain|fit)([_-].*)?$|[_-](train|training|finetune|pretrain)$`)
	runName        = regexp.MustCompile(`^(main|__main__|run|launch|experiment)([_-].*)?$`)
	otherStageName = regexp.MustCompile(`^(eval|evaluate|evaluation|predict|infer|inference|test|export|convert|download|preprocess|prepare|plot|visuali[sz]e|demo|benchmark)([_-].*)?$`)
	testFile       = regexp.MustCompile(`^(test_.*|.*_test|conftest|setup|noxfile|tasks)\.py$`)
	testFolder     = regexp.MustCompile(`(^|/)(tests?|testing|docs?)/`)
	trainingCalls  = []string{".backward(", ".step(", ".fit(", "DataLoader(", "train_step", "zero_grad(", "GradientTape", "value_and_grad("}
	frameworks     = []string{"torch", "tensorflow", "keras", "jax", "flax", "lightning", "pytorch_lightning", "transformers", "sklearn", "xgboost", "lightgbm", "catboost", "paddle", "mxnet", "deepspeed", "accelerate"}
)

// readEntrypoint judges one script. It is nil where nothing speaks for its being run at all: no main block, no arguments,
// no telling name and no hint.
func readEntrypoint(s *script, hint string) (*Entrypoint, []finding.Finding) {
	arguments, findings := s.arguments()
	e := &Entrypoint{Path: s.path, Arguments: arguments, Functions: []string{}, Definitions: s.definitions(), HasMain: s.hasMain(), Imports: []string{}}
	for _, d := range e.Definitions {
		if d.Kind == "function" {
			e.Functions = append(e.Functions, d.Name)
		}
	}
	for _, module := range s.imports() {
		e.Imports = append(e.Imports, module.name)
	}
	base := strings.TrimSuffix(path.Base(s.path), ".py")
	named := trainName.MatchString(base) || runName.MatchString(base)
	if !e.HasMain && len(arguments) == 0 && !named && s.path != hint {
		return nil, findings
	}
	e.judge(s, base, hint)
	return e, findings
}

func (e *Entrypoint) because(score float64, reason string) {
	e.Score += score
	e.Reasons = append(e.Reasons, reason)
}

func (e *Entrypoint) judge(s *script, base, hint string) {
	if s.path == hint {
		e.because(scoreHint, "it was named as the entry point")
	}
	switch {
	case testFile.MatchString(path.Base(s.path)) || testFolder.MatchString(s.path):
		e.because(scoreTest, "it is a test, documentation or set-up file")
	case trainName.MatchString(base):
		e.because(scoreTrainName, "its name says training")
	case runName.MatchString(base):
		e.because(scoreRunName, "its name says it is run")
	case otherStageName.MatchString(base):
		e.because(scoreOtherStage, "its name says another stage than training")
	}
	if e.HasMain {
		e.because(scoreMain, "it has a __main__ block")
	}
	e.judgeArguments()
	e.judgeWords(s)
	if depth := strings.Count(s.path, "/"); depth > 0 {
		e.because(scoreDepth*float64(min(depth, 5)), fmt.Sprintf("it lies %d folders deep", depth))
	}
}

func (e *Entrypoint) judgeArguments() {
	if len(e.Arguments) == 0 {
		return
	}
	e.because(scoreArguments, fmt.Sprintf("it declares %d arguments", len(e.Arguments)))
	roles := 0
	for _, a := range e.Arguments {
		if strings.HasPrefix(a.Role, "training.") {
			roles++
		}
	}
	if roles > 0 {
		e.because(min(float64(2*roles), scoreRoles), fmt.Sprintf("%d of them set training parameters", roles))
	}
}

func (e *Entrypoint) judgeWords(s *script) {
	var words []string
	for _, word := range trainingCalls {
		if strings.Contains(s.src, word) {
			words = append(words, strings.Trim(word, ".("))
		}
	}
	if len(words) > 0 {
		e.because(min(float64(4*len(words)), scoreTraining), "it trains: "+strings.Join(words, ", "))
	}
	var used []string
	for _, framework := range frameworks {
		if slices.Contains(e.Imports, framework) {
			used = append(used, framework)
		}
	}
	if len(used) > 0 {
		e.because(scoreFramework, "it imports "+strings.Join(used, ", "))
	}
}

// rank orders entry points, best first; equal ones by path.
func rank(entrypoints []Entrypoint) {
	slices.SortFunc(entrypoints, func(a, b Entrypoint) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Path, b.Path))
	})
}
