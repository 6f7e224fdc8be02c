package project

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainwright/trainwright/internal/pyprobe"
)

// settingsProbe reads what a script sets with Python's own parser. It runs nothing of the project.
//
//go:embed settings.py
var settingsProbe string

// The limits of one probe.
const (
	probedFiles = 80
	probedBytes = 4 << 20
	probeTime   = 20 * time.Second
)

// Setting is a value that a script fixes in its text, where no argument can change it: a constant, an entry of a dict, a field of a
// dataclass, a keyword of a call such as AdamW(lr=3e-4). Name is as it is written ("CONFIG.lr", "AdamW.lr"); Role is what it means.
type Setting struct {
	Name     string `json:"name"`
	Value    any    `json:"value"`
	Role     string `json:"role,omitempty"`
	How      string `json:"how"` // constant, mapping, field or call
	Function string `json:"function,omitempty"`
	Place    Place  `json:"place"`
	Quote    string `json:"quote"`
}

// Hydra is what @hydra.main says: the folder and the name of the configuration that is read.
type Hydra struct {
	Path  string `json:"config_path"`
	Name  string `json:"config_name"`
	Place Place  `json:"place"`
}

type probed struct {
	Arguments []struct {
		Flags      []string `json:"flags"`
		Place      [4]int   `json:"place"`
		How        string   `json:"how"`
		Default    any      `json:"default"`
		HasDefault bool     `json:"has_default"`
		Type       string   `json:"type"`
		Help       string   `json:"help"`
		Choices    []any    `json:"choices"`
		Flag       bool     `json:"flag"`
		Required   bool     `json:"required"`
	} `json:"arguments"`
	Settings []struct {
		Name     string `json:"name"`
		Value    any    `json:"value"`
		Place    [4]int `json:"place"`
		How      string `json:"how"`
		Role     string `json:"role"`
		Function string `json:"function"`
	} `json:"settings"`
	Hydra *struct {
		Path  string `json:"config_path"`
		Name  string `json:"config_name"`
		Place [4]int `json:"place"`
	} `json:"hydra"`
	Error string `json:"error"`
}

// probe asks python about the scripts. It says how they were read: by the syntax tree, or as text alone where there is no Python or it
// does not answer.
func (s *scanner) probe(ctx context.Context) {
	if s.tree.ReadBy = "text: no python3 was asked"; s.options.Python == "none" || len(s.texts) == 0 {
		return
	}
	python := s.options.Python
	if python == "" {
		if python = AnyPython(); python == "" {
			s.tree.ReadBy = "text: no python3 was found"
			return
		}
	}
	files, bytes := [][2]string{}, 0
	for _, file := range s.probeOrder() {
		if text := s.texts[file]; len(files) < probedFiles && bytes+len(text) <= probedBytes {
			files, bytes = append(files, [2]string{file, text}), bytes+len(text)
		}
	}
	said, version, err := askPython(ctx, python, files)
	if err != nil {
		s.tree.ReadBy = "text: " + err.Error()
		return
	}
	s.tree.ReadBy = "syntax tree (Python " + version + ")"
	for _, file := range files {
		s.take(file[0], file[1], said[file[0]])
	}
	for i := range s.tree.Entrypoints {
		assignRoles(s.tree.Entrypoints[i].Arguments)
	}
}

// probeOrder lists the scripts, those that may be started first.
func (s *scanner) probeOrder() []string {
	var order []string
	for _, e := range s.tree.Entrypoints {
		order = append(order, e.Path)
	}
	for _, f := range s.files {
		if _, read := s.texts[f.Path]; read && !slices.Contains(order, f.Path) {
			order = append(order, f.Path)
		}
	}
	return order
}

