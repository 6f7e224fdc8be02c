package trainer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/policy"
)

// site is a page on this machine that counts its visitors, and a fixture whose instructions are on it.
func site(t *testing.T) (f *fixture, visits *atomic.Int32, url string) {
	visits = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>How to train</h1><p>Use a <b>warm-up of 120 steps</b>, token=hunter2hunter2hunter2.</p>"))
	}))
	t.Cleanup(server.Close)
	f = newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.handoff.Inputs.InstructionSource = contract.InstructionSource{SourceType: "url", URL: server.URL + "/train"}
	return f, visits, server.URL + "/train"
}

func (f *fixture) allow(text string) {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	allowed, found, err := policy.Load(path, f.dir)
	if err != nil || len(found) > 0 {
		f.t.Fatal(err, found)
	}
	f.trainer.Authority.Policy = allowed
}

func (f *fixture) sources(answer engine.Envelope) []evidence.Source {
	f.t.Helper()
	list, err := evidence.LoadSources(filepath.Dir(f.file(answer, sourcesFile)))
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func pageOf(list []evidence.Source) *evidence.Source {
	for i := range list {
		if list[i].Kind == evidence.KindURL {
			return &list[i]
		}
	}
	return nil
}

func TestNoPageWithoutTheUsersWord(t *testing.T) {
	for name, c := range map[string]struct {
		policy, constraint string
		code               string
	}{
		"nobody allowed it":              {"allow: {}", "", "network_not_authorised"},
		"the policy says no":             {"allow: {network: no}", "", "network_not_authorised"},
		"the handoff says no":            {"allow: {network: yes}\nnetwork_addresses: [127.0.0.1]", "Work offline.", "network_not_authorised"},
		"the address is this machine's":  {"allow: {network: yes}", "", "address_refused"},
		"another address was named than": {"allow: {network: yes}\nnetwork_addresses: [10.0.0.0/8]", "", "address_refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, visits, url := site(t)
			f.allow(c.policy)
			if c.constraint != "" {
				f.handoff.TaskContext.Constraints = append(f.handoff.TaskContext.Constraints, c.constraint)
			}
			answer := f.walk()
			found := wantCode(t, answer.Findings, c.code)
			if visits.Load() != 0 || pageOf(f.sources(answer)) != nil || !strings.HasPrefix(found.Where.Path, url[:15]) {
				t.Errorf("%d visits, %+v", visits.Load(), found)
			}
		})
	}
}

func TestAPageIsCapturedOnceAndCanBeQuoted(t *testing.T) {
	f, visits, url := site(t)
	f.allow("allow: {network: yes}\nnetwork_addresses: [127.0.0.1]")
	answer := f.walk()
	page := pageOf(f.sources(answer))
	if page == nil || page.Ref != url || !strings.HasPrefix(page.Note, "HTTP 200, text/html") || page.KeptAs == "" {
		t.Fatalf("%+v\n%s", page, listFindings(answer.Findings))
	}
	kept := f.read(f.file(answer, page.KeptAs))
	if !strings.Contains(kept, "# How to train") || strings.Contains(kept, "hunter2") {
		t.Errorf("kept: %s", kept)
	}
	again := f.phase(1, answer.Run.RunID, map[string]any{"facts": []any{map[string]any{"field": "training.scheduler_warmup", "value": 120, "status": "CONFIRMED", "source": page.ID, "quote": "warm-up of 120 steps"}}})
	if hasCode(again.Findings, "quote_not_in_source") {
		t.Error(listFindings(again.Findings))
	}
	f.phase(0, answer.Run.RunID, map[string]any{"sources": []any{map[string]any{"kind": "text", "ref": "note", "text": "more"}}})
	if visits.Load() != 1 {
		t.Errorf("the page was fetched %d times", visits.Load())
	}
	if capture := f.read(f.file(answer, captureFile)); !strings.Contains(capture, url) {
		t.Error("source_capture.md does not name the page")
	}
}

// consenting is a user who says yes, and remembers the question.
type consenting struct {
	engine.Caller
	asked []string
}

func (c *consenting) Ask(_ context.Context, q engine.Question) (engine.Answer, error) {
	c.asked = append(c.asked, q.Text)
	return engine.Answer{Reply: engine.Accepted, By: "ann"}, nil
}

func TestTheUserIsAskedForAPage(t *testing.T) {
	f, visits, url := site(t)
	f.allow("network_addresses: [127.0.0.1]")
	user := &consenting{Caller: engine.Silent}
	answer, err := f.trainer.Walk(context.Background(), user, contract.Call{Handoff: &f.handoff}, WalkInput{})
	if err != nil {
		t.Fatal(err)
	}
	if visits.Load() != 1 || len(user.asked) != 1 || !strings.Contains(user.asked[0], url) {
		t.Errorf("%d visits, asked %q", visits.Load(), user.asked)
	}
	if events := f.read(f.file(answer, "events.jsonl")); !strings.Contains(events, `"approved"`) || !strings.Contains(events, "ann") {
		t.Error("nobody knows who allowed it")
	}
}

func TestANotebookIsQuotedByItsCells(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.write("notes.ipynb", `{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["The target accuracy is 0.97"]}]}`)
	f.write("scan.pdf", "%PDF-1.4\nbroken")
	f.handoff.TaskContext.RelevantArtifacts = append(f.handoff.TaskContext.RelevantArtifacts, "notes.ipynb", "scan.pdf")
	answer := f.walk()
	wantCode(t, answer.Findings, "source_not_text")
	for _, s := range f.sources(answer) {
		if s.Ref == "notes.ipynb" {
			if kept := f.read(f.file(answer, s.KeptAs)); kept != "[cell 1, markdown]\nThe target accuracy is 0.97\n\n" || s.Bytes == int64(len(kept)) || s.Note != "1 cells, 0 of code" {
				t.Errorf("%q %+v", kept, s)
			}
			return
		}
	}
	t.Error("the notebook was not captured")
}
