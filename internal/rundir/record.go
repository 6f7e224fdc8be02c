package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Dir is the folder of one run (its trainer_workdir).
type Dir struct{ Path string }

// Record is the commit of a phase, phases/<phase>.json. Inputs and Outputs map a path to "sha256:<hex>"; paths are relative
// to the run with forward slashes, or absolute for files outside it. A file that a later phase writes again (the manifest,
// an event log) is no output of an earlier one: it would look edited.
type Record struct {
	Phase       string            `json:"phase"`
	Status      string            `json:"status"` // a phase state of contract
	Attempt     int               `json:"attempt"`
	FinishedAt  time.Time         `json:"finished_at"` // UTC
	Inputs      map[string]string `json:"inputs"`
	Outputs     map[string]string `json:"outputs"`
	Gate        Gate              `json:"gate"`
	Blockers    []string          `json:"blockers"`
	Assumptions []string          `json:"assumptions"` // ids of facts
	Recall      *RecallUse        `json:"recall,omitempty"`
	Findings    []finding.Finding `json:"findings,omitempty"`
	// Answer is what the engine repeats when the phase is not run again; its form is the engine's.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Gate is what a phase had to prove before it may pass.
type Gate struct {
	Passed bool    `json:"passed"`
	Checks []Check `json:"checks"`
}

// Check is one question of a gate, and why it was answered so.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"`
}

// RecallUse says what became of the resources that a phase recalled: cited by a fact, matched and not cited, asked for
// and not found.
type RecallUse struct {
	Used    []string `json:"used"`
	Unused  []string `json:"unused"`
	Missing []string `json:"missing"`
}

var phaseName = regexp.MustCompile(`^[a-z0-9_]+$`)

func (d Dir) recordPath(phase string) (string, error) {
	if !phaseName.MatchString(phase) {
		return "", fmt.Errorf("phase %q: not the name of a phase", phase)
	}
	return filepath.Join(d.Path, "phases", phase+".json"), nil
}

// Record reads the record of a phase, nil when there is none. One that can't be used is refused with record_unreadable.
func (d Dir) Record(phase string) (*Record, error) {
	path, err := d.recordPath(phase)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		f := jsonFinding(path, data, err)
		f.What = "the record of " + phase + " can't be read: " + err.Error()
		return nil, unreadableRecord(f, phase)
	}
	if record.Phase != phase {
		return nil, unreadableRecord(finding.Finding{Severity: finding.Error, Where: &finding.Where{Path: path, Field: "phase"},
			What: fmt.Sprintf("the record is of phase %q", record.Phase), Expected: phase}, phase)
	}
	return &record, nil
}

func unreadableRecord(f finding.Finding, phase string) error {
	f.Code = "record_unreadable"
	f.Remedy = "call phase_" + phase + " with the run_id: it runs again and writes its record anew"
	return finding.Refuse(f)
}

// CommitRecord makes a phase's result count: before the rename of this file the phase did not happen.
func (d Dir) CommitRecord(r Record) error {
	path, err := d.recordPath(r.Phase)
	if err != nil {
		return err
	}
	r.FinishedAt = r.FinishedAt.UTC()
	r.Inputs, r.Outputs = notNilMap(r.Inputs), notNilMap(r.Outputs)
	r.Gate.Checks = notNil(r.Gate.Checks)
	r.Blockers, r.Assumptions = notNil(r.Blockers), notNil(r.Assumptions)
	if r.Recall != nil {
		r.Recall = &RecallUse{notNil(r.Recall.Used), notNil(r.Recall.Unused), notNil(r.Recall.Missing)}
	}
	return WriteJSON(path, r)
}

// CleanTemps removes what commits that were cut short left in the run's own folders.
func (d Dir) CleanTemps(olderThan time.Duration, now time.Time) error {
	var failed error
	for _, sub := range []string{"", "phases", "sources", "split"} {
		_, err := CleanTemps(filepath.Join(d.Path, sub), olderThan, now)
		failed = errors.Join(failed, err)
	}
	return failed
}

// notNil makes an absent list an empty one, so that readers always find a list.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func notNilMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
