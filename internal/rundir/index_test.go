package rundir

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestIndex(t *testing.T) {
	x := Index{t.TempDir()}
	if entries, findings, err := x.List(); entries != nil || findings != nil || err != nil {
		t.Errorf("empty: %v, %v, %v", entries, findings, err)
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 7 {
		e := IndexEntry{RunID: fmt.Sprintf("r-20261130-000%d", i), HandoffSHA256: HashBytes([]byte{byte(i % 6)}), CreatedAt: at.Add(time.Duration(i) * time.Minute),
			TrainerWorkdir: filepath.Join(x.Workspace, "out", ".trainer_work"), CodeSaveDir: filepath.Join(filepath.Dir(x.Workspace), "elsewhere")}
		if err := x.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	e, err := x.Get("r-20261130-0003")
	if err != nil || e.TrainerWorkdir != "out/.trainer_work" || !filepath.IsAbs(e.CodeSaveDir) || x.Abs(e.TrainerWorkdir) != filepath.Join(x.Workspace, "out", ".trainer_work") {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := x.ByHandoff(HashBytes([]byte{0})); err != nil || e == nil || e.RunID != "r-20261130-0006" {
		t.Errorf("the newest run of a handoff: %+v, %v", e, err)
	}
	if e, err := x.ByHandoff("sha256:none"); err != nil || e != nil {
		t.Errorf("no run of a handoff: %+v, %v", e, err)
	}

	put(t, filepath.Join(x.dir(), "r-20261130-0007.json"), `{"run_id":`)
	put(t, filepath.Join(x.dir(), "r-20261130-0008.json"), `{"run_id": "r-20261130-0001"}`)
	put(t, filepath.Join(x.dir(), ".r-20261130-0009.json.tmp-1"), `{`)
	entries, findings, err := x.List()
	if err != nil || len(entries) != 7 || entries[0].RunID != "r-20261130-0006" || entries[6].RunID != "r-20261130-0000" {
		t.Errorf("%v, %v", entries, err)
	}
	if !slices.Equal(codes(findings, nil), []string{"index_entry_unreadable", "index_entry_unreadable"}) {
		t.Errorf("findings %v", findings)
	}
	if _, err := x.Get("r-20261130-0007"); !slices.Equal(codes(nil, err), []string{"index_entry_unreadable"}) {
		t.Errorf("broken entry: %v", err)
	}
}

func TestUnknownRunNamesTheKnown(t *testing.T) {
	x := Index{t.TempDir()}
	_, err := x.Get("r-20261130-7f3a")
	if !slices.Equal(codes(nil, err), []string{"run_unknown"}) || !strings.Contains(err.Error(), "no run exists") {
		t.Error(err)
	}
	for i := range 7 {
		if err := x.Put(IndexEntry{RunID: fmt.Sprintf("r-20261130-000%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = x.Get("r-20261130-7f3a")
	var refused *finding.Refused
	if !errors.As(err, &refused) || strings.Count(refused.Findings[0].Expected, "r-20261130-") != 5 || !strings.Contains(refused.Findings[0].Expected, "2 more") {
		t.Error(err)
	}
	for _, id := range []string{"", "../../etc/passwd", "r-20261130-7f3a/../x", "r-2026-7f3a", "R-20261130-7f3a", "r-20261130-7f3a\n"} {
		if _, err := x.Get(id); !slices.Equal(codes(nil, err), []string{"run_id_malformed"}) {
			t.Errorf("Get(%q): %v", id, err)
		}
		if err := x.Put(IndexEntry{RunID: id}); err == nil {
			t.Errorf("Put(%q) took it", id)
		}
	}
}
