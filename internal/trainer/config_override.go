package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/rundir"
)

// overrideFile records, beside the code, everything that the run sets: the project's own configuration is never edited.
const overrideFile = "config.override.json"

// overrideRecord is config.override.json.
type overrideRecord struct {
	Entrypoint string         `json:"entrypoint"`
	Arguments  map[string]any `json:"arguments"`
	Config     map[string]any `json:"config,omitempty"`
	Base       string         `json:"base,omitempty"`
}

// configCopy makes the configuration file that the script is given: the project's own with the values of this run in
// place of its. It returns nothing when the script takes no configuration file or the project has none that fits.
func (c *commander) configCopy() (name string, data []byte, changed map[string]any, err error) {
	argument := c.view.argument("config.path")
	if argument == nil {
		return "", nil, nil, nil
	}
	config := c.chosenConfig(argument)
	if config == nil {
		return "", nil, nil, nil
	}
	raw, err := os.ReadFile(filepath.Join(c.view.Root, filepath.FromSlash(config.Path)))
	if err != nil {
		return "", nil, nil, fmt.Errorf("read %s: %w", config.Path, err)
	}
	var tree any
	if err := yaml.Unmarshal(raw, &tree); err != nil { // JSON is YAML
		return "", nil, nil, fmt.Errorf("read %s: %w", config.Path, err)
	}
	changed = map[string]any{}
	for _, v := range config.Values {
		want, ok := c.configValue(v)
		if ok && !sameNumber(want, v.Value) && set(tree, v.Key, want) {
			changed[v.Key] = want
		}
	}
	var out bytes.Buffer
	if config.Format == "json" {
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(tree)
	} else {
		err = yaml.NewEncoder(&out).Encode(tree)
	}
	name = "config/" + filepath.Base(config.Path)
	c.passed = append(c.passed, Passed{Name: argument.Name, Value: filepath.Join(c.run.CodeSaveDir, filepath.FromSlash(name)), Field: "config.path", Status: evidence.Confirmed})
	return name, out.Bytes(), changed, err
}

// chosenConfig is the file that the handoff hints at, that the script takes by default, or the only one there is.
func (c *commander) chosenConfig(argument *project.Argument) *project.Config {
	for _, hint := range []string{c.run.Handoff.Inputs.Model.ConfigHint, text(argument.Default)} {
		for i := range c.view.Configs {
			if hint != "" && filepath.ToSlash(filepath.Clean(hint)) == c.view.Configs[i].Path {
				return &c.view.Configs[i]
			}
		}
	}
	if len(c.view.Configs) == 1 {
		return &c.view.Configs[0]
	}
	if len(c.view.Configs) > 1 {
		c.findings = append(c.findings, finding.Finding{Code: "config_ambiguous", Severity: finding.Warning,
			What: fmt.Sprintf("%d configuration files could be meant; the script's default is used", len(c.view.Configs)), Remedy: "name one in inputs.model.config_hint"})
	}
	return nil
}

// configValue is what this run wants in a key of the configuration.
func (c *commander) configValue(v project.ConfigValue) (any, bool) {
	if v.Role == "" {
		return nil, false
	}
	p, ok := c.value(&project.Argument{Name: v.Key, Dest: v.Key, Role: v.Role})
	return p.Value, ok && p.Value != nil
}

// set replaces the value at a dotted key. Positions in lists are numbers.
func set(tree any, key string, value any) bool {
	head, rest, deeper := strings.Cut(key, ".")
	switch node := tree.(type) {
	case map[string]any:
		if _, ok := node[head]; !ok {
			return false
		}
		if !deeper {
			node[head] = value
			return true
		}
		return set(node[head], rest, value)
	case []any:
		at, err := strconv.Atoi(head)
		if err != nil || at < 0 || at >= len(node) {
			return false
		}
		if !deeper {
			node[at] = value
			return true
		}
		return set(node[at], rest, value)
	}
	return false
}

// writeOverride writes the record of what the run sets, and the configuration copy, into code_save_dir.
func (c *commander) writeOverride() ([]string, error) {
	name, data, changed, err := c.configCopy()
	if err != nil {
		return nil, err
	}
	var written []string
	targets := []string{filepath.Join(c.run.CodeSaveDir, overrideFile)}
	if name != "" {
		targets = append(targets, filepath.Join(c.run.CodeSaveDir, filepath.FromSlash(name)))
	}
	if err := own(c.run, targets...); err != nil {
		return nil, err
	}
	record := overrideRecord{Entrypoint: c.view.path(), Arguments: map[string]any{}, Config: changed, Base: name}
	if name != "" {
		path := filepath.Join(c.run.CodeSaveDir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := rundir.WriteFile(path, data); err != nil {
			return nil, err
		}
		written = append(written, path)
	}
	for _, p := range append(c.passed, c.positions...) {
		record.Arguments[p.Name] = p.Value
	}
	path := filepath.Join(c.run.CodeSaveDir, overrideFile)
	if err := os.MkdirAll(c.run.CodeSaveDir, 0o755); err != nil {
		return nil, err
	}
	return append(written, path), rundir.WriteJSON(path, record)
}
