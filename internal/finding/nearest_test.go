package finding

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"job_ids", "step_handoff", "run_id", "wait_seconds"}
	for name, want := range map[string]string{"job_id": "job_ids", "RunID": "run_id", "stephandoff": "step_handoff", "wait": "wait_seconds", "colour": "", "": ""} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"run_id", "runid", 1}, {"abc", "abc", 0}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
