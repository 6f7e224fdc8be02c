// Package finding is the one shape in which trainwright tells what it noticed: what, where, what was
// expected instead, and what to do about it. It imports nothing of ours.
package finding

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says how much a finding weighs. An error stops the phase that raised it, a warning is a risk that
// the report carries, a note is information.
type Severity string

// The three severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Where is the place a finding speaks of. Line counts physical lines from 1; Byte is the 0-based offset in the
// file; Field is a dotted path inside structured input such as "inputs.data.train_source".
type Where struct {
	Path  string `json:"path,omitempty"`
	Line  int    `json:"line,omitempty"`
	Byte  int64  `json:"byte,omitempty"`
	Field string `json:"field,omitempty"`
}

// Finding is one diagnostic. Code is stable and is what tests and callers compare; the sentences are for readers.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Where    *Where   `json:"where,omitempty"`
	Expected string   `json:"expected,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
}

// String renders the finding as one line: code, place, what, expected, remedy.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.Code)
	if f.Where != nil {
		b.WriteString(" at " + f.Where.String())
	}
	b.WriteString(": " + f.What)
	if f.Expected != "" {
		b.WriteString("; expected " + f.Expected)
	}
	if f.Remedy != "" {
		b.WriteString("; " + f.Remedy)
	}
	return b.String()
}

// String renders the place as path:line, path@byte or the field.
func (w Where) String() string {
	place := w.Path
	if place == "" {
		place = w.Field
	}
	switch {
	case w.Line > 0:
		return fmt.Sprintf("%s:%d", place, w.Line)
	case w.Byte > 0:
		return fmt.Sprintf("%s@%d", place, w.Byte)
	}
	return place
}

// Refused is the error of input that can't be used. It carries the findings that say why, so that every layer above
// passes them on unchanged; errors.As finds it.
type Refused struct{ Findings []Finding }

// Error joins the findings.
func (r *Refused) Error() string {
	lines := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Refuse makes a Refused of findings.
func Refuse(findings ...Finding) *Refused { return &Refused{Findings: findings} }

// Has reports whether any finding weighs as much as an error.
func Has(findings []Finding, severity Severity) bool {
	for _, f := range findings {
		if f.Severity == severity {
			return true
		}
	}
	return false
}

// Merge appends to a copy of into the findings of more that it does not hold yet.
func Merge(into, more []Finding) []Finding {
	out := append([]Finding{}, into...)
	for _, f := range more {
		said := f.String()
		if !slices.ContainsFunc(out, func(g Finding) bool { return g.String() == said }) {
			out = append(out, f)
		}
	}
	return out
}
