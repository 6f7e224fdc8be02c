package project

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Launch is a command line of a shell script, batch script or Makefile that starts a Python script.
type Launch struct {
	Launcher  string           `json:"launcher"` // python, torchrun, accelerate, deepspeed, torch.distributed, lightning
	Script    string           `json:"script"`   // as it is written
	Arguments []LaunchArgument `json:"arguments"`
	WorldSize int              `json:"world_size,omitempty"` // processes in all, where the line says so
	Place     Place            `json:"place"`
	Quote     string           `json:"quote"`
}

// LaunchArgument is an argument on a launch line; Value is nil where a variable stands that the file does not set.
type LaunchArgument struct {
	Name  string `json:"name"`
	Value any    `json:"value,omitempty"`
	Role  string `json:"role,omitempty"`
	Place Place  `json:"place"`
	Quote string `json:"quote"`
}

var (
	shellWord     = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'[^']*'|[^\s"']+`)
	shellVariable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}?`)
	shellAssign   = regexp.MustCompile(`^\s*(?:export\s+|local\s+|readonly\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*[:?]?=\s*("[^"$]*"|'[^']*'|[^\s"'$;#]*)\s*(?:#.*)?$`)
	makefileName  = regexp.MustCompile(`(?i)^(gnu)?makefile$|\.mk$`)
	pythonWord    = regexp.MustCompile(`^(?:\S*/)?python[0-9.]*$`)
)

// word is one word of a launch line with its place.
type word struct {
	text       string // as the shell would pass it, where that is known
	known      bool
	start, end int
}

// readLaunches finds the launch lines of a script. Lines that end in a backslash are one; a variable that the file sets once, to a
// literal, is put in.
func readLaunches(file, src string) []Launch {
	lines := indexLines(src)
	variables := map[string]string{}
	set := map[string]int{}
	for _, line := range strings.Split(src, "\n") {
		if m := shellAssign.FindStringSubmatch(line); m != nil {
			variables[m[1]] = strings.Trim(m[2], `"'`)
			set[m[1]]++
		}
	}
	for name, times := range set {
		if times > 1 {
			delete(variables, name)
		}
	}
	var found []Launch
	for at := 0; at < len(src); {
		end := at
		for {
			next := strings.IndexByte(src[end:], '\n')
			if next < 0 {
				end = len(src)
				break
			}
			end += next
			if end == 0 || src[end-1] != '\\' {
				break
			}
			end++
		}
		if launch, ok := readLaunch(src, at, end, variables); ok {
			launch.Place.Path, launch.Place.Line = file, lines.line(launch.Place.Start)
			for i := range launch.Arguments {
				p := &launch.Arguments[i].Place
				p.Path, p.Line = file, lines.line(p.Start)
			}
			found = append(found, launch)
		}
		at = end + 1
	}
	return found
}

func readLaunch(src string, from, to int, variables map[string]string) (Launch, bool) {
	if line := strings.TrimLeft(src[from:to], " \t@-"); strings.HasPrefix(line, "#") || line == "" || strings.HasPrefix(line, "echo ") {
		return Launch{}, false
	}
	var words []word
	for _, m := range shellWord.FindAllStringIndex(src[from:to], -1) {
		start, end := from+m[0], from+m[1]
		text := src[start:end]
		switch {
		case text == "\\":
			continue
		case text == "&&" || text == "||" || text == "|" || text == ";" || strings.HasPrefix(text, ">") || strings.HasPrefix(text, "2>"):
			words = append(words, word{text: ";"})
			continue
		}
		w := word{text: strings.Trim(text, `"`), known: true, start: start, end: end}
		if strings.HasPrefix(text, "'") {
			w.text = strings.Trim(text, "'")
		} else {
			w.text = shellVariable.ReplaceAllStringFunc(strings.ReplaceAll(w.text, "$(", "${"), func(v string) string {
				m := shellVariable.FindStringSubmatch(strings.ReplaceAll(v, ")", "}"))
				if value, ok := variables[m[1]]; ok {
					return value
				}
				if m[2] != "" {
					return m[2]
				}
				w.known = false
				return v
			})
			w.text = strings.TrimSuffix(w.text, ")")
		}
		words = append(words, w)
	}
	return launchOf(src, words)
}

