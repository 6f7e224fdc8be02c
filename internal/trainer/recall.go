package trainer

import (
	"context"
	"slices"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/recall"
	"github.com/trainwright/trainwright/internal/rundir"
)

// recalled is what one phase asked of the resource skills and what came back.
type recalled struct {
	file     recallRecord
	findings []finding.Finding
}

// recallRecord is recall.json: the query of phase 0 with its result. What later phases asked is in their records.
type recallRecord struct {
	Phase   string                    `json:"phase"`
	Request contract.RetrievalRequest `json:"resource_retrieval_request"`
	Result  contract.RetrievalResult  `json:"resource_retrieval_result"`
}

// recall asks the resource skills before phase 0. An empty library and a query without a match are recorded as missing.
func (t *Trainer) recall(ctx context.Context, step *engine.Step) (recalled, *rundir.RecallUse, error) {
	return t.ask(ctx, step, contract.PhaseInputAcquisition, "everything")
}

// recallFor asks for what a later phase's goal needs, and says which matches its facts cite.
func (t *Trainer) recallFor(ctx context.Context, step *engine.Step, phase, content string, facts []evidence.Fact, sources []evidence.Source) (*rundir.RecallUse, error) {
	got, use, err := t.ask(ctx, step, phase, content)
	if err != nil {
		return nil, err
	}
	for _, m := range got.file.Result.MatchedResources {
		cited := slices.ContainsFunc(sources, func(s evidence.Source) bool {
			return s.Ref == m.Path && slices.ContainsFunc(facts, func(f evidence.Fact) bool { return f.Source == s.ID })
		})
		if cited {
			use.Used = append(use.Used, m.Name)
			use.Unused = slices.DeleteFunc(use.Unused, func(name string) bool { return name == m.Name })
		}
	}
	return use, nil
}

func (t *Trainer) ask(ctx context.Context, step *engine.Step, phase, content string) (recalled, *rundir.RecallUse, error) {
	h := step.Run.Handoff
	request := contract.RetrievalRequest{UserRequest: words(h), TaskStateSummary: "before " + phase, ContentRequest: content}
	if domain := knownDomain(text(h.Inputs.Data.DomainMetadata["domain"])); domain != contract.DomainUnknown {
		request.Filters.Domain = domain
	}
	result, findings, err := recall.Retrieve(ctx, t.Library, request)
	if err != nil {
		return recalled{}, nil, err
	}
	use := &rundir.RecallUse{Used: []string{}, Unused: []string{}, Missing: []string{}}
	for _, m := range result.MatchedResources {
		use.Unused = append(use.Unused, m.Name)
	}
	if len(result.MatchedResources) == 0 {
		use.Missing = append(use.Missing, result.QuerySummary)
	}
	return recalled{file: recallRecord{Phase: phase, Request: request, Result: result}, findings: findings}, use, nil
}

// words are the user's own words of a handoff.
func words(h contract.StepHandoff) string {
	for _, text := range []string{h.TaskContext.UserGoal, h.StepGoal, h.Inputs.InstructionSource.Text} {
		if text != "" {
			return text
		}
	}
	return h.StepID
}
