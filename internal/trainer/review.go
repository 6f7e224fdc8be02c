package trainer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/review"
	"github.com/trainwright/trainwright/internal/rundir"
)

// review reads the script and the modules of the project that it imports, runs none of them, and gives the files that it
// read; those that the phase did not write itself are inputs of its record.
func (p codegen) review(ctx context.Context, step *engine.Step, out *engine.Outcome, made *Codegen, written []string) ([]string, error) {
	refused, err := p.networkRefused(step)
	if err != nil {
		return nil, err
	}
	spec := review.Spec{Python: made.Python, Entry: made.Entrypoint, Root: made.Root, NoNetwork: refused, Lenient: !runs(step.Run.Handoff)}
	parted := false
	for _, a := range made.Arguments {
		spec.Passed = append(spec.Passed, a.Name)
		parted = parted || a.Field == "data.train_source" || a.Field == "data.dir"
	}
	if whole := step.Run.Handoff.Inputs.Data; parted && whole.ValSource == "" && whole.TestSource == "" && whole.TrainSource != "" {
		spec.Data = []string{whole.TrainSource}
	}
	if runsHere(step.Run.Handoff) || !runs(step.Run.Handoff) {
		spec.Installed = func(ctx context.Context, modules []string) (map[string]string, error) {
			return p.installed(ctx, *made, modules)
		}
	}
	report, err := review.Script(ctx, spec)
	if err != nil {
		return nil, err
	}
	for _, c := range report.Checks {
		out.Check(c.Name, c.OK, c.Why)
	}
	out.Findings = append(out.Findings, report.Findings...)
	if len(report.Files) > 0 {
		made.Imports = append([]string{}, report.Modules...)
	}
	if err := evidenceInAdvance(step.Run, out); err != nil {
		return nil, err
	}
	for _, path := range report.Files {
		if slices.Contains(written, path) {
			continue
		}
		if _, err := step.Track(path); err != nil {
			return nil, err
		}
	}
	return report.Files, nil
}

// installed asks the interpreter that will run for modules, in the script's folder and with the job's environment.
func (p codegen) installed(ctx context.Context, made Codegen, modules []string) (map[string]string, error) {
	_, found, err := p.t.Runtime.Preflight(ctx, local.PreflightSpec{Python: made.Python, WorkDir: filepath.Dir(made.Entrypoint), Entrypoint: made.Entrypoint, Imports: modules})
	missing := map[string]string{}
	for _, f := range found {
		if f.Code == "import_missing" && f.Where != nil {
			missing[f.Where.Field] = f.What
		}
	}
	return missing, err
}

// offline are the words by which a handoff refuses the network.
var offline = regexp.MustCompile(`(?i)\b(?:no|without(?: any)?|never use(?: the)?|do not use(?: the)?|don't use(?: the)?)\s+(?:network|internet|downloads?)\b|\boffline\b|\bnetwork(?:[_ ](?:allowed|access))?\s*[:=]\s*(?:false|no)\b|\b(?:do not|don't|never)\s+download\b`)

// networkRefused says whether the user's policy, the request or the handoff's constraints refuse the network.
func (p codegen) networkRefused(step *engine.Step) (bool, error) {
	if decision, _ := p.t.Authority.Policy.Allows(policy.Network); decision == policy.No {
		return true, nil
	}
	var request contract.TrainingRequest
	if err := step.ReadJSON(requestFile, &request); err != nil {
		return false, err
	}
	return request.Constraints.NetworkAllowed == contract.TristateFalse || slices.ContainsFunc(step.Run.Handoff.TaskContext.Constraints, offline.MatchString), nil
}

// maxEvidenceLook bounds the entries of code_save_dir that are looked at for evidence in advance.
const maxEvidenceLook = 20_000

// evidenceInAdvance tells of files in code_save_dir that only a job may write and none of this run's has written.
func evidenceInAdvance(run *engine.Run, out *engine.Outcome) error {
	const name = "no_evidence_in_advance"
	ours, judged, err := evidenceOfJobs(run)
	if err != nil {
		return err
	}
	if !judged || run.Handoff.Inputs.Checkpoint.ResumeCheckpoint != "" {
		out.Check(name, true, "not looked for: what a job left, or a checkpoint to be resumed, is there")
		return nil
	}
	var found []finding.Finding
	seen := 0
	err = filepath.WalkDir(run.CodeSaveDir, func(path string, d fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxEvidenceLook {
			return nil // what can't be read holds no evidence either
		}
		if d.IsDir() {
			if path != run.CodeSaveDir && (path == run.Workdir || path == run.File(smokeFolder) || slices.Contains(rundir.SkippedDirs, d.Name()) || isKnowledge(run, filepath.Join(path, "x"))) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(run.CodeSaveDir, path)
		if err != nil || !evidenceName(rel) || ours[path] != "" || isKnowledge(run, path) || len(found) == maxEvidenceTold {
			return nil
		}
		found = append(found, finding.Finding{Code: "evidence_in_advance", Severity: finding.Warning, What: run.Roots.Rel(path) + " has a name of run evidence and is there before a job has run",
			Where: &finding.Where{Path: path}, Expected: "no log, metrics, predictions or checkpoints before the job", Remedy: "move it away: it is not counted, and the job is not started where it would overwrite it"})
		return nil
	})
	out.Check(name, true, fmt.Sprintf("%d files with a name of run evidence in code_save_dir", len(found)))
	out.Findings = append(out.Findings, found...)
	return err
}

// maxEvidenceTold bounds the findings of evidence in advance.
const maxEvidenceTold = 5

// evidenceOfJobs are the files that the run's jobs left; judged is false where a job has not been judged yet.
func evidenceOfJobs(run *engine.Run) (ours map[string]string, judged bool, err error) {
	entries, _ := jobs.List([]string{run.File("jobs")})
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(e.Folder, outputsFile)); err != nil {
			return nil, false, nil
		}
	}
	ours, err = earlierOutputs(run)
	return ours, true, err
}