// launchOf reads the words of one command line.
func launchOf(src string, words []word) (Launch, bool) {
	for i, w := range words {
		launcher, rest := "", i+1
		next := func(n int) string {
			if i+n < len(words) {
				return words[i+n].text
			}
			return ""
		}
		switch base := path.Base(w.text); {
		case base == "torchrun":
			launcher = "torchrun"
		case base == "accelerate" && next(1) == "launch":
			launcher, rest = "accelerate", i+2
		case base == "deepspeed":
			launcher = "deepspeed"
		case pythonWord.MatchString(w.text) && next(1) == "-m" && (next(2) == "torch.distributed.run" || next(2) == "torch.distributed.launch"):
			launcher, rest = "torch.distributed", i+3
		case pythonWord.MatchString(w.text) && next(1) == "-m" && next(2) != "":
			if strings.HasPrefix(next(2), "pip") || strings.HasPrefix(next(2), "venv") || strings.HasPrefix(next(2), "pytest") {
				return Launch{}, false
			}
			launcher, rest = "python", i+2
		case pythonWord.MatchString(w.text):
			launcher = "python"
		default:
			continue
		}
		return readWords(src, launcher, words[i], words[rest:])
	}
	return Launch{}, false
}

func readWords(src, launcher string, first word, words []word) (Launch, bool) {
	l := Launch{Launcher: launcher, Arguments: []LaunchArgument{}}
	processes, nodes, last := 0, 1, first
	at := 0
	for ; at < len(words) && words[at].text != ";"; at++ { // options of the launcher itself
		text := words[at].text
		if !strings.HasPrefix(text, "-") {
			break
		}
		name, value, joined := strings.Cut(strings.TrimLeft(text, "-"), "=")
		takes := !joined && launcher != "python" && at+1 < len(words) && !strings.HasPrefix(words[at+1].text, "-") && !strings.HasSuffix(words[at+1].text, ".py")
		if takes {
			at++
			value = words[at].text
		}
		n, err := strconv.Atoi(value)
		switch name = strings.ReplaceAll(name, "-", "_"); {
		case err != nil:
		case name == "nproc_per_node" || name == "num_gpus":
			processes = n
		case name == "num_processes":
			processes, nodes = n, 1
		case (name == "nnodes" || name == "num_nodes") && launcher != "accelerate":
			nodes = n
		}
	}
	if at == len(words) || words[at].text == ";" || !words[at].known {
		return l, false
	}
	l.Script, last = words[at].text, words[at]
	if launcher == "python" && !strings.HasSuffix(l.Script, ".py") { // python -m package.train
		if strings.ContainsAny(l.Script, "/ ") || !strings.Contains(l.Script, ".") {
			return l, false
		}
		l.Script = strings.ReplaceAll(l.Script, ".", "/") + ".py"
	}
	for at++; at < len(words) && words[at].text != ";"; at++ {
		w := words[at]
		last = w
		name, value, joined := strings.Cut(w.text, "=")
		a := LaunchArgument{Name: name, Place: Place{Start: w.start, End: w.end}}
		known := w.known
		switch flag := strings.HasPrefix(w.text, "-"); {
		case !flag && !joined:
			continue // a positional
		case flag && !joined && at+1 < len(words) && words[at+1].text != ";" && (!strings.HasPrefix(words[at+1].text, "-") || isNumber(words[at+1].text)):
			at++
			value, known, last = words[at].text, words[at].known, words[at]
			a.Place.End = words[at].end
		case flag && !joined:
			value = "true"
		}
		if known {
			a.Value = literalWord(value)
		}
		a.Role = RoleOf(strings.TrimLeft(strings.TrimLeft(name, "-"), "+~"))
		a.Quote = src[a.Place.Start:a.Place.End]
		l.Arguments = append(l.Arguments, a)
	}
	if processes > 0 && nodes > 0 {
		l.WorldSize = processes * nodes
	}
	l.Place = Place{Start: first.start, End: last.end}
	l.Quote = src[l.Place.Start:l.Place.End]
	return l, true
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// literalWord is a word of a command line as the value it means.
func literalWord(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return finite(f)
	}
	switch strings.ToLower(text) {
	case "true":
		return true
	case "false":
		return false
	}
	return text
}

// LaunchesOf are the launch lines that start a script of the tree.
func (t *Tree) LaunchesOf(entry string) []Launch {
	var out []Launch
	for _, l := range t.Launches {
		script := strings.TrimPrefix(path.Clean(l.Script), "./")
		if script == entry || strings.HasSuffix(entry, "/"+script) || path.Base(script) == path.Base(entry) && !strings.Contains(script, "/") || strings.HasSuffix(script, "/"+entry) {
			out = append(out, l)
		}
	}
	return slices.Clip(out)
}
