package suite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// watchedScript leaves a new file, changes an old one and gives it its old time again, and starts what writes once more when
// the command has ended already.
const watchedScript = `mkdir -p "outputs/it's \"new\" & <odd>"
printf new >"outputs/it's \"new\" & <odd>/größe.txt"
touch -r changed.txt stamp; printf changed >changed.txt; touch -r stamp changed.txt; rm stamp
(trap '' TERM; sleep 0.4; printf late >late.txt; sleep 60) &
echo ready
`

// watched: when a job turns terminal, left.json lists what its folders hold after its last process was gone, so that an edit
// afterwards is seen, also one with the old time and size.
func watched(t *testing.T, c Constructor) {
	root, outside := t.TempDir(), t.TempDir()
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for path, text := range map[string]string{filepath.Join(root, "old.txt"): "old", filepath.Join(root, "changed.txt"): "CHANGED",
		filepath.Join(root, "__pycache__", "train.pyc"): "compiled", filepath.Join(root, "odd\nname.txt"): "odd", filepath.Join(outside, "far.txt"): "far"} {
		writeOld(t, path, text, old)
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	j := NewJobIn(t, c, root, Shell(watchedScript), func(r *jobs.Request) {
		r.WorkDir, r.Watch = root, []string{root, filepath.Join(root, "outputs"), filepath.Join(root, "not-there")}
	})
	status := j.Run()
	left, err := jobs.ReadLeft(j.Folder)
	if err != nil || left == nil {
		t.Fatalf("%s without a list of what the job left: %v", status.State, err)
	}
	if sha, _, err := rundir.HashFile(filepath.Join(j.Folder, jobs.LeftFile)); err != nil || sha != status.Exit.Left {
		t.Errorf("the exit record knows the list as %q, it is %q, %v", status.Exit.Left, sha, err)
	}
	want := map[string]string{"old.txt": "old", "changed.txt": "changed", "late.txt": "late", `outputs/it's "new" & <odd>/größe.txt`: "new"}
	holds(t, *left, root, want)
	if left.Truncated || left.Skipped != 1 || left.At.After(status.Exit.EndedAt.Add(time.Minute)) {
		t.Errorf("truncated %t, %d skipped, at %s", left.Truncated, left.Skipped, left.At)
	}
	for _, file := range left.Files {
		if name := filepath.Base(file.Path); (name == "old.txt" || name == "changed.txt") != file.ModTime.Equal(old) {
			t.Errorf("%s has the time %s", file.Path, file.ModTime)
		}
	}
	writeOld(t, filepath.Join(root, "changed.txt"), "forged!", old)
	j.Status()
	if after, err := jobs.ReadLeft(j.Folder); err != nil || after == nil || !cmp.Equal(left, after) {
		t.Errorf("the list changed after the job: %v, %s", err, cmp.Diff(left, after))
	}
}

// unstartedIsWatched: a job whose command never ran, and one that is cancelled before it started, have their list too.
func unstartedIsWatched(t *testing.T, c Constructor) {
	for name, end := range map[string]func(*Job) jobs.Status{"not found": (*Job).Run, "cancelled": (*Job).Cancel} {
		j := NewJob(t, c, []string{"no-such-program-xyz"}, func(r *jobs.Request) { r.Watch = []string{r.WorkDir} })
		j.touch("there")
		status := end(j)
		left, err := jobs.ReadLeft(j.Folder)
		if err != nil || left == nil {
			t.Errorf("%s: %s without a list of what is there: %v", name, status.State, err)
			continue
		}
		holds(t, *left, j.Request.WorkDir, map[string]string{"there": ""})
	}
}

// unlistable: what can't be written does not keep the end of the job from being recorded.
func unlistable(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("exit 3"), func(r *jobs.Request) { r.Watch = []string{r.WorkDir} })
	if err := os.MkdirAll(filepath.Join(j.Folder, jobs.LeftFile, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if status := j.Run(); status.State != jobs.StateFailed || CodeOf(*status.Exit) != "3" {
		t.Errorf("state %s, exit %+v", status.State, status.Exit)
	}
}

// watchedBeyondTheLimit: a file that is larger than all that may be hashed is listed without a hash, the others with theirs.
func watchedBeyondTheLimit(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("echo small >small"), func(r *jobs.Request) { r.Watch = []string{r.WorkDir} })
	j.touch("large")
	const size = 1 << 30 // a hole, which takes no room
	if err := os.Truncate(filepath.Join(j.Request.WorkDir, "large"), size); err != nil {
		t.Fatal(err)
	}
	j.Run()
	left, err := jobs.ReadLeft(j.Folder)
	if err != nil || left == nil || len(left.Files) != 2 || left.HashBytes >= size {
		t.Fatalf("%+v, %v", left, err)
	}
	large, small := left.Files[0], left.Files[1]
	if large.Bytes != size || large.SHA256 != "" || small.SHA256 != rundir.HashBytes([]byte("small\n")) {
		t.Errorf("%+v, %+v", large, small)
	}
}

// plantedRecords: a command that writes its own verdict, and its own list of what it left, is judged all the same.
func plantedRecords(t *testing.T, c Constructor) {
	plant := `for name in verdict left; do
		echo '{"state": "succeeded", "evidence": [], "exit": {"code": 0, "reason": "exited"}, "files": []}' >"$TRAINWRIGHT_JOB_DIR/$name.json"; done; echo ready; `
	j := NewJob(t, c, Shell(plant+"while [ ! -e go ]; do sleep 0.05; done; exit 3"), func(r *jobs.Request) { r.Watch = []string{r.WorkDir} })
	j.Submit()
	j.says("ready", 1)
	if got := j.Status().State; got != jobs.StateRunning {
		t.Errorf("state %s while it runs", got)
	}
	j.touch("go")
	if status := j.Finished(); status.State != jobs.StateFailed || CodeOf(*status.Exit) != "3" {
		t.Errorf("state %s, exit %+v", status.State, status.Exit)
	}
	if left, err := jobs.ReadLeft(j.Folder); err != nil || left == nil {
		t.Errorf("no list: %v", err)
	} else {
		holds(t, *left, j.Request.WorkDir, map[string]string{"go": ""})
	}
}

// holds checks that the list holds these files of root, each with the hash of its text, sorted.
func holds(t *testing.T, left jobs.Left, root string, want map[string]string) {
	t.Helper()
	got, sorted := map[string]string{}, true
	for i, file := range left.Files {
		rel, err := filepath.Rel(root, file.Path)
		if err != nil || !filepath.IsAbs(file.Path) || file.Bytes != int64(len(want[rel])) {
			t.Errorf("%s, %d bytes: %v", file.Path, file.Bytes, err)
		}
		got[rel] = file.SHA256
		sorted = sorted && (i == 0 || left.Files[i-1].Path < file.Path)
	}
	hashes := map[string]string{}
	for name, text := range want {
		hashes[name] = rundir.HashBytes([]byte(text))
	}
	if diff := cmp.Diff(hashes, got); diff != "" || !sorted || len(got) != len(left.Files) {
		t.Errorf("sorted and once %t\n%s", sorted && len(got) == len(left.Files), diff)
	}
}

// writeOld writes a file that looks as if it had been there since.
func writeOld(t *testing.T, path, text string, since time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, since, since); err != nil {
		t.Fatal(err)
	}
}
