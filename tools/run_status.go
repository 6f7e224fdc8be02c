package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// RunStatusInput asks for one run.
type RunStatusInput struct {
	RunID string `json:"run_id" jsonschema:"required" jsonschema_description:"The run, e.g. r-20261130-7f3a; run_list has them."`
	Plot  bool   `json:"plot,omitempty" jsonschema_description:"Also show the loss curve so far, as a picture."`
}

// standing is where a run stands, with the picture of its training where that was asked for.
type standing struct {
	engine.Envelope
	curve []byte
}

// runStatus is the tool run_status. It answers with the envelope of a skill tool, so that an agent goes on from it as
// from any other answer.
func runStatus(deps Deps) Tool {
	return typedTool("run_status",
		"Tells where one run stands without changing it: its phases and gates, what it waits for, and the very next call; with plot also the loss curve, while the job runs too.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in RunStatusInput) (standing, error) {
			if in.RunID == "" {
				return standing{}, missing("run_id", "the id of a run", "run_list has the ids")
			}
			e, err := deps.engine()
			if err != nil {
				return standing{}, err
			}
			envelope, err := e.RunStatus(ctx, in.RunID)
			if err != nil || !in.Plot {
				return standing{Envelope: envelope}, err
			}
			return withCurve(e.Roots, envelope)
		},
		more[standing]{toolset: SetTrainer, rest: skillRest, schema: envelopeSchema,
			text:  func(s standing) string { return envelopeText(s.Envelope) },
			links: func(s standing) []Link { return envelopeLinks(s.Envelope) },
			images: func(s standing) []Image {
				if s.curve == nil {
					return nil
				}
				return []Image{{MIME: "image/png", Data: s.curve}}
			}})
}

// reportCurve is the picture that phase 6 leaves beside its report.
const reportCurve = "loss_curve.png"

// withCurve adds the report's own picture where there is one, else one of the metrics as far as they have been written. A
// run without any has a finding instead.
func withCurve(roots *rundir.Roots, envelope engine.Envelope) (standing, error) {
	out := standing{Envelope: envelope}
	if slices.Contains(envelope.Resources, "run://"+envelope.Run.RunID+"/"+reportCurve) {
		picture, err := os.ReadFile(filepath.Join(envelope.ExecutionResult.Artifacts["trainer_workdir"], reportCurve))
		if err == nil {
			out.curve = picture
			return out, nil
		}
	}
	log, _, err := loadMetrics(roots, envelope.Run.RunID, "")
	if err == nil {
		out.curve, err = metrics.Plot(log, nil, metrics.PlotOptions{Title: envelope.Run.RunID})
	}
	var refused *finding.Refused
	if !errors.As(err, &refused) {
		return out, err
	}
	f := finding.Finding{Code: "no_curve_yet", Severity: finding.Note, What: fmt.Sprintf("run %s has no values to draw yet: %s", envelope.Run.RunID, refused.Findings[0].What),
		Where: refused.Findings[0].Where, Expected: "outputs/metrics.jsonl with at least one value", Remedy: "call run_status with plot again when the job has logged one; job_logs shows what it does"}
	out.Findings = append(slices.Clone(out.Findings), f)
	return out, nil
}
