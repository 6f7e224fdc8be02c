package launch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestSplitIsWhatAShellDoes(t *testing.T) {
	for _, line := range []string{
		"python3 train.py --epochs 1", `  a   b	c `, `sh -c 'echo "a b"; exit 3'`, `a "b \" c" d\ e`, `a '' "" x"y"'z'`, `a \'b\' =c --x=y`, `"A=1" b`, `a b~ c#d "it's"`, `a "\d" '\d'`,
	} {
		got, err := Split(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		out, err := exec.Command("/bin/sh", "-c", `for word in `+line+`; do printf '%s\n' "$word"; done`).Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, a shell has %q", line, got, want)
		}
		if again, err := Split(Join(got)); err != nil || !slices.Equal(again, got) {
			t.Errorf("%s: joined and split %q (%v)", line, again, err)
		}
	}
}

func TestSplitRefusesWhatItWouldNotDo(t *testing.T) {
	for line, what := range map[string]string{"a | b": "|", "a && b": "&", "a > f": ">", "a; b": ";", "echo $HOME": "$", "echo `id`": "`", `echo "$X"`: "$", "ls *.py": "*", "ls a?": "?", "cat ~/x": "~", "a #b": "#",
		"X=1 python3 a.py": "sets a variable", "a 'b": "not closed", `a "b`: "not closed", `a \`: "backslash", "a\nb": "n"} {
		if words, err := Split(line); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %q, %v", line, words, err)
		}
	}
}
