package trainer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/project"
)

// The domain follows from words, packages and files; where little speaks for one or two are level it stays unknown.
func TestDomainIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		goal, data string
		packages   []string
		stated     string
		want       string
		status     string
		code       string
	}{
		"climate in words":      {goal: "Forecast rainfall and humidity of weather stations", want: contract.DomainEarth, status: evidence.Inferred},
		"in Chinese":            {goal: "用气象站的降水数据训练", want: contract.DomainEarth, status: evidence.Inferred},
		"proteins":              {goal: "Classify protein sequences by enzyme class", want: contract.DomainBiology, status: evidence.Inferred},
		"crystals":              {goal: "Predict the band gap of crystals", want: contract.DomainMaterials, status: evidence.Inferred},
		"flow":                  {goal: "A surrogate of turbulence around an airfoil", want: contract.DomainCFD, status: evidence.Inferred},
		"a package and a file":  {goal: "Train it", data: "cells.h5ad", packages: []string{"scanpy"}, want: contract.DomainBiology, status: evidence.Inferred},
		"one word is little":    {goal: "Predict the temperature of the gene", want: contract.DomainUnknown},
		"two level domains":     {goal: "Ocean weather and protein genes", want: contract.DomainUnknown},
		"nothing":               {goal: "Predict y from x", want: contract.DomainUnknown},
		"one word many times":   {goal: "weather weather weather weather", want: contract.DomainUnknown},
		"stated":                {goal: "Predict y from x", stated: "biology", want: contract.DomainBiology, status: evidence.Confirmed},
		"stated otherwise":      {goal: "Predict y from x", stated: "climate", want: contract.DomainEarth, status: evidence.Inferred},
		"stated and doubted":    {goal: "Forecast rainfall, humidity and ozone of the atmosphere", stated: "biology", want: contract.DomainBiology, status: evidence.Confirmed, code: "domain_contradicted"},
		"stated and unheard of": {goal: "Forecast rainfall and humidity", stated: "astrology", want: contract.DomainUnknown, code: "domain_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			run := &engine.Run{Handoff: contract.StepHandoff{StepGoal: c.goal}}
			if c.stated != "" {
				run.Handoff.Inputs.Data.DomainMetadata = map[string]any{"domain": c.stated}
			}
			var view projectView
			for _, p := range c.packages {
				view.Dependencies = append(view.Dependencies, project.Dependency{Name: p, Place: project.Place{Path: "requirements.txt", Line: 1}})
			}
			dir := t.TempDir()
			handoff := `"domain": "` + c.stated + `"`
			source, err := evidence.Capture(dir, nil, evidence.CaptureInput{Kind: evidence.KindHandoff, Ref: "step_handoff.json", Text: handoff}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			l := newLedger(dir, []evidence.Source{source})
			if c.data != "" {
				l.facts = append(l.facts, evidence.Fact{ID: "f1", Field: "data.train_source", Value: c.data, Status: evidence.Inferred, InForce: true})
			}
			l.addDomain(run, view)
			l.settle()
			if got := domainOf(l.facts); got != c.want {
				t.Fatalf("%s, want %s: %+v", got, c.want, l.findings)
			}
			if f := holding(l.facts, domainField); f != nil && f.Status != c.status {
				t.Errorf("%+v", f)
			}
			if c.code != "" {
				wantCode(t, l.findings, c.code)
			} else if len(l.findings) > 0 {
				t.Errorf("findings %+v", l.findings)
			}
		})
	}
}

// The checklist of the domain: what the handoff gives, what the agent finds, what the data spans, and what is missing.
func TestDomainMetadata(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	if f.handoff.Inputs.Data.DomainMetadata == nil {
		f.handoff.Inputs.Data.DomainMetadata = map[string]any{}
	}
	f.handoff.Inputs.Data.DomainMetadata["domain"] = "biology"
	f.handoff.Inputs.Data.DomainMetadata["species"] = "Homo sapiens"
	f.handoff.Inputs.Data.DomainMetadata["batch_metadata"] = []any{"site", "year"}
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	first := f.phase(1, answer.Run.RunID, nil)
	note := wantCode(t, first.Findings, "domain_metadata_missing")
	if !strings.Contains(note.What, "of the 7 metadata of the domain biology nothing says: reference_build, sequence_region, feature_schema, sample_metadata, coordinate_convention") {
		t.Error(note.What)
	}
	text := f.read(f.file(answer, knowledgeFile))
	for _, want := range []string{"## Domain\n\nbiology (CONFIRMED)", "| species | Homo sapiens | CONFIRMED", `| batch_metadata | ["site","year"] | INFERRED`, "| reference_build | MISSING | look in"} {
		if !strings.Contains(strings.ReplaceAll(text, `", "`, `","`), want) {
			t.Errorf("the knowledge lacks %q:\n%s", want, text)
		}
	}
	f.phase(1, answer.Run.RunID, map[string]any{"facts": []any{map[string]any{"field": "data.domain_metadata.feature_schema", "value": "30 measurements", "source": "s1", "status": "ASSUMPTION"}}})
	f.phase(2, answer.Run.RunID, nil)
	var manifest contract.DataManifest
	f.must(json.Unmarshal([]byte(f.read(f.file(answer, dataManifestFile))), &manifest))
	got := map[string]any{}
	for _, name := range []string{"domain", "species", "feature_schema"} {
		got[name] = manifest.DomainMetadata[name]
	}
	if diff := cmp.Diff(map[string]any{"domain": "biology", "species": "Homo sapiens", "feature_schema": "30 measurements"}, got); diff != "" {
		t.Error(diff)
	}
}
