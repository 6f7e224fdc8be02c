package trainer

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
)

// render is validation_report.md: the verdict, each number with its level and place, and what could not be checked.
func (w *validationWork) render() []byte {
	run := w.step.Run
	var m markdown
	m.line("# Validation report")
	m.line("\nRun %s: %s", code(run.ID), cellText(run.Handoff.StepGoal))
	status := w.out.Step
	if status == "" {
		status = contract.StatusSuccess
	}
	m.line("\n**%s**: %s.", status, w.out.Summary)
	if w.jobFailed {
		m.line("\n**The job failed**, as runtime_result.json tells. What it left was looked at all the same; nothing below makes the step a success.")
	}
	w.renderCriteria(&m)
	w.renderNumbers(&m)
	w.renderBaselines(&m)
	w.renderCurve(&m)
	w.renderJob(&m)
	w.renderCheckpoints(&m)
	w.renderFindings(&m)
	return []byte(m.String())
}

// renderCriteria tells of each criterion whether it is met, by which value and at which level.
func (w *validationWork) renderCriteria(m *markdown) {
	m.heading(2, "Criteria")
	var rows [][]string
	for _, j := range w.criteria {
		verdict, value, level := "not met", "—", "—"
		if j.Met {
			verdict = "met"
		}
		if j.Claim != nil {
			value, level = fmt.Sprintf("%.6g", j.Claim.Value), j.Claim.Level
		} else {
			verdict = "unknown"
		}
		rows = append(rows, []string{code(j.Text), verdict, value, level, j.Problem})
	}
	m.table("No completion criterion was given.", []string{"criterion", "verdict", "value", "level", "note"}, rows)
	m.line("\nLevels: `logged` means that the script said so; `recomputed` means that trainwright computed the number from the predictions and the targets of the data.")
}

// renderNumbers lists the claims with the place that each is from.
func (w *validationWork) renderNumbers(m *markdown) {
	m.heading(2, "Numbers")
	var rows [][]string
	for _, c := range w.claims {
		n := ""
		if c.N > 0 {
			n = fmt.Sprint(c.N)
		}
		from := ""
		if len(c.From) > 0 {
			from = fmt.Sprintf("%s bytes %d–%d", code(c.From[0].Path), c.From[0].Start, c.From[0].End)
		}
		interval := ""
		if len(c.Interval) == 2 {
			interval = fmt.Sprintf("%.4g to %.4g", c.Interval[0], c.Interval[1])
		}
		rows = append(rows, []string{c.ID, c.Split + "/" + c.Metric, fmt.Sprintf("%.6g", c.Value), interval, c.Level, n, from, c.Note})
	}
	m.table("No number could be read from a file.", []string{"id", "metric", "value", "95 % interval", "level", "n", "from", "note"}, rows)
}

// renderFindings lists the checks, what was found, also in earlier phases, and what could not be checked.
func (w *validationWork) renderFindings(m *markdown) {
	m.heading(2, "Checks")
	var rows [][]string
	for _, c := range w.out.Gate.Checks {
		rows = append(rows, []string{c.Name, map[bool]string{true: "ok", false: "NOT OK"}[c.OK], c.Why})
	}
	m.table("None.", []string{"check", "", "what was seen"}, rows)
	m.heading(2, "Findings")
	var found []string
	for _, f := range w.out.Findings {
		if f.Severity != finding.Note {
			found = append(found, fmt.Sprintf("%s %s", f.Severity, f))
		}
	}
	m.list("None.", append(found, w.earlierWarnings()...))
	m.heading(2, "Not checked")
	m.list("Nothing.", w.unchecked)
}

// earlierWarnings are what phases 0 to 5 found and did not stop at.
func (w *validationWork) earlierWarnings() []string {
	var out []string
	for _, phase := range contract.Phases[:6] {
		record, err := w.step.Run.Dir.Record(phase)
		if err != nil || record == nil {
			continue
		}
		for _, f := range record.Findings {
			if f.Severity != finding.Note {
				out = append(out, fmt.Sprintf("%s (phase %s) %s", f.Severity, phase[:1], f))
			}
		}
	}
	return out
}

// renderCurve shows how each series went: first, best, last.
func (w *validationWork) renderCurve(m *markdown) {
	m.heading(2, "Course of the training")
	if w.out.Files[curveFile] != nil {
		m.line("![course of the training](%s)\n", curveFile)
	}
	var rows [][]string
	if w.log != nil {
		for _, key := range w.log.Names {
			rows = append(rows, curveRow(key, w.log.Series(key)))
		}
	}
	m.table("No metrics were read.", []string{"series", "values", "first", "lowest", "highest", "last"}, rows)
	if w.best.From != "" {
		m.line("\nBest checkpoint by %s: %s.", code(w.best.From), w.best)
	}
}

