package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/snapshot"
)

// smokeBefore keeps, in the smoke run's folder, what the project and code_save_dir held when it started.
const smokeBefore = "before.json"

// apart copies the code into the smoke run's folder and points the command into the copies. The working folder is the copy
// of code_save_dir, so that relative paths find there what the job will find. Then it notes what the originals hold.
func (w *smokeRun) apart(ctx context.Context, folder string, argv []string) (snapshot.Command, string, error) {
	run := w.step.Run
	spec := w.p.t.snapshotSpec(run, w.made, folder)
	spec.Trial = true
	for _, output := range append(outputFolders(spec.ProjectRoot), outputFolders(run.CodeSaveDir)...) {
		if code, _ := filepath.Glob(filepath.Join(output, "*.py")); len(code) == 0 { // the pattern is well-formed
			spec.Outputs = append(spec.Outputs, output)
		}
	}
	taken, _, err := snapshot.Take(ctx, spec) // what could not be copied is a risk of a run on it, not of the trial
	if err != nil {
		return snapshot.Command{}, "", err
	}
	command, _, err := taken.Command(argv, run.CodeSaveDir)
	if err != nil {
		return snapshot.Command{}, "", err
	}
	workDir, ok := taken.Root(run.CodeSaveDir)
	if !ok {
		workDir = filepath.Join(folder, smokeWork)
	}
	before, err := w.held()
	if err != nil {
		return snapshot.Command{}, "", err
	}
	return command, workDir, rundir.WriteJSON(filepath.Join(folder, smokeBefore), before)
}

// held says what the project and code_save_dir hold, by absolute path, without what trainwright and other jobs write there.
// Files are told apart by size and time: a project may hold too many to be read twice.
func (w *smokeRun) held() (map[string]string, error) {
	run := w.step.Run
	others, err := w.p.t.workDirs()
	if err != nil {
		return nil, err
	}
	roots := []string{projectRoot(w.made), run.CodeSaveDir}
	held := map[string]string{}
	for _, root := range roots {
		entries, _, err := rundir.Tree(root, rundir.TreeOptions{MaxFiles: 50_000, MaxHashBytes: 1})
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			path := filepath.Join(root, filepath.FromSlash(e.Path))
			foreign := func(dir string) bool { return rundir.Inside(dir, path) && !slices.Contains(roots, dir) }
			if !strings.Contains("/"+e.Path, "/.trainer_work/") && filepath.Base(path) != launchLock && !rundir.Inside(run.Workdir, path) && !slices.ContainsFunc(others, foreign) {
				held[path] = fmt.Sprint(e.Size, " ", e.ModTime.UnixNano())
			}
		}
	}
	return held, nil
}

// workDirs are the folders that jobs of the workspace write into.
func (t *Trainer) workDirs() ([]string, error) {
	roots, err := t.JobRoots()
	if err != nil {
		return nil, err
	}
	var dirs []string
	entries, _ := jobs.List(roots)
	for _, e := range entries {
		dirs = append(dirs, e.Request.WorkDir)
	}
	return dirs, nil
}

// tellOutside says which files of the project and of code_save_dir changed while the smoke run ran: a script that writes
// where it was not told to would leave checkpoints from which the job resumes in silence.
func (w *smokeRun) tellOutside(job *jobs.Entry) error {
	var before map[string]string
	err := rundir.ReadJSON(filepath.Join(job.Folder, smokeBefore), &before)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a smoke run of an earlier version
	}
	if err != nil {
		return err
	}
	now, err := w.held()
	if err != nil {
		return err
	}
	exit, err := jobs.ReadExit(job.Folder)
	if err != nil || exit == nil {
		return err
	}
	var changed []string
	severity := finding.Note
	for path, is := range now {
		info, err := os.Stat(path)
		if before[path] == is || err != nil || info.ModTime().Before(exit.StartedAt.Add(-clockSlack)) || info.ModTime().After(exit.EndedAt.Add(clockSlack)) {
			continue // as it was, or the user's work of another time
		}
		changed = append(changed, path)
		if evidenceName(filepath.Base(path)) || isCheckpoint(filepath.Base(path)) || filepath.Base(filepath.Dir(path)) == "checkpoints" {
			severity = finding.Error
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "smoke_wrote_outside", Severity: severity,
		What:  fmt.Sprintf("%d files outside of its folder changed while the smoke run ran, by the script or by someone else: %s", len(changed), some(changed, 3)),
		Where: &finding.Where{Path: changed[0]}, Expected: "a script that writes only where its arguments say",
		Remedy: fmt.Sprintf("look at them, and move away what the script made; then phase_4_codegen {\"run_id\": %q, \"smoke\": \"skip\"}", w.step.Run.ID)})
	if severity != finding.Error {
		return nil
	}
	w.out.Status, w.out.Step, w.out.Category = contract.StateFailed, contract.StatusFailed, jobs.CategoryCode
	w.out.Blockers = append(w.out.Blockers, "the smoke run wrote outside of its folder")
	w.out.Summary = "the smoke run wrote outside of its folder"
	w.out.Next = &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "smoke": smokeSkip}}
	return nil
}
