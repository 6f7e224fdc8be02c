package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
)

// library makes a library with one resource skill of the given files and one executor skill that recall must not look at.
func library(t *testing.T, pairs ...string) *skill.Library {
	t.Helper()
	fsys := fstest.MapFS{
		"models/SKILL.md":   {Data: []byte("---\nname: models\ndescription: d\nmetadata: {type: resource}\n---\n")},
		"executor/SKILL.md": {Data: []byte("---\nname: executor\ndescription: d\nmetadata: {type: executor}\n---\n")},
		"executor/assets/earth/model/pangu/metadata.json": {Data: []byte(`{"name": "pangu"}`)},
	}
	for i := 0; i < len(pairs); i += 2 {
		fsys["models/assets/"+pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	lib, findings := skill.NewLibrary(skill.Root{Label: "test", FS: fsys, Dir: "."})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return lib
}

// atlas is a small library: a model with components, one of the same name in another domain, and a data set.
func atlas(t *testing.T) *skill.Library {
	return library(t,
		"earth/model/Pangu-Weather/metadata.json", `{"name": "Pangu_Weather", "type": "model", "domain": "climate", "version": "1", "description": "A forecast model.", "tags": ["forecast", "ERA5"], "limitations": ["0.25 degree only"]}`,
		"earth/model/Pangu-Weather/spec.md", "# Overview\ntext\n\n# key_dependencies\n- `EarthAttention3D`: attention (see [docs](x))\n* [PatchRecovery](../PatchRecovery)\n1. Missing Part - not in the library\n## nested\n- era5: the data\n# Other\n- FNO\n",
		"earth/model/Pangu-Weather/usage.md", "How to use it.\n",
		"earth/model/Pangu-Weather/workflow_planning.md", "Plan it.\n",
		"earth/component/EarthAttention3D/metadata.json", `{"name": "EarthAttention3D", "type": "component"}`,
		"earth/component/EarthAttention3D/spec.md", "attention\n",
		"earth/component/PatchRecovery/metadata.json", `{"name": "PatchRecovery"}`,
		"earth/dataset/era5/metadata.json", `{"name": "ERA5", "type": "dataset", "tags": "reanalysis, 再分析"}`,
		"cfd/model/FNO/metadata.json", `{"name": "FNO", "type": "model", "tags": ["operator"]}`,
		"cfd/component/PatchRecovery/metadata.json", `{"name": "PatchRecovery"}`,
		"bio/model/broken/metadata.json", `{"name": `,
		"astro/model/nova/metadata.json", `{"name": "nova"}`,
	)
}

func retrieve(t *testing.T, lib *skill.Library, req contract.RetrievalRequest) (contract.RetrievalResult, []finding.Finding) {
	t.Helper()
	result, findings, err := Retrieve(context.Background(), lib, req)
	if err != nil {
		t.Fatal(err)
	}
	var relevant []finding.Finding // the broken card is told every time
	for _, f := range findings {
		if f.Code != "card_malformed" {
			relevant = append(relevant, f)
		}
	}
	return result, relevant
}

func TestRetrieve(t *testing.T) {
	lib := atlas(t)
	filter := func(domain, keyword string) contract.RetrievalFilters {
		return contract.RetrievalFilters{Domain: domain, Keyword: keyword}
	}
	pangu := []string{"Pangu_Weather named_lookup", "EarthAttention3D dependency_of: Pangu_Weather", "PatchRecovery dependency_of: Pangu_Weather", "ERA5 dependency_of: Pangu_Weather"}
	byName := append([]string{"Pangu_Weather name_in_request"}, pangu[1:]...)
	tests := []struct {
		name    string
		request contract.RetrievalRequest
		want    []string // name and why
		status  string
		domain  string
		missing []string
	}{
		{"by name", contract.RetrievalRequest{UserRequest: "x", Filters: filter("earth", "pangu weather")}, pangu, "partial", "earth", []string{"Missing Part"}},
		{"under another spelling of the domain", contract.RetrievalRequest{UserRequest: "x", Filters: filter("气象", "Pangu-Weather")}, pangu, "partial", "earth", []string{"Missing Part"}},
		{"without a domain", contract.RetrievalRequest{UserRequest: "x", Filters: filter("", "FNO")}, []string{"FNO named_lookup"}, "success", "cfd", nil},
		{"a name in two domains", contract.RetrievalRequest{UserRequest: "x", Filters: filter("fluid", "patchrecovery")}, []string{"PatchRecovery named_lookup"}, "success", "cfd", nil},
		{"in the wrong domain", contract.RetrievalRequest{UserRequest: "x", Filters: filter("bio", "FNO")}, nil, "failed", "biology", []string{"FNO", "x"}},
		{"a domain of the library's own", contract.RetrievalRequest{UserRequest: "x", Filters: filter("Astro", "nova")}, []string{"nova named_lookup"}, "success", "astro", nil},
		{"an unknown domain is no filter", contract.RetrievalRequest{UserRequest: "x", Filters: filter("unknown", "nova")}, []string{"nova named_lookup"}, "success", "astro", nil},
		{"keyword misses, words match", contract.RetrievalRequest{UserRequest: "train an FNO", Filters: filter("", "DeepONet")}, []string{"FNO name_in_request"}, "partial", "cfd", []string{"DeepONet"}},
		{"words of the request", contract.RetrievalRequest{UserRequest: "Fine-tune pangu-weather on my data"}, byName, "partial", "earth", []string{"Missing Part"}},
		{"words of the content request", contract.RetrievalRequest{UserRequest: "x", ContentRequest: "usage of FNO"}, []string{"FNO name_in_request"}, "success", "cfd", nil},
		{"Chinese around a name", contract.RetrievalRequest{UserRequest: "使用FNO模型训练"}, []string{"FNO name_in_request"}, "success", "cfd", nil},
		{"part of a word is none", contract.RetrievalRequest{UserRequest: "FNOx and innovation"}, nil, "failed", "unknown", []string{"FNOx and innovation"}},
		{"tags come after names", contract.RetrievalRequest{UserRequest: "operator learning with ERA5 reanalysis"}, []string{"ERA5 name_in_request", "FNO tag_in_request: operator", "Pangu_Weather tag_in_request: era5", "EarthAttention3D dependency_of: Pangu_Weather", "PatchRecovery dependency_of: Pangu_Weather"}, "partial", "unknown", []string{"Missing Part"}},
		{"a Chinese tag", contract.RetrievalRequest{UserRequest: "下载再分析数据"}, []string{"ERA5 tag_in_request: 再分析"}, "success", "earth", nil},
		{"the domain filters words too", contract.RetrievalRequest{UserRequest: "ERA5 with FNO", Filters: filter("cfd", "")}, []string{"FNO name_in_request"}, "success", "cfd", nil},
		{"a broken card by its folder", contract.RetrievalRequest{UserRequest: "x", Filters: filter("生信", "broken")}, []string{"broken named_lookup"}, "success", "biology", nil},
		{"nothing asked", contract.RetrievalRequest{}, nil, "failed", "unknown", []string{""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result, findings := retrieve(t, lib, test.request)
			var got []string
			for _, m := range result.MatchedResources {
				got = append(got, m.Name+" "+m.WhyMatched)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || result.Status != test.status || result.DetectedDomain != test.domain {
				t.Errorf("status %s, domain %s, %s\n(-want +got):\n%s", result.Status, result.DetectedDomain, result.QuerySummary, diff)
			}
			if diff := cmp.Diff(test.missing, Missing(test.request, findings)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResourceFields(t *testing.T) {
	result, _ := retrieve(t, atlas(t), contract.RetrievalRequest{UserRequest: "train it", ContentRequest: "usage and planning", Filters: contract.RetrievalFilters{Domain: "weather", Keyword: "pangu-weather"}})
	want := contract.MatchedResource{Type: "model", Path: "skill://models/assets/earth/model/Pangu-Weather", Name: "Pangu_Weather", WhyMatched: contract.WhyNamedLookup, Limitations: "0.25 degree only",
		Content: "Pangu_Weather: A forecast model.\n\n--- usage.md ---\nHow to use it.\n\n--- workflow_planning.md ---\nPlan it."}
	if diff := cmp.Diff(want, result.MatchedResources[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := result.MatchedResources[1]; got.Type != "component" || got.Limitations != "it has no readable usage.md; it has no readable workflow_planning.md" || got.Content != "" {
		t.Errorf("%+v", got)
	}
	if got := result.MatchedResources[2]; got.Type != "component" { // from its folder
		t.Errorf("%+v", got)
	}
	if result.TaskIntent != "training" || !strings.HasPrefix(result.QuerySummary, "4 of 8 cards matched in the domain earth: Pangu_Weather (named_lookup), ") {
		t.Errorf("%s, %s", result.TaskIntent, result.QuerySummary)
	}
}

func TestEmptyLibraries(t *testing.T) {
	for name, lib := range map[string]*skill.Library{"nil": nil, "zero": {}, "no assets": library(t), "stray files": library(t, "README.md", "x", "earth/notes.md", "x")} {
		result, findings := retrieve(t, lib, contract.RetrievalRequest{UserRequest: "train FNO"})
		if result.Status != contract.StatusFailed || !strings.Contains(result.QuerySummary, "holds 0 cards") || result.MatchedResources == nil || len(findings) != 1 || findings[0].Code != CodeNoMatch || findings[0].Severity != finding.Note {
			t.Errorf("%s: %+v, %v", name, result, findings)
		}
	}
}

func TestBrokenMetadataIsTold(t *testing.T) {
	_, findings, err := Retrieve(context.Background(), atlas(t), contract.RetrievalRequest{UserRequest: "FNO"})
	if err != nil || len(findings) != 1 || findings[0].Code != "card_malformed" || findings[0].Where.Path != "skill://models/assets/bio/model/broken/metadata.json" {
		t.Errorf("%v, %v", findings, err)
	}
}

func TestContentIsBudgeted(t *testing.T) {
	var pairs []string
	for i := range MaxMatches + 3 {
		dir := fmt.Sprintf("earth/model/m%02d/", i)
		pairs = append(pairs, dir+"metadata.json", `{"tags": ["common"]}`, dir+"spec.md", strings.Repeat("ä", 20_000))
	}
	pairs = append(pairs, "earth/model/small/metadata.json", `{"name": "small", "tags": ["common"]}`, "earth/model/small/spec.md", "short")
	lib := library(t, pairs...)
	result, findings := retrieve(t, lib, contract.RetrievalRequest{UserRequest: "all common ones, small too"})
	total := 0
	for _, m := range result.MatchedResources {
		total += len(m.Content)
	}
	if len(result.MatchedResources) != MaxMatches || len(findings) != 1 || findings[0].Code != CodeCut || total > contentBudget+MaxMatches*300 || total < contentBudget/2 {
		t.Errorf("%d matches, %d bytes, %v", len(result.MatchedResources), total, findings)
	}
	if first := result.MatchedResources[0]; first.Name != "small" || strings.Contains(first.Limitations, "cut:") {
		t.Errorf("%+v", first)
	}
	last := result.MatchedResources[MaxMatches-1]
	if !strings.Contains(last.Limitations, "cut: ") || !strings.HasSuffix(last.Content, "]") || strings.Contains(last.Content, "\ufffd") {
		t.Errorf("%.100s … %s", last.Content, last.Limitations)
	}
	result, _ = retrieve(t, lib, contract.RetrievalRequest{UserRequest: "x", Filters: contract.RetrievalFilters{Keyword: "m00"}})
	if n := len(result.MatchedResources[0].Content); n < cardBudget || n > cardBudget+300 {
		t.Errorf("one card has %d bytes", n)
	}
}

func TestRetrieveIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Retrieve(ctx, atlas(t), contract.RetrievalRequest{UserRequest: "FNO"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNormalizeDomain(t *testing.T) {
	tests := map[string]string{"earth": "earth", "Climate": "earth", "weather": "earth", "METEOROLOGY": "earth", "气象": "earth", "Earth-Science": "earth",
		"biology": "biology", "bio": "biology", "biosciences": "biology", "生信": "biology", "materials": "materials", "matchem": "materials", "chemistry": "materials", "材料": "materials",
		"cfd": "cfd", "fluid": "cfd", "流体": "cfd", "ＣＦＤ": "cfd", "general-science": "general-science", "general_science": "general-science", " general ": "general-science",
		"": "", "unknown": "", "astro": "", "earthly": ""}
	for name, want := range tests {
		if got := NormalizeDomain(name); got != want {
			t.Errorf("NormalizeDomain(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestWantedFiles(t *testing.T) {
	all := []string{"spec.md", "usage.md", "workflow_planning.md"}
	tests := map[string][]string{"": all, "everything": all, "usage and everything": all, "whatever": all, "Usage": {"usage.md"}, "interface or config": {"spec.md"}, "planning": {"workflow_planning.md"},
		"用法": {"usage.md"}, "给我配置和规划": {"spec.md", "workflow_planning.md"}, "全部内容": all, "reuse": all}
	for request, want := range tests {
		if diff := cmp.Diff(want, wantedFiles(request)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", request, diff)
		}
	}
}

func TestIntentAndDomainOfWords(t *testing.T) {
	tests := []struct{ text, intent, domain string }{
		{"Fine-tune a weather model", "fine_tuning", "earth"}, {"training of a CFD surrogate", "training", "cfd"}, {"推理一个气象模型", "inference", "earth"}, {"constrained optimisation", "unknown", ""},
		{"climate and chemistry", "unknown", ""}, {"a general question", "unknown", ""}, {"general science", "unknown", "general-science"},
	}
	for _, test := range tests {
		if intent, domain := intentOf(fold(test.text)), detectDomain(fold(test.text)); intent != test.intent || domain != test.domain {
			t.Errorf("%q: %s, %q", test.text, intent, domain)
		}
	}
}

func TestDependencyNames(t *testing.T) {
	tests := map[string]string{"`A_b`: text": "A_b", "[A](b.md) text": "A", "A-b: text": "A-b", "A b (text)": "A b", "A b - text": "A b", "**A**": "A", "A：说明": "A", "": "", "A — text": "A"}
	for item, want := range tests {
		if got := dependencyName(item); got != want {
			t.Errorf("%q: %q, want %q", item, got, want)
		}
	}
}
