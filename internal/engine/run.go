package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// handoffFile is the stored handoff of a run; it is authoritative once the run exists.
const handoffFile = "step_handoff.json"

// Engine opens runs and executes phases in one workspace. It holds no state between calls but its configuration.
type Engine struct {
	Roots *rundir.Roots
	// Skills by execution_skill.
	Skills map[string]*Skill
	Now    func() time.Time
}

// New makes an engine over a workspace.
func New(roots *rundir.Roots, now func() time.Time, skills ...*Skill) *Engine {
	e := &Engine{Roots: roots, Now: now, Skills: map[string]*Skill{}}
	for _, s := range skills {
		e.Skills[s.Name] = s
	}
	return e
}

// Run is an open run. Workdir is the trainer_workdir and CodeSaveDir the folder of code and outputs, both absolute.
type Run struct {
	ID, Workdir, CodeSaveDir string
	// Attempt is the attempt that is under way, from 1.
	Attempt int
	Handoff contract.StepHandoff
	Entry   rundir.IndexEntry
	Dir     rundir.Dir
	Roots   *rundir.Roots
	Skill   *Skill
	// numbered says that a caller has numbered its attempts, so that results carry them; stored is the answer of an attempt
	// that is over, where the call asked for that one.
	numbered bool
	stored   *Envelope
}

// File is the absolute path of a file of the run.
func (r *Run) File(name string) string { return filepath.Join(r.Workdir, filepath.FromSlash(name)) }

// Rel writes an absolute path the way files inside a run name each other: relative to the trainer_workdir where the
// path is inside it, else absolute.
func (r *Run) Rel(path string) string {
	if rel, err := filepath.Rel(r.Workdir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

func (e *Engine) index() rundir.Index { return rundir.Index{Workspace: e.Roots.Workspace()} }

// Open finds the run that a call speaks of, or creates it. A handoff beside a run_id amends the run: fields that were
// open are taken, a changed value is refused by name. It is the way to work on a run: a sealed process has none.
func (e *Engine) Open(ctx context.Context, skill *Skill, call contract.Call) (*Run, []finding.Finding, error) {
	if err := rundir.MayWrite(); err != nil {
		return nil, nil, err
	}
	if err := refusePlaceholders(call); err != nil {
		return nil, nil, err
	}
	if call.RunID != "" {
		run, err := e.Look(call.RunID)
		if err != nil {
			return nil, nil, err
		}
		if run.Skill != skill && skill != nil {
			return nil, nil, finding.Refuse(finding.Finding{Code: "skill_mismatch", Severity: finding.Error,
				What: fmt.Sprintf("run %s belongs to %s", run.ID, run.Skill.Name), Where: &finding.Where{Field: "run_id"},
				Expected: "a run of " + skill.Name, Remedy: "run_list shows the runs with their skills"})
		}
		if call.Handoff == nil {
			return run, nil, nil
		}
		sent, notes, err := withoutSecrets(*call.Handoff)
		if err != nil {
			return nil, nil, err
		}
		settled := settlements(call)
		if _, _, err := e.merge(run, sent, settled); err != nil {
			return nil, nil, err // before anything begins
		}
		more, err := e.enter(ctx, run, sent.Inputs.Attempt)
		if err != nil || len(more) > 0 || run.stored != nil {
			return run, append(notes, more...), err
		}
		more, err = e.amend(ctx, run, sent, settled, "agent", nil)
		return run, append(notes, more...), err
	}
	if call.Handoff == nil {
		return nil, nil, finding.Refuse(finding.Finding{Code: "nothing_to_do", Severity: finding.Error,
			What: "the call names neither a step_handoff, a request nor a run_id", Expected: "one of the three",
			Remedy: `send {"step_handoff": {…}} or {"request": "…"} to start, {"run_id": "r-…"} to go on`})
	}
	return e.openByHandoff(ctx, skill, *call.Handoff)
}

// placeholder is how a next_call marks a value that the agent has to fill in.
var placeholder = regexp.MustCompile(`^<[^<>]{1,80}>$`)

// refusePlaceholders refuses a call that was sent on without filling in what the next_call left open.
func refusePlaceholders(call contract.Call) error {
	raw, err := contract.Canonical(map[string]any{"step_handoff": call.Handoff, "": call.Section})
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return err
	}
	refused := finding.Refuse()
	findPlaceholders(tree, "", refused)
	if len(refused.Findings) > 0 {
		return refused
	}
	return nil
}

func findPlaceholders(tree any, path string, into *finding.Refused) {
	switch v := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			findPlaceholders(v[key], strings.Trim(path+"."+key, "."), into)
		}
	case []any:
		for i, x := range v {
			findPlaceholders(x, fmt.Sprintf("%s[%d]", path, i), into)
		}
	case string:
		if placeholder.MatchString(v) {
			into.Findings = append(into.Findings, finding.Finding{Code: "placeholder_left", Severity: finding.Error, What: v + " was not filled in",
				Where: &finding.Where{Field: path}, Expected: "a value", Remedy: "find it out or ask the user, then send the call with it; leave the field out when nobody knows"})
		}
	}
}

