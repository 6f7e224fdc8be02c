package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Index finds the runs of a workspace: .onescience/trainer/index/<run_id>.json.
type Index struct{ Workspace string }

// IndexEntry says where a run lives. Its paths are relative to the workspace with forward slashes where they are inside,
// absolute otherwise; Index.Abs makes them absolute.
type IndexEntry struct {
	RunID          string    `json:"run_id"`
	HandoffSHA256  string    `json:"handoff_sha256"` // of the canonical first handoff
	TrainerWorkdir string    `json:"trainer_workdir"`
	CodeSaveDir    string    `json:"code_save_dir"`
	Skill          string    `json:"skill"`
	StepID         string    `json:"step_id"`
	StepGoal       string    `json:"step_goal"`
	CreatedAt      time.Time `json:"created_at"` // UTC
}

// runID is the form of a run's id: a date and the beginning of the handoff's hash. Nothing else becomes part of a path.
var runID = regexp.MustCompile(`^r-[0-9]{8}-[0-9a-f]{4,64}$`)

func (x Index) dir() string { return filepath.Join(x.Workspace, ".onescience", "trainer", "index") }

func (x Index) path(id string) (string, error) {
	if !runID.MatchString(id) {
		return "", finding.Refuse(finding.Finding{Code: "run_id_malformed", Severity: finding.Error, What: fmt.Sprintf("%.80q is not the id of a run", id),
			Where: &finding.Where{Field: "run_id"}, Expected: "r-<8 digits>-<hex>, as in r-20261130-7f3a", Remedy: "call run_list for the ids"})
	}
	return filepath.Join(x.dir(), id+".json"), nil
}

// Abs makes a path of an entry absolute.
func (x Index) Abs(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(x.Workspace, filepath.FromSlash(path))
}

func (x Index) relative(path string) string {
	if filepath.IsAbs(path) && Inside(x.Workspace, path) {
		if rel, err := filepath.Rel(x.Workspace, path); err == nil {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}

// Put commits an entry, replacing the one with its id.
func (x Index) Put(e IndexEntry) error {
	path, err := x.path(e.RunID)
	if err != nil {
		return err
	}
	e.TrainerWorkdir, e.CodeSaveDir = x.relative(e.TrainerWorkdir), x.relative(e.CodeSaveDir)
	e.CreatedAt = e.CreatedAt.UTC()
	return WriteJSON(path, e)
}

// Get finds a run by its id. It refuses with run_id_malformed, run_unknown or index_entry_unreadable.
func (x Index) Get(id string) (IndexEntry, error) {
	path, err := x.path(id)
	if err != nil {
		return IndexEntry{}, err
	}
	e, err := readEntry(path)
	if errors.Is(err, fs.ErrNotExist) {
		return IndexEntry{}, x.unknown(id)
	}
	return e, err
}

func (x Index) unknown(id string) error {
	expected := "no run exists in this workspace yet"
	if entries, _, err := x.List(); err == nil && len(entries) > 0 {
		var ids []string
		for _, e := range entries {
			ids = append(ids, e.RunID)
		}
		expected = "one of " + finding.Few(ids, 5)
	}
	return finding.Refuse(finding.Finding{Code: "run_unknown", Severity: finding.Error, What: "there is no run " + id + " in " + x.Workspace,
		Where: &finding.Where{Field: "run_id"}, Expected: expected, Remedy: "call run_list for the ids, or send step_handoff to start a run"})
}

// ByHandoff finds the newest run of a handoff by the handoff's hash, nil when there is none.
func (x Index) ByHandoff(sha string) (*IndexEntry, error) {
	entries, _, err := x.List()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.HandoffSHA256 == sha {
			return &e, nil
		}
	}
	return nil, nil
}

// List returns all runs, the newest first. Entries that can't be read are left out with index_entry_unreadable.
func (x Index) List() ([]IndexEntry, []finding.Finding, error) {
	files, err := os.ReadDir(x.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list runs: %w", err)
	}
	var entries []IndexEntry
	var findings []finding.Finding
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") || filepath.Ext(file.Name()) != ".json" {
			continue
		}
		e, err := readEntry(filepath.Join(x.dir(), file.Name()))
		var refused *finding.Refused
		switch {
		case errors.As(err, &refused):
			for _, f := range refused.Findings {
				f.Severity = finding.Warning
				findings = append(findings, f)
			}
		case errors.Is(err, fs.ErrNotExist): // removed since the folder was read
		case err != nil:
			findings = append(findings, entryFinding(filepath.Join(x.dir(), file.Name()), err.Error()))
		default:
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b IndexEntry) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.RunID, a.RunID))
	})
	return entries, findings, nil
}

func readEntry(path string) (IndexEntry, error) {
	var e IndexEntry
	err := ReadJSON(path, &e)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		f := entryFinding(path, refused.Findings[0].What)
		f.Where = refused.Findings[0].Where
		f.Severity = finding.Error
		return IndexEntry{}, finding.Refuse(f)
	}
	if err != nil {
		return IndexEntry{}, err
	}
	if want := strings.TrimSuffix(filepath.Base(path), ".json"); e.RunID != want || !runID.MatchString(want) {
		f := entryFinding(path, fmt.Sprintf("the entry is of run %q", e.RunID))
		f.Severity, f.Expected = finding.Error, want
		return IndexEntry{}, finding.Refuse(f)
	}
	return e, nil
}

func entryFinding(path, what string) finding.Finding {
	return finding.Finding{Code: "index_entry_unreadable", Severity: finding.Warning, What: what, Where: &finding.Where{Path: path},
		Remedy: "delete the entry, and send the step_handoff again: the run itself is in its own folder"}
}
