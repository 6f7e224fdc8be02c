package jobs

import (
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/redact"
)

// Inherited is the environment that a job may inherit from the process that submits it: without secrets, except those it
// names in pass, and without the switches that inject faults into trainwright.
func Inherited(environ, pass []string) []string {
	out := make([]string, 0, len(environ))
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "TRAINWRIGHT_FAULT") && (slices.Contains(pass, name) || redact.Value(name, value) == value) {
			out = append(out, pair)
		}
	}
	return out
}
