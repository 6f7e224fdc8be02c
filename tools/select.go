package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Toolsets are the sets by which a list can be narrowed.
var Toolsets = []string{SetTrainer, SetRuntime, SetWorkspace, SetSkills}

// Selection says which tools a server offers. The zero value is all of them.
type Selection struct {
	ReadOnly bool     // only those that change nothing
	Toolsets []string // only those of these sets; all sets when empty
}

// Of gives the tools that are selected, in their order, and for each other one why it is not.
func (s Selection) Of(all []Tool) (selected []Tool, withheld map[string]string, err error) {
	for _, set := range s.Toolsets {
		if !slices.Contains(Toolsets, set) {
			near := ""
			if n := finding.Nearest(set, Toolsets); n != "" {
				near = fmt.Sprintf("; did you mean %q?", n)
			}
			return nil, nil, fmt.Errorf("there is no toolset %q, there are %s%s", set, strings.Join(Toolsets, ", "), near)
		}
	}
	withheld = map[string]string{}
	for _, t := range all {
		switch {
		case s.ReadOnly && !t.Annotations.ReadOnly:
			withheld[t.Name] = "this server was started with --read-only"
		case len(s.Toolsets) > 0 && !slices.Contains(s.Toolsets, t.Toolset):
			withheld[t.Name] = "this server was started with --toolsets " + strings.Join(s.Toolsets, ",") + ", and it belongs to " + t.Toolset
		default:
			selected = append(selected, t)
		}
	}
	return selected, withheld, nil
}
