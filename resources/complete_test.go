package resources

import (
	"strings"
	"testing"
	"time"
)

// The arguments of every template are completed from what there is, and nothing that is not served is among it.
func TestCompletion(t *testing.T) {
	s, dir := project(t)
	folder := layJob(t, s, dir, "j-7", time.Unix(1_790_000_000, 0))
	write(t, folder+"/stdout.log", nil)
	own := map[string]string{"name": "own", "run_id": "r-20261130-aaaa", "job_id": "j-7"}
	for _, c := range []struct{ template, argument, written, want string }{
		{"workspace:///{+path}{?offset,limit}", "path", "", ".agents/ .env.example .gitignore .onescience/ 100%25.txt config.yaml data/ deploy/ model/ reports/ runs/"},
		{"workspace:///{+path}{?offset,limit}", "path", "data/t", "data/train.csv"},
		{"workspace:///{+path}{?offset,limit}", "path", "reports/with%20", "reports/with%20space%20&%20%C3%A4.md"},
		{"workspace:///{+path}{?offset,limit}", "path", ".env", ".env.example"},
		{"workspace:///{+path}{?offset,limit}", "path", "data/raw/", ""},
		{"workspace:///{+path}{?offset,limit}", "path", "../", ""},
		{"workspace:///{+path}{?offset,limit}", "path", "config.yaml/", ""},
		{"workspace:///{+path}{?offset,limit}", "offset", "", ""},
		{"skill://{name}/{+path}", "name", "o", "onescience-trainer own"},
		{"skill://{name}/{+path}", "path", "", "SKILL.md refs/deep.md"},
		{"run://{run_id}/{+artifact}{?offset,limit}", "run_id", "r-2026", "r-20261130-aaaa"},
		{"run://{run_id}/{+artifact}{?offset,limit}", "artifact", "", "training_plan.md facts.json"},
		{"job://{job_id}", "job_id", "", "j-7"},
		{"job://{job_id}/{+file}{?offset,limit}", "file", "std", "stdout.log"},
		{"file://{x}", "x", "", ""},
	} {
		got, err := s.Complete(t.Context(), c.template, c.argument, c.written, own)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s %s %q: got %v, want %s (%v)", c.template, c.argument, c.written, got, c.want, err)
		}
	}
	for _, argument := range []string{"artifact", "path", "file"} {
		for _, template := range []string{"skill://{name}/{+path}", "run://{run_id}/{+artifact}", "job://{job_id}/{+file}"} {
			if got, err := s.Complete(t.Context(), template, argument, "", map[string]string{"name": "none", "run_id": "..", "job_id": ".."}); err != nil || len(got) > 0 {
				t.Errorf("%s of nothing: %v, %v", template, got, err)
			}
		}
	}
}