func curveRow(key metrics.Key, points []metrics.Point) []string {
	row := []string{key.String(), fmt.Sprint(len(points)), "—", "—", "—", "—"}
	if len(points) == 0 {
		return row
	}
	low, high := points[0], points[0]
	for _, p := range points {
		if p.NonFinite != "" {
			continue
		}
		if low.NonFinite != "" || p.Value < low.Value {
			low = p
		}
		if high.NonFinite != "" || p.Value > high.Value {
			high = p
		}
	}
	row[2], row[3], row[4], row[5] = pointText(points[0]), pointText(low), pointText(high), pointText(points[len(points)-1])
	return row
}

// pointText is a value in six digits, or what it is instead of a number.
func pointText(p metrics.Point) string {
	if p.NonFinite != "" {
		return p.NonFinite
	}
	return fmt.Sprintf("%.6g", p.Value)
}

func (w *validationWork) renderJob(m *markdown) {
	m.heading(2, "Job")
	if w.external {
		job := ""
		if w.given.Adopt != nil && w.given.Adopt.JobID != "" {
			job = ", job " + code(w.given.Adopt.JobID)
		}
		m.line("External: started elsewhere (%s%s). Exit status and times are unknown to trainwright; nothing vouches for these files.", code(w.base), job)
		w.renderOutputs(m)
		return
	}
	r := w.result
	m.line("- job %s on %s (%s), %s", code(r.JobID), r.Target, r.Channel, exitText(w.exit))
	if w.exit != nil {
		m.line("- %s to %s, %.2f s, peak memory %.1f MB", r.StartedAt, r.EndedAt, w.exit.Seconds, float64(w.exit.PeakRSSBytes)/1e6)
	}
	m.line("- command: %s", code(r.Command))
	m.line("- logs: %s", code(strings.Join(r.LogPaths, ", ")))
	w.renderOutputs(m)
}

func (w *validationWork) renderOutputs(m *markdown) {
	m.heading(3, "Outputs")
	var rows [][]string
	for i, o := range w.outputs {
		if i == 60 {
			m.line("The first 60 of %d:\n", len(w.outputs))
			break
		}
		rows = append(rows, []string{code(o.Path), fmt.Sprint(o.Bytes), shortHash(o.SHA256)})
	}
	m.table("None.", []string{"file", "bytes", "sha256"}, rows)
}

func (w *validationWork) renderCheckpoints(m *markdown) {
	m.heading(2, "Checkpoints")
	var rows [][]string
	for _, c := range w.checkpoints {
		at := "—"
		if c.Epoch != nil {
			at = fmt.Sprintf("%g", *c.Epoch)
		}
		written := c.ModTime.UTC().Format(time.RFC3339)
		if w.exit != nil {
			written = fmt.Sprintf("%.1f s before the end", max(0, w.exit.EndedAt.Sub(c.ModTime).Seconds()))
		}
		rows = append(rows, []string{code(w.rel(c.Path)), at, written, c.Format, c.Complete, strings.Join(c.Holds, ", ")})
	}
	m.table("None.", []string{"file", "epoch", "written", "format", "complete", "holds"}, rows)
}

// closeSummary words the summary of an answer: what it is about, and for a step that ended execution and validation
// status, folders and what is unresolved (design.md).
func closeSummary(run *engine.Run, answer engine.Envelope) string {
	status := answer.Run.PhaseStatus
	said := answer.ExecutionResult.Observation.Summary
	if answer.Run.NextCall != nil && answer.ExecutionResult.Status == contract.StatusPartial && answer.Run.Job == nil && len(answer.Needs) == 0 {
		return said
	}
	blockers := "none"
	if missing := answer.ExecutionResult.Observation.Missing; len(missing) > 0 {
		blockers = strings.Join(missing, ", ")
	} else if answer.ExecutionResult.Status == contract.StatusBlocked || answer.ExecutionResult.Status == contract.StatusFailed {
		for _, f := range answer.Findings {
			if f.Severity == finding.Error {
				blockers = f.Code
				break
			}
		}
	}
	return fmt.Sprintf("%s. Execution: %s; validation: %s; code_save_dir %s; trainer_workdir %s; unresolved: %s.", said, status[contract.PhaseExecution], status[contract.PhaseValidation],
		run.Roots.Rel(run.CodeSaveDir), run.Roots.Rel(run.Workdir), blockers)
}
