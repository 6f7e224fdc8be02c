package trainer

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// scene is one run of the example as it is shipped, kept at three moments: nothing has begun; its job has ended and nobody has
// looked at it (what is changed then is as if the script had left it so); the run is validated (what is changed then was
// changed by hand).
type scene struct {
	*fixture
	moments [3]string
	exit    *jobs.Exit
	runID   string
	work    string // trainer_workdir
	job     string // the job's folder
	honest  engine.Envelope
	late    bool // a lie of the moment ended is by hand, after the job's end, and not the script's
}

const (
	begun = iota
	ended
	validated
)

func newScene(t *testing.T) *scene {
	f := newFixture(t)
	handoff, _, err := contract.DecodeHandoff([]byte(f.read(f.dir + "/step_handoff.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	handoff.Inputs.Runtime.EnvironmentRequirements = f.handoff.Inputs.Runtime.EnvironmentRequirements
	f.handoff = handoff
	s := &scene{fixture: f}
	f.hold()
	s.keep(begun)
	zero := 0
	under, err := f.try(contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil || under.Run.Job == nil {
		t.Fatalf("no job: %v %s", err, describe(under))
	}
	f.release()
	s.runID, s.work = under.Run.RunID, under.ExecutionResult.Artifacts["trainer_workdir"]
	s.job = filepath.Join(s.work, "jobs", under.Run.Job.JobID)
	for deadline := time.Now().Add(time.Minute); s.exit == nil; time.Sleep(20 * time.Millisecond) {
		if s.exit, err = jobs.ReadExit(s.job); err != nil || time.Now().After(deadline) {
			t.Fatalf("the job has no end: %v", err)
		}
	}
	s.keep(ended)
	s.honest = s.walk()
	s.keep(validated)
	return s
}

// keep saves the workspace as it is, back puts it back, times included.
func (s *scene) keep(moment int) {
	s.moments[moment] = s.t.TempDir()
	s.copyTree(s.dir, s.moments[moment])
}

// asTheJobLeftIt lists the outputs anew, as the supervisor would have found them.
func (s *scene) asTheJobLeftIt() {
	s.t.Helper()
	request, err := jobs.ReadRequest(s.job)
	if err != nil {
		s.t.Fatal(err)
	}
	sha, err := jobs.WriteLeft(s.job, request, s.exit.EndedAt)
	if err != nil {
		s.t.Fatal(err)
	}
	s.edit(s.job+"/"+jobs.ExitFile, s.exit.Left, sha)
}

func (s *scene) back(moment int) {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
			s.t.Fatal(err)
		}
	}
	s.copyTree(s.moments[moment], s.dir)
	s.open()
}

func (s *scene) copyTree(from, to string) {
	s.t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		target := filepath.Join(to, rel)
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// leave writes an output as the job would have, at its last moment.
func (s *scene) leave(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.work, "code", name)
	s.write(path, text)
	s.dated(name, s.exit.EndedAt)
}

func (s *scene) dated(name string, at time.Time) {
	s.t.Helper()
	if err := os.Chtimes(filepath.Join(s.work, "code", name), at, at); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.work, "code", name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) output(name string) string {
	s.t.Helper()
	return s.read(filepath.Join(s.work, "code", name))
}

// rows rewrites the lines of an output; a line that becomes empty is left out.
func (s *scene) rows(name string, change func(n int, line string) string) {
	s.t.Helper()
	var b strings.Builder
	n := 0
	for line := range strings.Lines(s.output(name)) {
		if made := change(n, strings.TrimSuffix(line, "\n")); made != "" {
			b.WriteString(made + "\n")
		}
		n++
	}
	s.leave(name, b.String())
}

// metric rewrites a field of the metrics of a split and name, of all of them where split is empty; nil leaves the row out.
func (s *scene) metric(split, name, field string, change func(epoch int, value float64) any) {
	s.t.Helper()
	s.rows("outputs/metrics.jsonl", func(_ int, line string) string {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			s.t.Fatal(err)
		}
		if split != "" && (row["split"] != split || row["name"] != name) {
			return line
		}
		epoch, _ := row["epoch"].(float64)
		value, _ := row[field].(float64)
		row[field] = change(int(epoch), value)
		if row[field] == nil {
			return ""
		}
		return jsonText(row)
	})
}

const (
	testRows = "outputs/predictions-test.jsonl"
	newest   = "checkpoints/epoch-0040.json"
)

var firstID = regexp.MustCompile(`"id": "(\d+)"`)

// lies are told by the script (moment ended) or afterwards (moment validated). Each names the finding that catches it and how
// the step ends; a lie that only casts doubt on a number leaves the step to its criteria.
var lies = []struct {
	name   string
	moment int
	tell   func(s *scene)
	code   string
	status string
}{
	{"metrics planted before the job", begun, func(s *scene) {
		s.leave("outputs/metrics.jsonl", `{"step": 1, "split": "test", "name": "accuracy", "value": 1.0}`+"\n")
	}, "output_exists", contract.StatusBlocked},
	{"checkpoint planted with a time to come", begun, func(s *scene) {
		s.leave(newest, "{}")
		s.dated(newest, time.Now().Add(24*time.Hour))
	}, "output_exists", contract.StatusBlocked},

	{"checkpoint carried over with its old time", ended, func(s *scene) { s.dated(newest, s.exit.StartedAt.Add(-time.Hour)) }, "artifact_older_than_run", contract.StatusFailed},
	{"checkpoint dated after the job", ended, func(s *scene) { s.dated(newest, s.exit.EndedAt.Add(time.Hour)) }, "artifact_changed_after_run", contract.StatusFailed},
	{"checkpoint copied from before the job", ended, func(s *scene) { s.leave(newest, s.read(s.dir+"/step_handoff.yaml")) }, "artifact_copied", contract.StatusFailed},
	{"checkpoint planted afterwards", validated, func(s *scene) {
		s.leave(newest, s.output("checkpoints/epoch-0035.json"))
	}, "artifact_edited", contract.StatusFailed},
	{"checkpoint truncated", ended, func(s *scene) { s.leave(newest, s.output(newest)[:9000]) }, "checkpoint_truncated", contract.StatusFailed},
	{"checkpoint without its marker", ended, func(s *scene) { s.remove(newest + ".complete.json") }, "checkpoint_no_marker", contract.StatusSuccess},
	{"marker of another file", ended, func(s *scene) {
		s.leave(newest+".complete.json", s.output("checkpoints/epoch-0035.json.complete.json"))
	}, "checkpoint_marker_mismatch", contract.StatusFailed},
	{"one checkpoint under two names", ended, func(s *scene) {
		s.leave("checkpoints/epoch-0050.json", s.output(newest))
		s.leave("checkpoints/epoch-0050.json.complete.json", strings.ReplaceAll(s.output(newest+".complete.json"), `"epoch": 40`, `"epoch": 50`))
	}, "checkpoint_marker_mismatch", contract.StatusFailed},
	{"best checkpoint that nobody has seen", ended, func(s *scene) {
		s.leave("outputs/summary.json", strings.Replace(strings.Replace(s.output("outputs/summary.json"), `"epoch": 40`, `"epoch": 12`, 1), `"step": 1000`, `"step": 300`, 1))
	}, "best_checkpoint_missing", contract.StatusFailed},

	{"metrics of another day", ended, func(s *scene) {
		s.metric("", "", "time", func(_ int, v float64) any { return v - 86400 })
	}, "metrics_time_outside_job", contract.StatusFailed},
	{"NaN dropped with its rows", ended, func(s *scene) {
		s.metric("", "", "value", func(epoch int, v float64) any {
			if epoch > 20 && epoch < 24 {
				return nil
			}
			return v
		})
	}, "steps_gap", contract.StatusSuccess},
	{"NaN dropped from one series", ended, func(s *scene) {
		s.metric("train", "loss", "value", func(epoch int, v float64) any {
			if epoch == 21 {
				return nil
			}
			return v
		})
	}, "values_filtered", contract.StatusSuccess},
	{"NaN printed and not logged", ended, func(s *scene) {
		s.edit(s.job+"/"+jobs.StdoutFile, "train/loss ", "train/loss nan was ")
	}, "values_filtered", contract.StatusFailed},
	{"NaN logged as if it were nothing", ended, func(s *scene) {
		s.rows("outputs/metrics.jsonl", func(n int, line string) string {
			if n == 60 {
				return regexp.MustCompile(`"value": [^,]+`).ReplaceAllString(line, `"value": NaN`)
			}
			return line
		})
	}, "metric_nonfinite", contract.StatusFailed},
	{"curve that never moves", ended, func(s *scene) { s.metric("train", "loss", "value", func(int, float64) any { return 0.354573 }) }, "series_flat", contract.StatusSuccess},
	{"curve pasted twice", ended, func(s *scene) {
		earlier := map[int]float64{}
		s.metric("train", "loss", "value", func(epoch int, v float64) any {
			if earlier[epoch] = v; epoch > 20 {
				return earlier[epoch-20]
			}
			return v
		})
	}, "series_copied", contract.StatusSuccess},
	{"validation copied from training", ended, func(s *scene) {
		train := map[int]float64{}
		s.metric("train", "loss", "value", func(epoch int, v float64) any { train[epoch] = v; return v })
		s.metric("val", "loss", "value", func(epoch int, _ float64) any { return train[epoch] })
	}, "series_identical", contract.StatusFailed},
	{"fewer epochs than the summary says", ended, func(s *scene) {
		s.metric("", "", "value", func(epoch int, v float64) any {
			if epoch > 30 {
				return nil
			}
			return v
		})
	}, "summary_contradicts", contract.StatusFailed},
	{"fewer epochs than the plan", ended, func(s *scene) {
		s.metric("", "", "value", func(epoch int, v float64) any {
			if epoch > 30 {
				return nil
			}
			return v
		})
		s.leave("outputs/summary.json", `{"status": "completed"}`)
	}, "epochs_short_of_plan", contract.StatusSuccess},
	{"more epochs than the plan", ended, func(s *scene) {
		s.rows("outputs/metrics.jsonl", func(_ int, line string) string {
			if strings.Contains(line, `"epoch": 40`) {
				return line + "\n" + strings.NewReplacer(`"epoch": 40`, `"epoch": 41`, `"step": 1000`, `"step": 1025`).Replace(line)
			}
			return line
		})
	}, "epochs_beyond_plan", contract.StatusFailed},
	{"summary that says failed", ended, func(s *scene) {
		s.leave("outputs/summary.json", strings.Replace(s.output("outputs/summary.json"), "completed", "failed", 1))
	}, "summary_contradicts", contract.StatusFailed},
	{"best value of the summary invented", ended, func(s *scene) {
		s.leave("outputs/summary.json", regexp.MustCompile(`"value": [0-9.]+`).ReplaceAllString(s.output("outputs/summary.json"), `"value": 0.01`))
	}, "summary_contradicts", contract.StatusFailed},
	{"exit status 0 after a crash", ended, func(s *scene) {
		s.write(s.job+"/"+jobs.StderrFile, "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    main()\nRuntimeError: half done\n")
	}, "exit_zero_after_exception", contract.StatusFailed},

	{"metric that the predictions contradict", ended, func(s *scene) { s.metric("test", "accuracy", "value", func(int, float64) any { return 0.9993 }) }, "metric_contradicted", contract.StatusFailed},
	{"predictions for other ids", ended, func(s *scene) {
		s.rows(testRows, func(_ int, line string) string { return firstID.ReplaceAllString(line, `"id": "9$1"`) })
	}, "prediction_id_foreign", contract.StatusFailed},
	{"test predictions are those of validation", ended, func(s *scene) { s.leave(testRows, s.output("outputs/predictions-val.jsonl")) }, "prediction_id_foreign", contract.StatusFailed},
	{"targets bent to the predictions", ended, func(s *scene) {
		s.rows(testRows, func(_ int, line string) string {
			return regexp.MustCompile(`"target": "\w+", "prediction": "(\w+)"`).ReplaceAllStringFunc(line, func(string) string { return `"target": "benign", "prediction": "benign"` })
		})
	}, "target_mismatch", contract.StatusFailed},
	{"one sample counted twice", ended, func(s *scene) {
		s.rows(testRows, func(n int, line string) string {
			if n == 0 {
				return line + "\n" + line
			}
			return line
		})
	}, "prediction_id_duplicate", contract.StatusFailed},
	{"hard samples left out", ended, func(s *scene) {
		s.rows(testRows, func(n int, line string) string {
			if n < 5 {
				return ""
			}
			return line
		})
	}, "prediction_missing", contract.StatusFailed},

	{"predictions flipped before anybody looked, with their time put back", ended, func(s *scene) {
		s.late = true
		path := filepath.Join(s.work, "code", testRows)
		info, err := os.Stat(path)
		if err != nil {
			s.t.Fatal(err)
		}
		s.leave(testRows, strings.Replace(s.output(testRows), `"prediction": "benign"`, `"prediction": "malignant"`, 1))
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			s.t.Fatal(err)
		}
	}, "artifact_edited", contract.StatusFailed},
	{"checkpoint planted before anybody looked, dated into the job", ended, func(s *scene) {
		s.late = true
		s.leave("checkpoints/epoch-0099.json", s.output(newest))
		if err := os.Chtimes(filepath.Join(s.work, "code/checkpoints/epoch-0099.json"), s.exit.StartedAt, s.exit.StartedAt); err != nil {
			s.t.Fatal(err)
		}
	}, "artifact_added_after_run", contract.StatusSuccess},

	{"predictions deleted afterwards", validated, func(s *scene) { s.remove(testRows) }, "artifact_missing", contract.StatusFailed},
	{"checkpoint deleted afterwards", validated, func(s *scene) { s.remove(newest) }, "artifact_missing", contract.StatusFailed},
	{"predictions flipped afterwards", validated, func(s *scene) {
		s.leave(testRows, strings.Replace(s.output(testRows), `"prediction": "benign"`, `"prediction": "malignant"`, 1))
	}, "artifact_edited", contract.StatusFailed},
	{"metrics cut afterwards", validated, func(s *scene) { s.leave("outputs/metrics.jsonl", s.output("outputs/metrics.jsonl")[:5000]) }, "artifact_edited", contract.StatusFailed},
	{"predictions and the list of outputs, forged together", validated, func(s *scene) {
		was := rundir.HashBytes([]byte(s.output(testRows)))
		s.leave(testRows, strings.Replace(s.output(testRows), `"prediction": "benign"`, `"prediction": "malignant"`, 1))
		s.edit(s.job+"/"+outputsFile, was, rundir.HashBytes([]byte(s.output(testRows))))
	}, "artifact_edited", contract.StatusFailed},
	{"exit record edited", validated, func(s *scene) { s.edit(s.job+"/"+jobs.ExitFile, `"peak_rss_bytes": `, `"peak_rss_bytes": 1`) }, "artifact_edited", contract.StatusFailed},
	{"runtime_result.json edited", validated, func(s *scene) { s.edit(s.work+"/"+runtimeResult, `"exit_code": 0`, `"exit_code": 7`) }, "artifact_edited", ""},
	{"claims.json edited", validated, func(s *scene) { s.edit(s.work+"/"+claimsFile, "0.98", "0.99") }, "artifact_edited", ""},
	{"code in the snapshot edited", validated, func(s *scene) { s.edit(s.job+"/snapshot/project/train.py", "default=60", "default=61") }, "snapshot_altered", contract.StatusFailed},
	{"snapshot edited before anybody looked", ended, func(s *scene) { s.edit(s.job+"/snapshot/project/train.py", "default=60", "default=61") }, "snapshot_altered", contract.StatusFailed},
	{"test part edited", validated, func(s *scene) { s.edit(s.work+"/code/data/test.csv", "malignant", "benign") }, "artifact_edited", ""},
}

