package launch

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/policy"
)

// program is what a command line says of its effect: the program's name and what its arguments must say.
type program struct {
	name      *regexp.Regexp
	arguments *regexp.Regexp // nil: any
	effect    string
}

// programs are those whose very purpose is an effect that needs the user's word. What a program of the user's own does inside
// is not seen here.
var programs = []program{
	{regexp.MustCompile(`^pip[0-9.]*$`), regexp.MustCompile(`^(?:install|download|wheel)\b`), policy.PackageInstall},
	{regexp.MustCompile(`^(?:conda|mamba|micromamba)$`), regexp.MustCompile(`\b(?:install|create|update)\b`), policy.PackageInstall},
	{regexp.MustCompile(`^(?:uv|poetry|pixi|pdm|npm|pnpm|yarn|apt|apt-get|dnf|yum|apk|brew)$`), regexp.MustCompile(`\b(?:install|add|sync|upgrade)\b`), policy.PackageInstall},
	{regexp.MustCompile(`^(?:curl|wget|aria2c|rsync|scp|sftp|ssh|gsutil|huggingface-cli|hf)$`), nil, policy.Network},
	{regexp.MustCompile(`^git$`), regexp.MustCompile(`\b(?:clone|fetch|pull)\b`), policy.Network},
	{regexp.MustCompile(`^git$`), regexp.MustCompile(`\bpush\b`), policy.GitPush},
	{regexp.MustCompile(`^(?:sbatch|srun|salloc)$`), nil, policy.RemoteSubmission},
}

// shellBreak stands between two commands of a shell line.
var shellBreak = regexp.MustCompile(`[;&|\n(){}]+|\b(?:then|do|else)\b`)

// CommandEffects are the effects of policy.Effects that a command shows by the program that it starts, in order. A script that
// a shell is given with -c is looked at command by command.
func CommandEffects(argv []string) []string {
	var out []string
	for _, words := range commands(argv) {
		name, rest := unwrapped(words)
		for _, p := range programs {
			if p.name.MatchString(name) && (p.arguments == nil || p.arguments.MatchString(strings.Join(rest, " "))) && !slices.Contains(out, p.effect) {
				out = append(out, p.effect)
			}
		}
	}
	slices.Sort(out)
	return out
}

// commands are the simple commands of an argv: itself, or those of the script that a shell is given.
func commands(argv []string) [][]string {
	if len(argv) < 3 || !regexp.MustCompile(`^(?:sh|bash|dash|zsh|ksh)$`).MatchString(filepath.Base(argv[0])) {
		return [][]string{argv}
	}
	at := slices.IndexFunc(argv, func(w string) bool {
		return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c")
	})
	if at < 0 || at+1 >= len(argv) {
		return [][]string{argv}
	}
	var out [][]string
	for _, line := range shellBreak.Split(argv[at+1], -1) {
		out = append(out, strings.Fields(line))
	}
	return out
}

// unwrapped is the program that a command starts in the end, and its arguments: behind assignments, sudo, env, time and the
// like, and behind python -m.
func unwrapped(words []string) (name string, rest []string) {
	for len(words) > 0 {
		base := filepath.Base(strings.Trim(words[0], `"'`))
		switch {
		case assigns(words[0]), slices.Contains([]string{"sudo", "env", "time", "nice", "nohup", "exec", "command", "xargs"}, base), strings.HasPrefix(words[0], "-"):
			words = words[1:]
			continue
		case pythonName.MatchString(base) && len(words) > 2 && words[1] == "-m":
			return words[2], words[3:]
		}
		return base, words[1:]
	}
	return "", nil
}
