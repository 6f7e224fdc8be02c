package tools

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/skills"
)

func TestRecallAnswersInTheContractsTerms(t *testing.T) {
	lib, _ := skill.NewLibrary(skill.Root{Label: "embedded", FS: skills.FS, Dir: "."})
	all := toolsWith(t, t.TempDir(), lib)
	for name, arguments := range map[string]string{
		"whole": `{"resource_retrieval_request": {"user_request": "split patients so that nothing leaks", "filters": {"domain": "general"}}}`,
		"short": `{"user_request": "split patients so that nothing leaks"}`,
		"words": `{"resource_retrieval_request": "split patients so that nothing leaks"}`,
	} {
		got, err := call[RecallOutput](t, all, "recall", arguments)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		result := got.Result
		if len(result.MatchedResources) == 0 || result.MatchedResources[0].Name != "grouped-splits" || !strings.Contains(result.MatchedResources[0].WhyMatched, "patient") {
			t.Fatalf("%s: %+v", name, result)
		}
		if content := result.MatchedResources[0].Content; !strings.Contains(content, "# Sources") || strings.Contains(content, "--- usage.md ---") {
			t.Errorf("%s: a summary was expected: %s", name, content)
		}
		if got.NextCall == nil {
			t.Fatalf("%s: no next call", name)
		}
	}
	named, err := call[RecallOutput](t, all, "recall", `{"resource_retrieval_request": {"user_request": "x", "content_request": "用法", "filters": {"domain": "气象", "keyword": "time-blocks"}}}`)
	if err != nil || len(named.Result.MatchedResources) != 2 || named.Result.MatchedResources[0].WhyMatched != "named_lookup" || named.Result.MatchedResources[1].WhyMatched != "dependency_of: time-blocks" ||
		!strings.Contains(named.Result.MatchedResources[0].Content, "--- usage.md ---") || named.NextCall != nil {
		t.Errorf("%+v, %v", named, err)
	}
	_, err = call[RecallOutput](t, all, "recall", `{}`)
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Remedy == "" {
		t.Errorf("%v", err)
	}
}
