package jobs

import (
	"os/exec"
	"strings"
	"testing"
)

// What stands before runner.sh, for a person to read.
func TestRunnerShowsTheRequest(t *testing.T) {
	req := Request{JobID: "j-1", RunID: "r-7", Command: []string{"python3", "train.py", "--note", "it's <new>", ""}, WorkDir: "/srv/my code",
		Env: map[string]string{"OMP_NUM_THREADS": "2", "A": "$HOME"}, WallTimeSeconds: 3600, GraceSeconds: 60, Site: "hpc1", Marker: `tw-"7"`,
		Watch: []string{"/srv/my code", "/srv/data"}}
	want := `#!/bin/sh
# Runner of job j-1, rendered from request.json. Do not edit: it is rendered again.
tw_folder=/srv/jobs/j-1
tw_work_dir='/srv/my code'
tw_log_target=../../jobs/j-1
tw_job_id=j-1
tw_run_id=r-7
tw_state_head='  "site": "hpc1",
  "marker": "tw-\"7\"",
'
tw_watch_text='["/srv/my code","/srv/data"]'
tw_left_out='-name .git -o -name __pycache__ -o -name node_modules -o -name .onescience'
tw_warning=3540
tw_limit=3600
tw_grace=60
tw_environment() {
	:
	export A='$HOME'
	export OMP_NUM_THREADS=2
}
tw_command() {
	"$@" python3 train.py --note 'it'\''s <new>' ''
}
tw_watched() {
	"$@" '/srv/my code' /srv/data
}
`
	got := Runner(req, "/srv/jobs/j-1")
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got[:min(len(got), len(want))], want)
	}
	if path, err := exec.LookPath("sh"); err == nil {
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(got)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("sh -n: %v: %s", err, out)
		}
	}
}
