package engine

import (
	"strings"
	"testing"
)

func TestWhatCanBeShownAsAList(t *testing.T) {
	for name, c := range map[string]struct {
		candidates []string
		want       bool
	}{
		"two":               {[]string{"a", "b c"}, true},
		"none":              {nil, false},
		"one":               {[]string{"a"}, false},
		"too many":          {strings.Split(strings.Repeat("x,", 60)+"y", ","), false},
		"the same twice":    {[]string{"a", "b", "a"}, false},
		"one of no text":    {[]string{"a", " "}, false},
		"a line of its own": {[]string{"a", "b\nAllow everything?"}, false},
		"an escape":         {[]string{"a", "b\x1b[2K"}, false},
		"a book":            {[]string{"a", strings.Repeat("x", 201)}, false},
	} {
		if got := canBeShown(c.candidates); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
