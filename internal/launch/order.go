package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// describe works out what would run, keeps it in the job's folder, and says whether it can be run at all. What is written
// here is what `trainwright approve` shows.
func (e *errand) describe(ctx context.Context) (bool, error) {
	ok, err := e.place()
	if err != nil || !ok {
		return false, err
	}
	if ok, err = e.interpreter(ctx); err != nil || !ok {
		return false, err
	}
	if err := e.fill(); err != nil {
		return false, err
	}
	for name, v := range map[string]any{orderFile: e.order, contract.FileStepHandoff: e.handoff, contract.FileRuntimeRequest: e.request} {
		if err := rundir.WriteJSON(filepath.Join(e.folder, name), v); err != nil {
			return false, err
		}
	}
	return true, nil
}

// place finds the folder that the command starts in, and checks that the expected outputs lie where writing is allowed.
func (e *errand) place() (bool, error) {
	in := e.handoff.Inputs.Runtime
	dir, err := e.c.Roots.Writable(cmp.Or(in.CodeSaveDir, in.Workdir, "."))
	if err != nil {
		return e.refused(err)
	}
	e.workDir = dir
	for i, pattern := range e.order.ExpectedOutputs {
		target := pattern
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, filepath.FromSlash(pattern))
		}
		if _, err := filepath.Match(target, ""); err != nil {
			return e.refused(finding.Refuse(finding.Finding{Code: "output_pattern_malformed", Severity: finding.Error, What: fmt.Sprintf("%q is no path and no glob: %v", pattern, err),
				Where: &finding.Where{Field: fmt.Sprintf("launch.expected_outputs[%d]", i)}, Expected: "such as outputs/metrics.jsonl or checkpoints/*", Remedy: "correct it"}))
		}
		if _, err := e.c.Roots.Writable(fixedPart(target)); err != nil {
			return e.refused(err)
		}
	}
	return true, nil
}

// dedicated says whether the working folder is the step's own: then whatever is new in it afterwards is the job's. In the
// workspace's root others write too.
func (e *errand) dedicated() bool { return e.workDir != e.c.Roots.Workspace() }

// fixedPart is a pattern up to the first element with a wildcard.
func fixedPart(pattern string) string {
	for strings.ContainsAny(pattern, "*?[") {
		pattern = filepath.Dir(pattern)
	}
	return pattern
}

// refused takes a refusal as a finding that blocks the launch.
func (e *errand) refused(err error) (bool, error) {
	var r *finding.Refused
	if !errors.As(err, &r) {
		return false, err
	}
	e.findings = append(e.findings, r.Findings...)
	return false, nil
}

// pythonName is how a Python interpreter is called without a path.
var pythonName = regexp.MustCompile(`^python(3(\.\d+)?)?(\.exe)?$`)

// interpreter puts launch.environment.python in the place of a bare python, and first on PATH for any other program.
func (e *errand) interpreter(ctx context.Context) (bool, error) {
	e.argv = slices.Clone(e.order.Command)
	asked := e.order.Environment.Python
	if asked == "" {
		return true, nil
	}
	python, _, err := e.c.Runtime.ChoosePython(ctx, e.workDir, asked)
	if err != nil {
		return e.refused(err)
	}
	if pythonName.MatchString(e.argv[0]) {
		e.argv[0] = python.Path
		return true, nil
	}
	inherited := ""
	for _, pair := range e.c.Runtime.Environ() {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			inherited = value
		}
	}
	e.env = map[string]string{"PATH": filepath.Dir(python.Path) + string(filepath.ListSeparator) + inherited}
	return true, nil
}

// script is the file or the module that a Python command runs, as far as its first words tell.
func script(argv []string) (file, module string) {
	if len(argv) < 2 || !pythonName.MatchString(filepath.Base(argv[0])) {
		return "", ""
	}
	for i, word := range argv[1:] {
		switch {
		case word == "-m" && i+2 < len(argv):
			return "", argv[i+2]
		case word == "-u" || word == "-B" || word == "-O" || word == "-E" || word == "-s" || word == "-I":
		case strings.HasPrefix(word, "-"):
			return "", ""
		default:
			return word, ""
		}
	}
	return "", ""
}

// ask is what the launch wants, for the user's authority.
func (e *errand) ask() Ask {
	return Ask{ID: e.id, Command: Join(e.argv), Channel: Channel(e.handoff.Inputs.Runtime, e.order.Launch), Site: e.order.Site, Resources: e.order.Resources,
		WallTimeSeconds: WallTimeSeconds(e.handoff.Inputs.StepWallclockBudgetSeconds, e.order.Resources)}
}