// Look opens a run for reading alone; Open is the way to work on one.
func (e *Engine) Look(id string) (*Run, error) {
	entry, err := e.index().Get(id)
	if err != nil {
		return nil, err
	}
	return e.load(entry)
}

// load reads a run that the index knows. A stored handoff that is not what the engine wrote is refused: it would
// change the run behind the records' back.
func (e *Engine) load(entry rundir.IndexEntry) (*Run, error) {
	skill := e.Skills[entry.Skill]
	if skill == nil {
		return nil, finding.Refuse(finding.Finding{Code: "skill_unknown", Severity: finding.Error,
			What: fmt.Sprintf("run %s belongs to skill %q", entry.RunID, entry.Skill), Expected: "a skill of this server",
			Remedy: "use a trainwright that offers this skill"})
	}
	run := &Run{ID: entry.RunID, Entry: entry, Skill: skill, Roots: e.Roots}
	run.Workdir = e.place(entry.TrainerWorkdir)
	run.CodeSaveDir = e.place(entry.CodeSaveDir)
	run.Dir = rundir.Dir{Path: run.Workdir}
	data, err := os.ReadFile(run.File(handoffFile))
	if err != nil {
		return nil, finding.Refuse(finding.Finding{Code: "artifact_missing", Severity: finding.Error,
			What:  fmt.Sprintf("the stored handoff of %s can't be read: %v", run.ID, errors.Unwrap(err)),
			Where: &finding.Where{Path: run.File(handoffFile)}, Expected: "the handoff that started the run",
			Remedy: "put the file back, or send the handoff without run_id in a fresh trainer_workdir"})
	}
	if ours, err := run.Dir.WroteIt(handoffFile, data); err != nil {
		return nil, err
	} else if !ours {
		return nil, finding.Refuse(finding.Finding{Code: "artifact_edited", Severity: finding.Error,
			What: "step_handoff.json was changed by someone else than trainwright", Where: &finding.Where{Path: run.File(handoffFile)},
			Expected: "the handoff that started the run",
			Remedy:   "undo the edit (sources/s1 is the captured original), or send the changed handoff without run_id: it is a run of its own"})
	}
	if run.Handoff, _, err = contract.DecodeHandoff(json.RawMessage(data)); err != nil {
		return nil, err
	}
	run.countAttempts()
	return run, nil
}

func (e *Engine) place(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.Roots.Workspace(), filepath.FromSlash(path))
}

// withoutSecrets masks what looks like a secret before the handoff is kept anywhere: the run is that of the masked
// handoff.
func withoutSecrets(handoff contract.StepHandoff) (contract.StepHandoff, []finding.Finding, error) {
	data, err := rundir.MarshalStable(handoff)
	if err != nil {
		return handoff, nil, err
	}
	masked := redact.Bytes(data)
	if bytes.Equal(masked, data) {
		return handoff, nil, nil
	}
	clean, _, err := contract.DecodeHandoff(json.RawMessage(masked))
	return clean, []finding.Finding{{Code: "secret_redacted", Severity: finding.Warning, What: "the handoff held what looks like a secret; it was masked and is kept nowhere",
		Where: &finding.Where{Field: "step_handoff"}, Expected: "no secret in a handoff", Remedy: "let the job read it from its environment"}}, err
}