// rowFindings are about one row, and name its line.
var rowFindings = map[string]bool{"metric_contradicted": true, "metric_nonfinite": true, "metrics_time_outside_job": true, "values_filtered": true, "steps_gap": true,
	"prediction_id_foreign": true, "prediction_id_duplicate": true, "target_mismatch": true}

// Every lie is caught by the finding that names it; the honest run it departs from has none.
func TestLies(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	wantStatus(t, s.honest, contract.StatusSuccess)
	if len(s.honest.Findings) > 0 || len(s.honest.ExecutionResult.Observation.Risks) > 0 {
		t.Fatalf("the honest run has findings:\n%s", listFindings(s.honest.Findings))
	}
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			s.t = t
			s.back(lie.moment)
			s.late = false
			lie.tell(s)
			if lie.moment == ended && !s.late {
				s.asTheJobLeftIt()
			}
			s.open()
			var before []finding.Finding
			if lie.moment != begun {
				status, err := s.trainer.Engine.RunStatus(t.Context(), s.runID)
				if err != nil {
					t.Fatal(err)
				}
				before = status.Findings
			}
			answer := s.walk()
			got := wantCode(t, finding.Merge(before, answer.Findings), lie.code)
			if got.Where == nil || got.Where.Path == "" {
				t.Errorf("the finding has no place: %s", got)
			}
			if rowFindings[lie.code] && got.Where != nil && got.Where.Line == 0 {
				t.Errorf("the finding names no line: %s", got)
			}
			if lie.status != "" {
				wantStatus(t, answer, lie.status)
			}
			if lie.status == contract.StatusSuccess && !strings.Contains(fmt.Sprint(answer.ExecutionResult.Observation.Risks), lie.code) {
				t.Errorf("the doubt is not among the risks: %v", answer.ExecutionResult.Observation.Risks)
			}
		})
	}
}

