package tools

import (
	"context"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/recall"
)

// RecallInput asks the resource skills.
type RecallInput struct {
	Request     contract.RetrievalRequest `json:"resource_retrieval_request,omitzero"`
	UserRequest string                    `json:"user_request,omitempty" jsonschema_description:"Short form: the request in words."`
}

// RecallOutput is what matched. The content of a match is all that a caller may use of it.
type RecallOutput struct {
	Result   contract.RetrievalResult `json:"resource_retrieval_result"`
	Findings []finding.Finding        `json:"findings"`
	NextCall *engine.NextCall         `json:"next_call,omitempty"` // all of the best card
}

// recallTool is the tool recall.
func recallTool(deps Deps) Tool {
	return typedTool("recall",
		"Searches the resource skills (data formats and their traps, splits that do not leak, metrics and baselines, optimizer settings, signs of failure; earth, biology, materials, cfd, general) and returns the matching cards with why they match.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in RecallInput) (RecallOutput, error) {
			out := RecallOutput{Findings: []finding.Finding{}}
			if in.Request.UserRequest == "" {
				in.Request.UserRequest = in.UserRequest
			}
			if in.Request.UserRequest == "" && in.Request.Filters.Keyword == "" {
				return out, missing("resource_retrieval_request.user_request", "what is wanted, in words", `send {"user_request": "how do I split station data?"}`)
			}
			if in.Request.ContentRequest == "" {
				in.Request.ContentRequest = "summary" // tokens are the user's; everything is one call away
			}
			t, err := deps.Trainer()
			if err != nil {
				return out, err
			}
			result, found, err := recall.Retrieve(ctx, t.Library, in.Request)
			if err != nil {
				return out, err
			}
			out.Result, out.Findings = result, append(out.Findings, found...)
			out.NextCall = narrower(in.Request, result)
			return out, nil
		},
		more[RecallOutput]{toolset: SetSkills, rest: "ask with filters.keyword, the exact name of one card", text: func(o RecallOutput) string { return o.Result.QuerySummary },
			schema: brief[RecallOutput]("resource_retrieval_result")})
}

// narrower is the call that reads all of the best card.
func narrower(request contract.RetrievalRequest, result contract.RetrievalResult) *engine.NextCall {
	if len(result.MatchedResources) == 0 || request.Filters.Keyword != "" {
		return nil
	}
	best := result.MatchedResources[0]
	again := map[string]any{"user_request": request.UserRequest, "content_request": "everything", "filters": map[string]any{"keyword": best.Name}}
	return &engine.NextCall{Tool: "recall", Arguments: map[string]any{"resource_retrieval_request": again}}
}
