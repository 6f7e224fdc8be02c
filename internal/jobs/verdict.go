package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Conclude is the verdict on a job that has an exit record: the stored one, else it is derived and stored, so that files
// which change after the job do not change what was said about it. Nil where there is no exit record yet.
func Conclude(folder string, req Request) (*Verdict, *Exit, error) {
	if _, err := os.Lstat(filepath.Join(folder, ExitFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	stored, err := ReadVerdict(folder)
	if err != nil {
		return nil, nil, err
	}
	if stored != nil && Terminal(stored.State) && stored.Exit != nil {
		return stored, stored.Exit, nil
	}
	exit, err := ReadExit(folder)
	if err != nil || exit == nil {
		return nil, nil, err
	}
	verdict := Judge(folder, req, *exit)
	verdict.Exit = exit
	if state, err := ReadState(folder); err == nil && state != nil {
		verdict.PID, verdict.StartTicks = state.PID, state.StartTicks
	}
	if rundir.MayWrite() != nil {
		return &verdict, exit, nil // it is derived anew each time
	}
	if err := rundir.WriteJSON(filepath.Join(folder, VerdictFile), verdict); err != nil {
		return &verdict, exit, fmt.Errorf("keep the verdict on job %s: %w", req.JobID, err)
	}
	return &verdict, exit, nil
}

// Judge derives the verdict from the exit record, the expected outputs and, for a failure, the logs. Success needs exit
// code 0, no exception at the end of stderr, and every expected output, written by this job.
func Judge(folder string, req Request, exit Exit) Verdict {
	verdict := Verdict{Evidence: []Evidence{{From: ExitFile, Says: exit.String(), At: exit.EndedAt}}}
	add := func(evidence ...Evidence) { verdict.Evidence = append(verdict.Evidence, evidence...) }
	switch {
	case exit.Reason == ReasonCancelled:
		verdict.State = StateCancelled
		add(cancelEvidence(folder, exit))
	case exit.Reason == ReasonWallTime:
		verdict.State = StateTimeout
		verdict.Cause = wallTimeCause(req)
	case exit.Reason == ReasonExited && exit.Code != nil && *exit.Code == 0:
		verdict.State = StateSucceeded
		evidence, cause := outputs(req, exit)
		add(evidence...)
		if f := ExceptionAtExitZero(folder); f != nil && f.Severity == finding.Error {
			cause = &Cause{Category: CategoryCode, Finding: *f}
			add(Evidence{From: "log", Says: f.Where.String() + ": " + f.What, At: exit.EndedAt})
		}
		if cause != nil {
			verdict.State, verdict.Cause = StateFailed, cause
		}
	default:
		verdict.State = StateFailed
		verdict.Cause = diagnoseExit(folder, exit)
		if where := verdict.Cause.Where; where != nil {
			add(Evidence{From: "log", Says: where.String() + ": " + verdict.Cause.What, At: exit.EndedAt})
		}
	}
	if exit.OutOfMemory != "" {
		add(Evidence{From: "cgroup", Says: "the kernel killed for memory: " + exit.OutOfMemory, At: exit.EndedAt})
	}
	if exit.LeftBehind > 0 {
		add(Evidence{From: ExitFile, Says: fmt.Sprintf("%d processes outlived the command and were ended", exit.LeftBehind), At: exit.EndedAt})
	}
	if len(exit.Survivors) > 0 {
		add(Evidence{From: ExitFile, Says: fmt.Sprintf("processes %v could not be ended", exit.Survivors), At: exit.EndedAt})
	}
	return verdict
}

// String is the record in words.
func (e Exit) String() string {
	how := "ended; nobody saw its exit status"
	switch {
	case e.Signal != nil:
		how = "was ended by " + *e.Signal
	case e.Code != nil:
		how = fmt.Sprintf("exited with code %d", *e.Code)
	}
	why := map[string]string{ReasonWallTime: ", its wall time was over", ReasonCancelled: ", it was cancelled"}[e.Reason]
	return fmt.Sprintf("the command %s after %.1f s%s", how, e.Seconds, why)
}

func cancelEvidence(folder string, exit Exit) Evidence {
	request, err := ReadCancel(folder)
	if err != nil || request == nil {
		return Evidence{From: "process", Says: "the supervisor was sent SIGTERM without a cancel request on file, as by a shutdown", At: exit.EndedAt}
	}
	says := "the end was asked for"
	if request.By != "" {
		says += " by " + request.By
	}
	return Evidence{From: CancelFile, Says: says, At: request.At}
}

func wallTimeCause(req Request) *Cause {
	return &Cause{Category: CategoryEnvironment, Finding: finding.Finding{Code: "wall_time_reached", Severity: finding.Error,
		What:     fmt.Sprintf("the job did not end within its wall time of %s", req.WallTime()),
		Where:    &finding.Where{Field: "wall_time_seconds"},
		Expected: "an end within the limit", Remedy: "resume from the last checkpoint, with a higher limit or less work"}}
}

// clockSlack forgives file systems that keep times in steps of up to 2 s (FAT).
const clockSlack = 2 * time.Second

// outputs checks what the job should have left. The first one that is missing or older than the job is the cause.
func outputs(req Request, exit Exit) ([]Evidence, *Cause) {
	var evidence []Evidence
	var cause *Cause
	fail := func(code, path, what, remedy string) {
		evidence = append(evidence, Evidence{From: "artifact", Says: what, At: exit.EndedAt})
		if cause == nil {
			cause = &Cause{Category: CategoryCode, Finding: finding.Finding{Code: code, Severity: finding.Error, What: what,
				Where: &finding.Where{Path: path}, Expected: "an output written by this job", Remedy: remedy}}
		}
	}
	for _, output := range req.ExpectedOutputs {
		path := output
		if !filepath.IsAbs(path) {
			path = filepath.Join(req.WorkDir, path)
		}
		newest, bytes, found := newestFile(path)
		switch {
		case !found:
			fail("expected_output_missing", path, fmt.Sprintf("the command exited 0 without writing %s", output),
				"see the log for what it wrote instead, or correct expected_outputs")
		case newest.Before(exit.StartedAt.Add(-clockSlack)):
			fail("artifact_older_than_run", path, fmt.Sprintf("%s was last changed %s, before the job started", output, newest.UTC().Format(time.RFC3339)),
				"it is from an earlier run; move it away and run again")
		default:
			evidence = append(evidence, Evidence{From: "artifact", Says: fmt.Sprintf("%s is there, %d bytes", output, bytes), At: newest.UTC()})
		}
	}
	return evidence, cause
}

// filesLooked bounds the walk through an expected directory.
const filesLooked = 10000

// newestFile is the latest change and the size of all regular files that path names: a file, a glob or a directory with
// everything in it. A directory without files counts as not there.
func newestFile(path string) (newest time.Time, bytes int64, found bool) {
	matches := []string{path}
	if _, err := os.Lstat(path); err != nil && strings.ContainsAny(path, "*?[") {
		matches, _ = filepath.Glob(path) // a malformed pattern matches nothing
	}
	looked := 0
	for _, match := range matches {
		if resolved, err := filepath.EvalSymlinks(match); err == nil {
			match = resolved // WalkDir does not follow its root
		}
		_ = filepath.WalkDir(match, func(_ string, entry fs.DirEntry, err error) error {
			if looked++; looked > filesLooked {
				return filepath.SkipAll
			}
			if err != nil || entry.IsDir() {
				return nil // what can't be seen is not there
			}
			info, err := entry.Info()
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
			found, bytes = true, bytes+info.Size()
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return nil
		})
	}
	return newest, bytes, found
}

// Concluded is the status of a job that has ended and been judged.
func Concluded(folder string, req Request, exit Exit, verdict Verdict) Status {
	status := NewStatus(folder, req)
	status.State, status.Evidence, status.Cause = verdict.State, verdict.Evidence, verdict.Cause
	status.PID, status.StartTicks = verdict.PID, verdict.StartTicks
	status.Exit, status.Seconds, status.PeakRSSBytes = &exit, exit.Seconds, exit.PeakRSSBytes
	if !exit.StartedAt.IsZero() {
		status.StartedAt = &exit.StartedAt
	}
	status.EndedAt = &exit.EndedAt
	return status
}

// NewStatus is a status with what the request alone says: who the job is and, with secrets masked, its command.
func NewStatus(folder string, req Request) Status {
	status := Status{JobID: req.JobID, RunID: req.RunID, State: StateQueued, Folder: folder, Command: make([]string, len(req.Command))}
	option := ""
	for i, word := range req.Command {
		status.Command[i] = redact.Value(option, word)
		option = ""
		if strings.HasPrefix(word, "-") {
			option = strings.TrimLeft(word, "-") // --token VALUE
		}
	}
	return status
}
