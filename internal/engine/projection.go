package engine

import (
	"bytes"
	"context"
	"os"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Two files are projections of the records, written for orchestrators and read by nobody here: when they are missing or
// differ, they are made again.
const (
	manifestFile = "trainer_run_manifest.json"
	resultFile   = "execution_result.json"
)

// project writes the manifest of the run as the records tell it.
func (e *Engine) project(ctx context.Context, run *Run) error {
	state, err := run.standing(ctx)
	if err != nil {
		return err
	}
	_, err = e.refresh(run, manifestFile, run.manifest(state))
	return err
}

// refresh writes a projection when the file does not say it already. It returns whether a file that was there said
// something else.
func (e *Engine) refresh(run *Run, name string, v any) (differed bool, err error) {
	data, err := rundir.MarshalStable(v)
	if err != nil {
		return false, err
	}
	old, err := os.ReadFile(run.File(name))
	if err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	return err == nil, rundir.WriteFile(run.File(name), data)
}

func (r *Run) manifest(state standing) contract.RunManifest {
	m := contract.RunManifest{SchemaVersion: contract.RunSchemaVersion, RunID: r.ID, CodeSaveDir: r.CodeSaveDir, TrainerWorkdir: r.Workdir,
		Workdir: r.Workdir, HandoffPath: handoffFile, RequestPath: "training_request.json", PhaseStatus: state.status(r.Handoff),
		Artifacts: map[string]string{"manifest": manifestFile}, Handoffs: map[string]string{"step_handoff": handoffFile}, Blockers: []string{}, Assumptions: []string{}, Sources: []string{}}
	for key, path := range r.existing() {
		m.Artifacts[key] = r.Rel(path)
	}
	for i, p := range state.phases {
		if p.Record == nil || p.Status == contract.StatePending {
			continue
		}
		if !state.passed(i) {
			m.Blockers = append(m.Blockers, p.Record.Blockers...)
		}
		m.Assumptions = append(m.Assumptions, p.Record.Assumptions...)
	}
	sources, err := evidence.LoadSources(r.Workdir)
	if err != nil {
		return m
	}
	for _, s := range sources {
		m.Sources = append(m.Sources, strings.TrimSpace(s.ID+" "+s.Kind+" "+s.Ref))
	}
	return m
}

// settle brings both projections up to date with an answer, and says when someone had changed or removed one.
func (e *Engine) settle(ctx context.Context, run *Run, answer *Envelope) error {
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.project(ctx, run); err != nil {
		return err
	}
	answer.ExecutionResult.Artifacts = run.existing()
	if _, err := e.refresh(run, resultFile, struct {
		ExecutionResult contract.ExecutionResult `json:"execution_result"`
	}{answer.ExecutionResult}); err != nil {
		return err
	}
	answer.Resources = run.resources()
	return nil
}

// checkProjections notices a manifest that no longer says what the records say.
func (e *Engine) checkProjections(run *Run, state standing) []finding.Finding {
	data, err := rundir.MarshalStable(run.manifest(state))
	if err != nil {
		return nil
	}
	old, err := os.ReadFile(run.File(manifestFile))
	if state.firstOpen() == 0 || (err == nil && bytes.Equal(old, data)) {
		return nil
	}
	return []finding.Finding{{Code: "projection_rebuilt", Severity: finding.Note, What: manifestFile + " did not say what the phase records say, and was made again",
		Where: &finding.Where{Path: run.File(manifestFile)}, Remedy: "nothing to do; the records under phases/ are the truth"}}
}
