package trainer

import (
	"context"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/coder"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
)

// Files of a run that phases exchange beside the canonical artifacts.
const (
	sourcesFile      = "sources.json"
	projectFile      = "project.json"
	candidatesFile   = "candidates.json"
	recallFile       = "recall.json"
	requestFile      = contract.FileTrainingRequest
	captureFile      = contract.FileSourceCapture
	factsFile        = "facts.json"
	knowledgeFile    = contract.FileTrainingKnowledge
	profileFile      = "data_profile.json"
	splitFile        = "split.json"
	dataManifestFile = contract.FileDataManifest
	dataPlanFile     = contract.FileDataPreparationPlan
	planFile         = "training_plan.json"
	planText         = contract.FileTrainingPlan
	codegenFile      = "codegen.json"
	coderFile        = contract.FileCoderTask
	coderHandoffFile = "coder_handoff.json"
	runtimeRequest   = contract.FileRuntimeRequest
	runtimeResult    = contract.FileRuntimeResult
	claimsFile       = "claims.json"
	reportFile       = contract.FileValidationReport
)

// Trainer is the skill with what its phases need. It holds no state of a run.
type Trainer struct {
	Engine  *engine.Engine
	Library *skill.Library
	Runtime *local.Runtime
	// Authority is what the user allows a job to do. New gives one without a policy: every effect is asked for.
	Authority launch.Authority
	// Coder lands changes in existing repositories, over the same engine.
	Coder *coder.Coder
	skill *engine.Skill
}

// New makes the trainer over a workspace and registers its skill with the engine it makes.
func New(roots *rundir.Roots, library *skill.Library, runtime *local.Runtime, now func() time.Time) *Trainer {
	t := &Trainer{Library: library, Runtime: runtime}
	t.skill = &engine.Skill{
		Name: contract.SkillTrainer, Walker: "trainer",
		Phases:    []engine.Phase{acquisition{t}, knowledge{t}, dataAndSplit{t}, strategyPhase{t}, codegen{t}, execution{t}, validation{t}},
		Attempted: contract.PhaseExecution,
		Resolves:  knowledge{}.Tool(),
		Last:      lastPhase,
		Canonical: []string{contract.FileStepHandoff, requestFile, captureFile, knowledgeFile, dataPlanFile, dataManifestFile, planText, coderFile,
			runtimeRequest, runtimeResult, reportFile, contract.FileExecutionResult, contract.FileRunManifest,
			sourcesFile, projectFile, candidatesFile, recallFile, factsFile, profileFile, splitFile, planFile, codegenFile, smokeFile, coderHandoffFile, claimsFile, curveFile},
		Artifacts: artifacts,
		Close:     closeSummary,
	}
	t.Engine = engine.New(roots, now, t.skill)
	t.Coder = coder.New(t.Engine)
	t.Authority = launch.Authority{Jobs: t.JobRoots, Runtime: runtime}
	return t
}

// lastPhase says where a step of this intent ends. An unknown intent stops after the plan and asks (settled.md).
func lastPhase(handoff contract.StepHandoff) string {
	switch handoff.Inputs.Runtime.ExecutionIntent {
	case contract.IntentGenerateCode:
		return contract.Phases[4]
	case contract.IntentRunLocal, contract.IntentRunRemote, contract.IntentValidateOnly:
		return contract.Phases[6]
	}
	return contract.Phases[3]
}

// runs says whether the intent lets the project's own code run.
func runs(handoff contract.StepHandoff) bool {
	switch handoff.Inputs.Runtime.ExecutionIntent {
	case contract.IntentRunLocal, contract.IntentRunRemote:
		return true
	}
	return false
}

// artifacts are the trainer's artifact keys of contracts.md.
func artifacts(run *engine.Run) map[string]string {
	out := map[string]string{"code_save_dir": run.CodeSaveDir, "trainer_workdir": run.Workdir, "workdir": run.Workdir}
	for key, name := range map[string]string{"handoff": contract.FileStepHandoff, "request": requestFile, "source_capture": captureFile,
		"manifest": contract.FileRunManifest, "training_knowledge": knowledgeFile, "data_preparation_plan": dataPlanFile,
		"data_manifest": dataManifestFile, "training_plan": planText, "coder_task_description": coderFile,
		"runtime_request": runtimeRequest, "runtime_result": runtimeResult, "validation_report": reportFile} {
		out[key] = run.File(name)
	}
	if entry := generatedEntrypoint(run); entry != "" {
		out["generated_entrypoint"] = entry
	}
	return out
}

// Walk runs every open phase up to where the intent ends, as far as evidence reaches.
func (t *Trainer) Walk(ctx context.Context, caller engine.Caller, call contract.Call, _ WalkInput) (engine.Envelope, error) {
	return t.Engine.Walk(ctx, caller, t.skill, call)
}

// WalkInput is what the trainer tool takes beside the handoff.
type WalkInput struct {
	Resolve []engine.Resolve `json:"resolve,omitempty" jsonschema_description:"What holds of a handoff that says something else than the run."`
}

// phase runs one phase on the call.
func (t *Trainer) phase(ctx context.Context, caller engine.Caller, n int, call contract.Call) (engine.Envelope, error) {
	return t.Engine.RunPhase(ctx, caller, t.skill, contract.Phases[n], call)
}

// InputAcquisition runs phase 0.
func (t *Trainer) InputAcquisition(ctx context.Context, caller engine.Caller, call contract.Call, _ AcquisitionInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 0, call)
}

// TrainingKnowledge runs phase 1.
func (t *Trainer) TrainingKnowledge(ctx context.Context, caller engine.Caller, call contract.Call, _ KnowledgeInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 1, call)
}

// DataAndSplit runs phase 2.
func (t *Trainer) DataAndSplit(ctx context.Context, caller engine.Caller, call contract.Call, _ DataAndSplitInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 2, call)
}

// TrainingStrategy runs phase 3.
func (t *Trainer) TrainingStrategy(ctx context.Context, caller engine.Caller, call contract.Call, _ StrategyInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 3, call)
}

// Codegen runs phase 4.
func (t *Trainer) Codegen(ctx context.Context, caller engine.Caller, call contract.Call, _ CodegenInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 4, call)
}

// Execution runs phase 5.
func (t *Trainer) Execution(ctx context.Context, caller engine.Caller, call contract.Call, _ ExecutionInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 5, call)
}

// Validation runs phase 6.
func (t *Trainer) Validation(ctx context.Context, caller engine.Caller, call contract.Call, _ ValidationInput) (engine.Envelope, error) {
	return t.phase(ctx, caller, 6, call)
}

// JobRoots are the folders under which the workspace's jobs live: each run's own, and the one for jobs without a run.
func (t *Trainer) JobRoots() ([]string, error) {
	roots := []string{filepath.Join(t.Engine.Roots.Workspace(), ".onescience", "jobs")}
	dirs, err := t.Engine.Workdirs()
	for _, dir := range dirs {
		roots = append(roots, filepath.Join(dir, "jobs"))
	}
	return roots, err
}

// skipped is the outcome of a phase that the intent leaves out.
func skipped(step *engine.Step, why string) (engine.Outcome, error) {
	out := engine.Outcome{Status: contract.StateSkipped, Summary: why}
	_, err := step.Track(contract.FileStepHandoff)
	out.Decide()
	return out, err
}