// A run that resumes goes on where its checkpoint stood: the rows of before are not its own and say nothing against it. One
// that trains from the beginning is caught, although it wrote every row itself.
func TestResumeThatStartsOver(t *testing.T) {
	t.Parallel()
	first := newFixture(t)
	thirty := 30
	first.handoff.Inputs.Parameters.EpochsOrSteps = &thirty
	done := first.walk()
	wantStatus(t, done, contract.StatusSuccess)
	for code, edit := range map[string][2]string{
		"":                 {"", ""},
		"resume_restarted": {"resumed_state(config, data) if config.resume else", "None or"},
	} {
		t.Run("code "+code, func(t *testing.T) {
			f := newFixture(t)
			if edit[0] != "" {
				f.edit("train.py", edit[0], edit[1])
			}
			for _, name := range []string{"checkpoints/epoch-0020.json", "checkpoints/epoch-0020.json.complete.json", "outputs/metrics.jsonl"} {
				f.write("runs/a/"+name, first.read(first.code(done, name)))
			}
			old := time.Now().Add(-time.Hour) // as the rows say
			rows := regexp.MustCompile(`"time": [0-9.]+`).ReplaceAllString(f.read(f.dir+"/runs/a/outputs/metrics.jsonl"), fmt.Sprintf(`"time": %d`, old.Unix()))
			f.write("runs/a/outputs/metrics.jsonl", rows)
			f.handoff.Inputs.Parameters.EpochsOrSteps = &thirty
			f.handoff.Inputs.Runtime.CodeSaveDir = "runs/a"
			f.handoff.Inputs.Checkpoint.ResumeCheckpoint = "runs/a/checkpoints/epoch-0020.json"
			answer := f.walk()
			if code != "" {
				wantCode(t, answer.Findings, code)
				wantStatus(t, answer, contract.StatusFailed)
				return
			}
			wantStatus(t, answer, contract.StatusSuccess)
			for _, found := range answer.Findings {
				if found.Code != "baseline_not_beaten" {
					t.Errorf("an honest resume has the finding %s", found)
				}
			}
		})
	}
}