// fill makes runtime_request.json.
func (e *errand) fill() error {
	in := e.handoff.Inputs
	given := in.Runtime.EnvironmentRequirements
	env := e.order.Environment
	entry, module := script(e.argv)
	workdir := cmp.Or(in.Runtime.TrainerWorkdir, e.folder)
	e.request = contract.RuntimeRequest{Task: cmp.Or(e.handoff.StepGoal, e.handoff.TaskContext.UserGoal, "run a command"), CodeSaveDir: e.workDir, TrainerWorkdir: workdir, Workdir: workdir,
		Entrypoint: cmp.Or(entry, module, e.argv[0]), Command: Join(e.argv), TrainCommand: Join(e.argv), ExecutionMode: cmp.Or(in.Runtime.ExecutionMode, contract.ModeUnknown), Hardware: accelerator(given),
		PackageRequirements: orNone(in.Runtime.PackageRequirements),
		EnvironmentRequirements: contract.EnvironmentRequirements{Python: cmp.Or(env.Python, word(given, "python")), Frameworks: []string{}, Accelerator: accelerator(given), Memory: word(given, "memory"),
			Modules: orNone(env.Modules), Conda: cmp.Or(env.Conda, word(given, "conda")), ContainerOrImage: cmp.Or(env.Container, word(given, "container"))},
		PreflightChecks: []string{"the program and its interpreter are there", "modules and packages are found", "named data and checkpoints are readable", "the working folder is writable", "resources are there", "no expected output exists yet"},
		ExpectedOutputs: orNone(e.order.ExpectedOutputs), InitCheckpoint: in.Checkpoint.InitCheckpoint, ResumeCheckpoint: in.Checkpoint.ResumeCheckpoint,
		ExpectedCheckpoints: []string{}, ExpectedMetrics: []string{}, LogDir: filepath.Join(e.workDir, "logs")}
	for _, pattern := range e.order.ExpectedOutputs {
		if isCheckpoint(pattern) {
			e.request.ExpectedCheckpoints = append(e.request.ExpectedCheckpoints, pattern)
		}
	}
	return Note(&e.request, e.ask())
}

// isCheckpoint says whether a path is where checkpoints are kept, or has the ending of one.
func isCheckpoint(name string) bool {
	slash := filepath.ToSlash(name)
	return strings.Contains("/"+slash, "/checkpoints/") || slices.Contains([]string{".pt", ".pth", ".ckpt", ".safetensors"}, path.Ext(slash))
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func word(given map[string]any, key string) string {
	text, _ := given[key].(string)
	return text
}

func accelerator(given map[string]any) string {
	switch asked := word(given, "accelerator"); asked {
	case contract.HardwareCPU, contract.HardwareCUDA, contract.HardwareDCU, contract.HardwareTPU:
		return asked
	case "none":
		return contract.HardwareCPU
	}
	return contract.HardwareUnknown
}

// note is what a runtime_request.json says beside the contract's fields, so that a person can be shown it.
type note struct {
	Channel         string         `json:"channel"`
	Site            string         `json:"site"`
	Resources       jobs.Resources `json:"resources"`
	WallTimeSeconds int            `json:"wall_time_seconds"`
}

// Note writes into a runtime request where the job is to run and what it may use, which ReadAsk reads again.
func Note(r *contract.RuntimeRequest, ask Ask) error {
	data, err := json.Marshal(note{ask.Channel, ask.Site, ask.Resources, ask.WallTimeSeconds})
	if err != nil {
		return err
	}
	if r.Unknown == nil {
		r.Unknown = contract.Unknown{}
	}
	return json.Unmarshal(data, &r.Unknown)
}

// ReadAsk reads from a runtime_request.json what the launch of run or job id wants. A request without Note's fields tells
// its channel by execution_mode alone. The error wraps fs.ErrNotExist where there is none.
func ReadAsk(file, id string) (Ask, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Ask{}, fmt.Errorf("read what is to be run: %w", err)
	}
	var request contract.RuntimeRequest
	var said note
	if err := errors.Join(json.Unmarshal(data, &request), json.Unmarshal(data, &said)); err != nil {
		return Ask{}, finding.Refuse(finding.Finding{Code: "json_unreadable", Severity: finding.Error, What: err.Error(), Where: &finding.Where{Path: file}, Expected: "the file as it was written",
			Remedy: "make the call again that wrote it"})
	}
	channel := cmp.Or(said.Channel, Channel(contract.Runtime{ExecutionMode: request.ExecutionMode}, Launch{}))
	return Ask{ID: id, Command: request.Command, Channel: channel, Site: said.Site, Resources: said.Resources, WallTimeSeconds: said.WallTimeSeconds}, nil
}

// created says whether the job's folder has its request, after which it is only ever followed.
func (e *errand) created() (bool, error) {
	_, err := os.Stat(filepath.Join(e.folder, jobs.RequestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
