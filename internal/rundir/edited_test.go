package rundir

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a hand changed is shown as lines of both texts.
func TestEdit(t *testing.T) {
	const rendered = "# Plan\n\n| epochs | 20 |\n| seed | 17 |\n\nNothing.\n"
	for name, c := range map[string]struct {
		edited  string
		added   []int
		removed int
		short   string
	}{
		"a value":       {"# Plan\n\n| epochs | 30 |\n| seed | 17 |\n\nNothing.\n", []int{2}, 1, "@@ -1,6 +1,6 @@\n-| epochs | 20 |\n+| epochs | 30 |"},
		"a line more":   {"# Plan\n\n| epochs | 20 |\n| seed | 17 |\n\nNothing.\nAsk Ada.", []int{6}, 0, "@@ -4,3 +4,4 @@\n+Ask Ada."},
		"a line less":   {"# Plan\n\n| epochs | 20 |\n\nNothing.\n", nil, 1, "@@ -1,6 +1,5 @@\n-| seed | 17 |"},
		"two places":    {"# My plan\n\n| epochs | 20 |\n| seed | 17 |\n| loss | mse |\n\nNothing.\n", []int{0, 4}, 1, "@@ -1,6 +1,7 @@\n-# Plan\n+# My plan\n+| loss | mse |"},
		"all of it":     {"", nil, 6, "@@ -1,6 +0,0 @@\n-# Plan\n-\n-| epochs | 20 |\n-| seed | 17 |\n-\n-Nothing."},
		"Windows' ends": {strings.ReplaceAll(rendered, "\n", "\r\n"), nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := Edit{Name: "plan.md", Rendered: []byte(rendered), Edited: []byte(c.edited)}
			added, removed := e.Lines()
			if diff := cmp.Diff(c.added, added); diff != "" || removed != c.removed {
				t.Errorf("removed %d, added %s", removed, diff)
			}
			if got := e.shortDiff(); got != c.short {
				t.Errorf("shown as\n%s\nwant\n%s", got, c.short)
			}
		})
	}
	long := Edit{Name: "plan.md", Edited: []byte(strings.Repeat("a line that somebody wrote\n", 100))}
	if got := long.shortDiff(); !strings.HasSuffix(got, "and 89 more changed lines") || strings.Count(got, "\n") != 12 {
		t.Errorf("long edits are shown as\n%s", got)
	}
}

// An edit that was kept gives way to the next rendering and stays in the edits folder.
func TestKeepEdit(t *testing.T) {
	d := Dir{t.TempDir()}
	render := func(text string) {
		t.Helper()
		if _, f, err := d.WriteArtifact("plan.md", []byte(text)); f != nil || err != nil {
			t.Fatal(f, err)
		}
	}
	render("v1\n")
	put(t, d.Abs("plan.md"), "mine\n")
	edit, err := d.Edited("plan.md")
	if err != nil || string(edit.Rendered) != "v1\n" || string(edit.Edited) != "mine\n" {
		t.Fatalf("%+v, %v", edit, err)
	}
	kept, err := d.KeepEdit(*edit)
	if err != nil {
		t.Fatal(err)
	}
	render("v2\n")
	copied, err := os.ReadFile(d.Abs(kept))
	if err != nil || string(copied) != "mine\n" {
		t.Errorf("%s holds %q, %v", kept, copied, err)
	}
	if edit, err := d.Edited("plan.md"); edit != nil || err != nil {
		t.Errorf("still edited: %+v, %v", edit, err)
	}
}