// AnyPython is a python3 that can parse. The system's own comes first: what stands in PATH may be the shim of a version manager, which takes
// a second to start.
func AnyPython() string {
	for _, name := range []string{"/usr/bin/python3", "/usr/local/bin/python3", "python3"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return ""
}

// lastAnswers keeps what was said of the scripts that were asked about last, by the hash of the question: one run scans its project several times.
var lastAnswers struct {
	sync.Mutex
	keys [8][sha256.Size]byte
	said [8]answer
	next int
}

type answer struct {
	Version string            `json:"version"`
	Files   map[string]probed `json:"files"`
}

func askPython(ctx context.Context, python string, files [][2]string) (map[string]probed, string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00", python)
	for _, f := range files {
		fmt.Fprintf(sum, "%d %s\x00%d %s\x00", len(f[0]), f[0], len(f[1]), f[1])
	}
	key := [sha256.Size]byte(sum.Sum(nil))
	lastAnswers.Lock()
	if i := slices.Index(lastAnswers.keys[:], key); i >= 0 {
		said := lastAnswers.said[i]
		lastAnswers.Unlock()
		return said.Files, said.Version, nil
	}
	lastAnswers.Unlock()
	var said answer
	if err := pyprobe.Ask(ctx, python, settingsProbe, map[string]any{"files": files}, probeTime, &said); err != nil {
		return nil, "", err
	}
	lastAnswers.Lock()
	defer lastAnswers.Unlock()
	lastAnswers.keys[lastAnswers.next], lastAnswers.said[lastAnswers.next] = key, said
	lastAnswers.next = (lastAnswers.next + 1) % len(lastAnswers.keys)
	return said.Files, said.Version, nil
}

// take adds what the probe said of one script.
func (s *scanner) take(file, text string, said probed) {
	lines := indexLines(text)
	at := func(p [4]int) (Place, string, bool) {
		if p[0] < 1 || p[2] < p[0] || p[2] > len(lines) {
			return Place{}, "", false
		}
		start, end := lines[p[0]-1]+p[1], lines[p[2]-1]+p[3]
		if start < 0 || end > len(text) || end < start {
			return Place{}, "", false
		}
		return Place{Path: file, Line: p[0], Start: start, End: end}, strings.ToValidUTF8(text[start:end], "\ufffd"), true
	}
	for _, v := range said.Settings {
		place, quote, ok := at(v.Place)
		if !ok || len(quote) > 400 {
			continue
		}
		role := v.Role
		if found := roleOf(v.Name); role == "" && found.fits(shapeOf(whole(v.Value)), new(string)) {
			role = found.role
		}
		if value, _ := v.Value.(string); strings.HasPrefix(role, "checkpoint.") && (value == "scratch" || value == "none") {
			role = "" // a word for none
		}
		if v.How == "call" && strings.HasPrefix(role, "data.") { // Trainer(data=…) names an object
			role = ""
		}
		if role != "" {
			s.tree.Settings = append(s.tree.Settings, Setting{Name: v.Name, Value: whole(v.Value), Role: role, How: v.How, Function: v.Function, Place: place, Quote: quote})
		}
	}
	i := slices.IndexFunc(s.tree.Entrypoints, func(e Entrypoint) bool { return e.Path == file })
	if i < 0 {
		return
	}
	entry := &s.tree.Entrypoints[i]
	entry.judgeSettings(said)
	for _, a := range said.Arguments {
		place, quote, ok := at(a.Place)
		if !ok || len(a.Flags) == 0 || slices.ContainsFunc(entry.Arguments, func(known Argument) bool { return slices.Contains(known.Flags, a.Flags[0]) }) {
			continue
		}
		argument := Argument{Flags: a.Flags, Place: place, Quote: quote, Type: a.Type, Help: a.Help, Choices: a.Choices, IsFlag: a.Flag, Required: a.Required, HasDefault: a.HasDefault, Default: whole(a.Default)}
		argument.named()
		argument.Positional = !strings.HasPrefix(a.Flags[0], "-")
		entry.Arguments = append(entry.Arguments, argument)
	}
	if said.Hydra != nil {
		if place, _, ok := at(said.Hydra.Place); ok {
			entry.Hydra = &Hydra{Path: said.Hydra.Path, Name: said.Hydra.Name, Place: place}
		}
	}
}

// judgeSettings lets the ranking know of options that are no argparse ones.
func (e *Entrypoint) judgeSettings(said probed) {
	if n := len(said.Arguments); n > 0 && len(e.Arguments) == 0 {
		e.because(scoreArguments, fmt.Sprintf("it declares %d options (%s)", n, said.Arguments[0].How))
	}
	if said.Hydra != nil {
		e.because(scoreArguments, "it is configured by Hydra")
	}
	optimizers := 0
	for _, v := range said.Settings {
		if v.Role == RoleOptimizer {
			optimizers++
		}
	}
	if optimizers > 0 {
		e.because(scoreRoles, "it makes an optimizer")
	}
}

// whole turns the numbers of JSON that are whole into integers, as the text reader has them.
func whole(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) && v > -1e15 && v < 1e15 {
			return int64(v)
		}
	case []any:
		out := make([]any, len(v)) // v belongs to lastAnswers
		for i := range v {
			out[i] = whole(v[i])
		}
		return out
	}
	return value
}

// SettingsOf are the settings of a script and of the project's own modules that it imports by name; and of a configuration written in
// Python, where one is named, with its bases.
func (t *Tree) SettingsOf(entry, config string) []Setting {
	e := t.Entrypoint(entry)
	if e == nil {
		return nil
	}
	out := t.pythonConfig(config)
	for _, s := range t.Settings {
		stem := strings.TrimSuffix(path.Base(s.Place.Path), ".py")
		top, _, _ := strings.Cut(s.Place.Path, "/")
		if s.Place.Path == entry || slices.Contains(e.Imports, stem) || s.Place.Path != top && slices.Contains(e.Imports, top) {
			out = append(out, s)
		}
	}
	return out
}

// HydraFiles are the configurations that a script's @hydra.main composes: the one it names, and those that its defaults list picks from
// groups ("- optimizer: adam" is optimizer/adam.yaml; Hydra, "The Defaults List").
func (t *Tree) HydraFiles(entry string) []string {
	e := t.Entrypoint(entry)
	if e == nil || e.Hydra == nil || e.Hydra.Name == "" {
		return nil
	}
	folder := path.Join(path.Dir(entry), e.Hydra.Path)
	name := path.Join(folder, strings.TrimSuffix(e.Hydra.Name, ".yaml"))
	config := func(stem string) *Config {
		for i := range t.Configs {
			if p := t.Configs[i].Path; strings.TrimSuffix(strings.TrimSuffix(p, ".yaml"), ".yml") == stem {
				return &t.Configs[i]
			}
		}
		return nil
	}
	main := config(name)
	if main == nil {
		return nil
	}
	files := []string{main.Path}
	for _, v := range main.Values {
		parts := strings.SplitN(v.Key, ".", 3)
		picked, isText := v.Value.(string)
		if parts[0] != "defaults" || len(parts) != 3 || !isText {
			continue
		}
		group, _, _ := strings.Cut(strings.TrimPrefix(parts[2], "override "), "@")
		if c := config(path.Join(folder, strings.TrimPrefix(group, "/"), picked)); c != nil {
			files = append(files, c.Path)
		}
	}
	return files
}