func (e *Engine) openByHandoff(ctx context.Context, skill *Skill, handoff contract.StepHandoff) (*Run, []finding.Finding, error) {
	if name := handoff.ExecutionSkill; name != "" && name != skill.Name {
		return nil, nil, finding.Refuse(finding.Finding{Code: "skill_mismatch", Severity: finding.Error,
			What:  fmt.Sprintf("the handoff is for %s, this tool belongs to %s", name, skill.Name),
			Where: &finding.Where{Field: "step_handoff.execution_skill"}, Expected: skill.Name,
			Remedy: "call the tool of that skill, or correct execution_skill"})
	}
	handoff.ExecutionSkill = skill.Name
	handoff, notes, err := withoutSecrets(handoff)
	if err != nil {
		return nil, nil, err
	}
	sha := contract.HandoffSHA256(handoff)
	known, err := e.index().ByHandoff(sha)
	if err != nil {
		return nil, nil, err
	}
	if known != nil {
		run, err := e.load(*known)
		if err != nil {
			return nil, nil, err
		}
		more, err := e.enter(ctx, run, handoff.Inputs.Attempt)
		return run, append(notes, more...), err
	}
	run, more, err := e.create(ctx, skill, handoff, sha)
	return run, append(notes, more...), err
}

// create lays a new run down: the handoff first, then the index entry that makes the run known. A folder that holds
// artifacts already is refused, whatever their content or time.
func (e *Engine) create(ctx context.Context, skill *Skill, handoff contract.StepHandoff, sha string) (*Run, []finding.Finding, error) {
	now := e.Now()
	id := fmt.Sprintf("r-%s-%s", now.UTC().Format("20060102"), strings.TrimPrefix(sha, "sha256:")[:8])
	place, err := e.placeRun(id, handoff)
	if err != nil {
		return nil, nil, err
	}
	entry := rundir.IndexEntry{RunID: id, HandoffSHA256: sha, TrainerWorkdir: e.Roots.Rel(place.workdir), CodeSaveDir: e.Roots.Rel(place.codeSaveDir),
		Skill: skill.Name, StepID: handoff.StepID, StepGoal: handoff.StepGoal, CreatedAt: now.UTC()}
	if err := os.MkdirAll(place.workdir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("make trainer_workdir: %w", err)
	}
	unlock, err := rundir.Lock(ctx, filepath.Join(place.workdir, ".lock"))
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if known, err := e.index().ByHandoff(sha); err != nil || known != nil {
		if err != nil {
			return nil, nil, err
		}
		run, err := e.load(*known)
		return run, nil, err
	}
	dir := rundir.Dir{Path: place.workdir}
	if err := refusePlanted(dir, skill, handoff); err != nil {
		return nil, nil, err
	}
	if err := writeHandoff(dir, handoff); err != nil {
		return nil, nil, err
	}
	if err := e.index().Put(entry); err != nil {
		return nil, nil, err
	}
	run, err := e.load(entry)
	return run, nil, err
}

// refusePlanted makes sure that a new run starts in a folder without artifacts. A crash between writing the handoff
// and the index entry leaves exactly the handoff behind, which is recognised and taken up.
func refusePlanted(dir rundir.Dir, skill *Skill, handoff contract.StepHandoff) error {
	wanted, err := rundir.MarshalStable(handoff)
	if err != nil {
		return err
	}
	refused := finding.Refuse()
	stateFolders := []string{"phases", "jobs", "answers", "split", "sources", "smoke", attemptsFolder, rundir.RenderingsDir, rundir.EditsDir}
	for _, name := range append(append([]string{}, skill.Canonical...), stateFolders...) {
		path := filepath.Join(dir.Path, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if name == handoffFile && err == nil && info.Mode().IsRegular() {
			data, _ := os.ReadFile(path)
			if string(data) == string(wanted) {
				continue
			}
			refused.Findings = append(refused.Findings, finding.Finding{Code: "workdir_taken", Severity: finding.Error,
				What: "the trainer_workdir holds another step_handoff.json", Where: &finding.Where{Path: path},
				Expected: "an empty trainer_workdir, or the handoff of the run that lives there",
				Remedy:   "name another inputs.runtime.trainer_workdir"})
			continue
		}
		refused.Findings = append(refused.Findings, finding.Finding{Code: "artifact_planted", Severity: finding.Error,
			What: name + " exists before the run has started, so it can't come from it", Where: &finding.Where{Path: path},
			Expected: "a trainer_workdir without artifacts", Remedy: "move it away, or name another inputs.runtime.trainer_workdir"})
	}
	if len(refused.Findings) > 0 {
		return refused
	}
	return nil
}

func writeHandoff(dir rundir.Dir, handoff contract.StepHandoff) error {
	data, err := rundir.MarshalStable(handoff)
	if err != nil {
		return err
	}
	findings, err := dir.WriteArtifacts(map[string][]byte{handoffFile: data})
	if err == nil && len(findings) > 0 {
		return finding.Refuse(findings...)
	}
	return err
}