// Of a run that was started elsewhere nothing is known but its files: every number says so, and files that contradict their own
// times, or that change after they were adopted, carry no number at all.
func TestLiesOfAnAdoptedRun(t *testing.T) {
	t.Parallel()
	donor := newFixture(t)
	done := donor.walk()
	wantStatus(t, done, contract.StatusSuccess)
	f := newFixture(t)
	metricsFile := filepath.Join(f.dir, "elsewhere/outputs/metrics.jsonl")
	if err := os.CopyFS(filepath.Join(f.dir, "elsewhere"), os.DirFS(donor.code(done, "."))); err != nil {
		t.Fatal(err)
	}
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentValidateOnly
	first := f.walk()
	adopt := map[string]any{"adopt": map[string]any{"path": "elsewhere", "job_id": "81234"}}
	honest := f.phase(6, first.Run.RunID, adopt)
	wantStatus(t, honest, contract.StatusPartial)
	wantCode(t, honest.Findings, "evidence_external")
	for _, c := range readClaims(t, f, f.file(honest, claimsFile)) {
		if !strings.Contains(c.Note, "external") {
			t.Errorf("claim %s of %s/%s does not say that it is external: %q", c.ID, c.Split, c.Metric, c.Note)
		}
	}
	report := f.read(f.file(honest, contract.FileValidationReport))
	if !strings.Contains(report, "the evidence is external") || !strings.Contains(report, "job `81234`") {
		t.Errorf("the report does not say that the run is external:\n%s", report)
	}

	original := f.read(metricsFile)
	f.write(metricsFile, strings.Replace(original, `"value": 0.`, `"value": 0.0`, 1))
	edited, err := f.try(contract.Call{RunID: first.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, edited, contract.StatusFailed)
	wantCode(t, edited.Findings, "artifact_edited")

	f.write(metricsFile, original)
	old := time.Now().Add(-30 * 24 * time.Hour)
	if err := os.Chtimes(metricsFile, old, old); err != nil {
		t.Fatal(err)
	}
	dated := f.phase(6, first.Run.RunID, adopt)
	wantStatus(t, dated, contract.StatusFailed)
	wantCode(t, dated.Findings, "artifact_backdated")
}
