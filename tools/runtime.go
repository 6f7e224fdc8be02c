package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/launch"
)

// runtimeArguments are the names at the root of a call of runtime beside step_handoff, request and wait_seconds.
var runtimeArguments = []string{"launch", "job_id"}

// runtime is the tool runtime: any command as a job that belongs to no run.
func runtime(deps Deps) Tool {
	return Tool{
		Name: "runtime", Title: "Runtime", Toolset: SetRuntime,
		Description: "Runs any command as one durable job that belongs to no training run: checks what it needs, starts it once, waits wait_seconds and judges it by exit status and expected outputs. " +
			"Come back with job_id while it runs. For a training use trainer.",
		Annotations:  Annotations{Destructive: true, Idempotent: true, OpenWorld: true}, // a command may do anything, once
		InputSchema:  sync.OnceValue(runtimeSchema),
		OutputSchema: envelopeSchema,
		Call: func(ctx context.Context, caller engine.Caller, arguments json.RawMessage) (Result, error) {
			call, in, notes, err := decodeRuntime(arguments)
			if err != nil {
				return Result{}, err
			}
			t, err := deps.Trainer()
			if err != nil {
				return Result{}, err
			}
			commands := &launch.Commands{Roots: t.Engine.Roots, Runtime: t.Runtime, Authority: t.Authority, Now: t.Engine.Now}
			envelope, err := commands.Run(ctx, caller, call, in)
			if err != nil {
				return Result{}, err
			}
			envelope.Findings = append(notes, envelope.Findings...)
			structured, err := Fit(envelope, "the files named in execution_result.artifacts hold the whole; job_logs has the log")
			return Result{Structured: structured, Text: runtimeText(envelope)}, err
		},
	}
}

// decodeRuntime reads a call as a skill tool's. A job_id or a launch says enough without a handoff.
func decodeRuntime(arguments json.RawMessage) (contract.Call, launch.Input, []finding.Finding, error) {
	var in launch.Input
	call, notes, err := contract.DecodeCall(arguments, runtimeArguments)
	var refused *finding.Refused
	if errors.As(err, &refused) && len(call.Section) > 0 && !slices.ContainsFunc(refused.Findings, func(f finding.Finding) bool { return f.Code != "nothing_to_do" }) {
		notes = slices.DeleteFunc(notes, func(f finding.Finding) bool { return f.Code == "nothing_to_do" })
		err = nil
	}
	if err != nil {
		return call, in, nil, err
	}
	more, err := contract.Decode(call.Section, &in)
	return call, in, append(append([]finding.Finding{}, notes...), more...), err
}

// runtimeSchema is the schema of a skill tool without a run_id.
func runtimeSchema() json.RawMessage {
	var root map[string]any
	if err := json.Unmarshal(skillSchema(mustSchema(new(launch.Input)), runtimeArguments, false), &root); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	properties, _ := root["properties"].(map[string]any)
	delete(properties, "run_id")
	if handoff, ok := properties["step_handoff"].(map[string]any); ok {
		handoff["description"] = "The step as the orchestrator sent it (execution_skill " + launch.SkillRuntime + ")."
	}
	encoded, err := marshal(root)
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return encoded
}

func runtimeText(e engine.Envelope) string {
	text := e.ExecutionResult.Status + ": " + e.ExecutionResult.Observation.Summary
	if next := e.Run.NextCall; next != nil {
		text += "\nnext: " + next.Tool
	}
	return text
}
