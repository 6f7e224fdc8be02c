package launch

import (
	"strings"
	"testing"
)

// A command shows by its program what it needs the user's word for.
func TestCommandEffects(t *testing.T) {
	for line, want := range map[string]string{
		"pip install ./x":                         "package_install",
		"/opt/venv/bin/pip3.11 install numpy":     "package_install",
		"python3 -m pip install numpy":            "package_install",
		"pip list":                                "",
		"conda env create -f e.yml":               "package_install",
		"uv sync":                                 "package_install",
		"curl -O https://example.org/x":           "network",
		"sudo -E wget x":                          "network",
		"git clone x":                             "network",
		"git push origin main":                    "git_push",
		"git status":                              "",
		"sbatch job.sh":                           "remote_submission",
		"python3 train.py --name curl --pip x":    "",
		"python3 train.py":                        "",
		"sh -c 'cd x && pip install . ; echo ok'": "package_install",
		"bash -lc 'A=1 curl x | tar x'":           "network",
		"sh -c 'echo pip install'":                "",
		"sh -c 'if true; then pip install x; fi'": "package_install",
		"sh -c 'git clone x && git push'":         "git_push network",
	} {
		var argv []string
		if i := strings.Index(line, "'"); i >= 0 {
			argv = append(strings.Fields(line[:i]), strings.Trim(line[i:], "'"))
		} else {
			argv = strings.Fields(line)
		}
		if got := strings.Join(CommandEffects(argv), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
