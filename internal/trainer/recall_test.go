package trainer

import (
	"slices"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
)

// withCard gives the workspace a resource skill with one card and opens the trainer over it.
func (f *fixture) withCard() {
	base := ".agents/skills/tumour-cards/"
	f.write(base+"SKILL.md", "---\nname: tumour-cards\ndescription: Cards on tumour data. Use when a tumour data set is trained on.\nmetadata:\n  type: resource\n---\n")
	card := base + "assets/biology/data/wdbc/"
	f.write(card+"metadata.json", `{"name": "wdbc", "type": "dataset", "domain": "biology", "version": "1", "description": "Wisconsin diagnostic data", "tags": []}`)
	f.write(card+"spec.md", "# wdbc\nThe classes are unbalanced: accuracy of the majority class is 0.63.\n")
	f.write(card+"usage.md", "Fit with momentum 0.9 of the optimizer.\n")
	f.write(card+"workflow_planning.md", "Split stratified.\n")
	roots, err := rundir.NewRoots(f.dir, nil, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	library, found := skill.NewLibrary(skill.WorkspaceRoots(f.dir, ".agents/skills")...)
	if len(found) > 0 {
		f.t.Fatalf("%v", found)
	}
	f.trainer = New(roots, library, local.New(local.Options{Workspace: f.dir}), time.Now)
}

// Recall always runs before phase 0; an empty library is recorded as missing, not skipped.
func TestEmptyLibraryIsRecordedAsMissing(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	answer := f.walk()
	for _, phase := range contract.Phases[:4] {
		record, err := rundir.Dir{Path: answer.ExecutionResult.Artifacts["trainer_workdir"]}.Record(phase)
		if err != nil {
			t.Fatal(err)
		}
		if record.Recall == nil || len(record.Recall.Missing) != 1 || len(record.Recall.Used)+len(record.Recall.Unused) != 0 {
			t.Errorf("%s: recall %+v", phase, record.Recall)
		}
	}
	var kept recallRecord
	if err := rundir.ReadJSON(f.file(answer, recallFile), &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Result.Status != "failed" || kept.Request.UserRequest == "" {
		t.Errorf("recall.json: %+v", kept)
	}
}

// A card that the user names is recalled and captured; it counts as used once a fact cites it.
func TestRecalledCardIsUsedWhenAFactCitesIt(t *testing.T) {
	f := newFixture(t)
	f.withCard()
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.handoff.TaskContext.UserGoal = "A classifier on wdbc"
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	dir := rundir.Dir{Path: answer.ExecutionResult.Artifacts["trainer_workdir"]}
	record, err := dir.Record(contract.PhaseTrainingKnowledge)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(record.Recall.Unused, []string{"wdbc"}) || len(record.Recall.Used) != 0 {
		t.Fatalf("recall before it is cited: %+v", record.Recall)
	}
	sources, err := evidence.LoadSources(dir.Path)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(sources, func(s evidence.Source) bool { return len(s.Note) > 8 && s.Note[:8] == "recalled" })
	if at < 0 {
		t.Fatalf("the card was not captured: %+v", sources)
	}
	fact := map[string]any{"field": "training.extra.momentum", "value": 0.9, "source": sources[at].ID, "quote": "momentum 0.9 of the optimizer"}
	cited := f.phase(1, answer.Run.RunID, map[string]any{"facts": []any{fact}})
	if cited.Run.PhaseStatus[contract.PhaseTrainingKnowledge] != contract.StateSuccess {
		t.Fatalf("%s", describe(cited))
	}
	if record, err = dir.Record(contract.PhaseTrainingKnowledge); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(record.Recall.Used, []string{"wdbc"}) || len(record.Recall.Unused) != 0 {
		t.Errorf("recall after it is cited: %+v", record.Recall)
	}
}
