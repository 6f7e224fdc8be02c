package trainer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// endedJob walks to a job that has ended and that nobody has looked at, and gives its folder.
func (f *fixture) endedJob() (answer engine.Envelope, folder string) {
	f.t.Helper()
	f.hold()
	zero := 0
	answer, err := f.try(contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil || answer.Run.Job == nil {
		f.t.Fatalf("no job: %v %s", err, describe(answer))
	}
	f.release()
	folder = f.file(answer, "jobs/"+answer.Run.Job.JobID)
	done, err := jobs.Await(f.t.Context(), time.Minute, func() (bool, error) {
		exit, err := jobs.ReadExit(folder)
		return exit != nil, err
	})
	if err != nil || !done {
		f.t.Fatalf("the job has no end: %v", err)
	}
	return answer, folder
}

// The supervisor's list of what the job left can't be taken away or changed without a finding; where the supervisor had none,
// the doubt is told.
func TestTheSupervisorsListIsEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		spoil        func(f *fixture, folder string)
		code, status string
	}{
		"gone": {func(f *fixture, folder string) { f.must(os.Remove(filepath.Join(folder, jobs.LeftFile))) }, "artifact_edited", contract.StatusFailed},
		"edited": {func(f *fixture, folder string) {
			f.edit(filepath.Join(folder, jobs.LeftFile), `"bytes": `, `"bytes": 1`)
		}, "artifact_edited", contract.StatusFailed},
		"never was":    {func(f *fixture, folder string) { f.unlist(folder) }, "outputs_unlisted", contract.StatusSuccess},
		"not whole":    {func(f *fixture, folder string) { f.relist(folder, `"skipped": 0`, `"skipped": 1`) }, "", contract.StatusSuccess},
		"without hash": {func(f *fixture, folder string) { f.unhash(folder) }, "", contract.StatusSuccess},
		"file manager": {func(f *fixture, folder string) {
			f.write(filepath.Join(filepath.Dir(folder), "../code/outputs/.DS_Store"), "x")
		}, "", contract.StatusSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			_, folder := f.endedJob()
			c.spoil(f, folder)
			answer := f.walk()
			wantStatus(t, answer, c.status)
			if c.code != "" {
				wantCode(t, answer.Findings, c.code)
			}
			outputs, err := readOutputs(folder)
			if err != nil || len(outputs) < 6 || slices.ContainsFunc(outputs, func(o Output) bool { return o.SHA256 == "" }) {
				t.Errorf("outputs %+v, %v", outputs, err)
			}
		})
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// relist changes the supervisor's list as if the supervisor had written it so.
func (f *fixture) relist(folder, old, text string) {
	f.t.Helper()
	path := filepath.Join(folder, jobs.LeftFile)
	was := rundir.HashBytes([]byte(f.read(path)))
	f.edit(path, old, text)
	f.edit(filepath.Join(folder, jobs.ExitFile), was, rundir.HashBytes([]byte(f.read(path))))
}

func (f *fixture) unlist(folder string) {
	f.t.Helper()
	path := filepath.Join(folder, jobs.LeftFile)
	f.edit(filepath.Join(folder, jobs.ExitFile), rundir.HashBytes([]byte(f.read(path))), "")
	f.must(os.Remove(path))
}

// unhash takes the hashes out of the list, as if the files were too many bytes.
func (f *fixture) unhash(folder string) {
	f.t.Helper()
	var left jobs.Left
	f.must(rundir.ReadJSON(filepath.Join(folder, jobs.LeftFile), &left))
	for _, file := range left.Files {
		f.relist(folder, file.SHA256, "")
	}
}

// What was noticed when the outputs were worked out is told again whenever phase 5 is.
func TestWhatWasNoticedStays(t *testing.T) {
	f := newFixture(t)
	answer, folder := f.endedJob()
	f.write(f.code(answer, "checkpoints/epoch-0099.json"), "{}")
	for range 2 {
		one := f.phase(5, answer.Run.RunID, map[string]any{})
		wantCode(t, one.Findings, "artifact_added_after_run")
	}
	f.must(os.Remove(filepath.Join(folder, jobs.LeftFile)))
	_, found, err := collect(&engine.Run{}, Codegen{}, folder)
	if err != nil || !hasCode(found, "artifact_added_after_run") {
		t.Errorf("%v %+v", err, found)
	}
}

// A run whose trainer_workdir and code_save_dir lie on two file systems begins another attempt: what the first left moves.
func TestAttemptsAcrossFileSystems(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "trainwright-test-")
	if err != nil {
		t.Skipf("no second file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	f := newFixture(t)
	roots, err := rundir.NewRoots(f.dir, []string{other}, []string{other})
	f.must(err)
	f.trainer = New(roots, emptyLibrary(t), local.New(local.Options{Workspace: f.dir}), time.Now)
	f.handoff.Inputs.Runtime.CodeSaveDir, f.handoff.Inputs.Runtime.TrainerWorkdir = filepath.Join(other, "code"), "tw"
	for attempt := 1; attempt <= 2; attempt++ {
		f.handoff.Inputs.Attempt = attempt
		wantStatus(t, f.walk(), contract.StatusSuccess)
	}
	kept, _ := filepath.Glob(filepath.Join(f.dir, "tw/jobs/*-1/superseded/outputs/metrics.jsonl"))
	if len(kept) != 1 {
		t.Errorf("the first attempt's metrics are at %v", kept)
	}
}

// Jobs of a run go by their numbers: a clock that was set back makes no later job an earlier one.
func TestJobsGoByTheirNumbers(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for id, at := range map[string]time.Time{"j-abc-1": now, "j-abc-2": now.Add(-time.Hour), "j-abc-10": now.Add(-2 * time.Hour)} {
		if err := jobs.Create(filepath.Join(dir, "jobs", id), jobs.Request{JobID: id, Command: []string{"true"}, WorkDir: dir, Marker: "tw-1", CreatedAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, e := range jobsOf(&engine.Run{Workdir: dir}) {
		ids = append(ids, e.JobID)
	}
	if strings.Join(ids, " ") != "j-abc-10 j-abc-2 j-abc-1" {
		t.Errorf("%v", ids)
	}
}

// A run that keeps its knowledge and its code in one folder counts what the script leaves at the top of it.
func TestOneFolderForAll(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.CodeSaveDir, f.handoff.Inputs.Runtime.TrainerWorkdir = "all", "all"
	f.handoff.RequiredOutputs = []string{"model.json"}
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    open(os.path.join(os.path.dirname(config.output_dir), 'model.json'), 'w').write('{}')\n    try:")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	if finding.Has(answer.Findings, finding.Error) {
		t.Error(listFindings(answer.Findings))
	}
}
