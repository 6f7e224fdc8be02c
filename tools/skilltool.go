package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
)

// skillRest tells where the whole of a cut envelope is.
const skillRest = "the artifacts named in execution_result.artifacts and resources hold the whole; read run://<run_id>/<artifact>"

// envelopeSchema is the output schema that all skill tools share: the envelope of formats.md with execution_result's
// fields by name, the rest loosely. Nothing is required, since a refused call answers with findings alone.
func envelopeSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` +
		`"execution_result":{"type":"object","properties":{"skill":{"type":"string"},"status":{"type":"string","enum":["success","partial","failed","blocked"]},` +
		`"artifacts":{"type":"object","properties":{}},"observation":{"type":"object","properties":{"summary":{"type":"string"},"next_recommendation":{"type":"string"}}}}},` +
		`"run":{"type":"object","properties":{"run_id":{"type":"string"},"phase":{"type":"string"},"phase_status":{"type":"object","properties":{}},"next_call":{"type":"object","properties":{}}}},` +
		`"needs":{"type":"array","items":{"type":"object","properties":{}}},"findings":{"type":"array","items":{"type":"object","properties":{}}},` +
		`"resources":{"type":"array","items":{"type":"string"}}}}`)
}

// skillTool makes a tool that works on a run. Its arguments are step_handoff, run_id, request and wait_seconds beside
// the fields of In, whose names section lists; full says whether the input schema spells step_handoff out or gives its
// eight names and types only.
func skillTool[In any](_ Deps, name, sentence string, ann Annotations, section []string, full bool, fn func(context.Context, engine.Caller, contract.Call, In) (engine.Envelope, error)) Tool {
	return Tool{
		Name: name, Title: title(name), Description: sentence, Annotations: ann, Toolset: SetTrainer,
		InputSchema:  sync.OnceValue(func() json.RawMessage { return skillSchema(mustSchema(new(In)), section, full) }),
		OutputSchema: envelopeSchema,
		Call: func(ctx context.Context, caller engine.Caller, arguments json.RawMessage) (Result, error) {
			call, notes, err := contract.DecodeCall(arguments, section)
			if err != nil {
				return Result{}, err
			}
			var in In
			var more []finding.Finding
			if len(call.Section) > 0 {
				if more, err = contract.Decode(call.Section, &in); err != nil {
					return Result{}, err
				}
			}
			envelope, err := fn(ctx, caller, call, in)
			if err != nil {
				return Result{}, err
			}
			envelope.Findings = append(append(append([]finding.Finding{}, notes...), more...), envelope.Findings...)
			return envelopeResult(envelope)
		},
	}
}

// envelopeResult renders an envelope: the status line for people, the structured content, and a link for each resource.
func envelopeResult(e engine.Envelope) (Result, error) {
	structured, err := Fit(e, skillRest)
	if err != nil {
		return Result{}, err
	}
	return Result{Structured: structured, Text: envelopeText(e), Links: envelopeLinks(e)}, nil
}

func envelopeLinks(e engine.Envelope) []Link {
	links := make([]Link, len(e.Resources))
	for i, uri := range e.Resources {
		name := uri[strings.LastIndex(uri, "/")+1:]
		links[i] = Link{URI: uri, Name: name, MIME: linkType(name)}
	}
	return links
}

func envelopeText(e engine.Envelope) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", e.Run.RunID, e.ExecutionResult.Status, e.ExecutionResult.Observation.Summary)
	for _, n := range e.Needs {
		fmt.Fprintf(&b, "\nneeds %s: %s", n.Field, n.Why)
	}
	if next := e.Run.NextCall; next != nil {
		fmt.Fprintf(&b, "\nnext: %s", next.Tool)
	}
	return b.String()
}

func linkType(name string) string {
	switch {
	case strings.HasSuffix(name, ".md"):
		return "text/markdown"
	case strings.HasSuffix(name, ".json"):
		return "application/json"
	}
	return "text/plain"
}

// skillSchema joins the four arguments that all skill tools have with those of their own.
func skillSchema(own json.RawMessage, section []string, full bool) json.RawMessage {
	var mine struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(own, &mine); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	handoff := contract.ShallowHandoffSchema()
	if full {
		handoff = contract.FullHandoffSchema()
	}
	joined := map[string]json.RawMessage{
		"step_handoff": handoff,
		"run_id":       json.RawMessage(`{"type":"string","description":"The run to go on with, from the first answer; instead of step_handoff."}`),
		"request":      json.RawMessage(`{"type":"string","description":"The task in plain words, when there is no step_handoff."}`),
		"wait_seconds": json.RawMessage(`{"type":"integer","description":"How long to wait for a job, 0 to 600; 20 when left out."}`),
	}
	for _, name := range section {
		property, ok := mine.Properties[name]
		if _, taken := joined[name]; !ok || taken {
			panic(fmt.Sprintf("section argument %q must be a field of the input struct and none of the shared arguments", name))
		}
		joined[name] = property
	}
	encoded, err := marshal(map[string]any{"type": "object", "properties": joined})
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return encoded
}
