package project

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// baseKeys are the keys under which configurations name what they are built on: yacs and detectron2 (_BASE_), mmengine (_base_),
// and what people write by hand. A YAML tag !include names a file whose values stand at its place.
var baseKeys = []string{"_base_", "base_config", "extends", "inherit_from", "inherits", "include", "includes"}

// inclusion is a file that a configuration reads, and the key under which its values stand ("" for the top).
type inclusion struct {
	file   string // from the tree's root
	prefix string
	place  Place
	sure   bool // the key can mean nothing else
}

func isConfigFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json", ".toml":
		return true
	}
	return false
}

// inclusions are the files that a configuration names as its bases, in its order.
func (c Config) inclusions() []inclusion {
	var out []inclusion
	add := func(name, prefix string, v ConfigValue, sure bool) {
		if isConfigFile(name) && !strings.Contains(name, "://") {
			out = append(out, inclusion{path.Join(path.Dir(c.Path), name), prefix, v.Place, sure})
		}
	}
	for _, v := range c.Values {
		key := strings.ToLower(v.Key)
		switch {
		case v.Include:
			add(fmt.Sprint(v.Value), v.Key, v, true)
		case !slices.Contains(baseKeys, key):
		default:
			names, isList := v.Value.([]any)
			if !isList {
				names = []any{v.Value}
			}
			for _, name := range names {
				if text, ok := name.(string); ok {
					add(text, "", v, key == "_base_" || key == "extends")
				}
			}
		}
	}
	return out
}

// Composed adds to configurations the files that they are built on, however deep. What a file sets itself is left out of its
// bases, and a later base sets what an earlier one does too: each key stands once, where the value in force is written.
func (t *Tree) Composed(configs []Config) []Config {
	var out []Config
	for _, c := range configs {
		out = append(out, c)
		set := map[string]bool{}
		for _, v := range c.Values {
			set[v.Key] = true
		}
		t.compose(c, "", set, []string{c.Path}, &out)
	}
	return out
}

func (t *Tree) compose(c Config, prefix string, set map[string]bool, above []string, out *[]Config) {
	for _, in := range slices.Backward(c.inclusions()) {
		base := t.config(in.file)
		if base == nil || slices.Contains(above, base.Path) {
			continue // told when the tree was scanned
		}
		at := joinKey(prefix, in.prefix)
		if prefix == "" || in.prefix == "" {
			at = prefix + in.prefix
		}
		copied := Config{Path: base.Path, Format: base.Format}
		for _, v := range base.Values {
			if at != "" {
				v.Key = joinKey(at, v.Key)
			}
			if !set[v.Key] {
				set[v.Key] = true
				copied.Values = append(copied.Values, v)
			}
		}
		if !slices.ContainsFunc(*out, func(known Config) bool { return known.Path == base.Path }) {
			*out = append(*out, copied)
		}
		t.compose(*base, at, set, append(slices.Clone(above), base.Path), out)
	}
}

// pythonBase is how a configuration in Python names its bases (mmengine, "Inherit and overload"): _base_ = ["a.py"] or _base_ = "a.py".
var pythonBase = regexp.MustCompile(`(?m)^_base_\s*=\s*(\[[^\]]*\]|["'][^"'\n]*["'])`)

var quotedName = regexp.MustCompile(`["']([^"'\n]+\.py)["']`)

// pythonConfig are the settings of a configuration in Python and of its bases; of one name the file that is built on the other counts.
func (t *Tree) pythonConfig(file string) []Setting {
	if path.Ext(file) != ".py" {
		return nil
	}
	var out []Setting
	set := map[string]bool{}
	var read func(file string, above []string)
	read = func(file string, above []string) {
		if slices.Contains(above, file) || len(above) > maxConfigDepth {
			return
		}
		for _, s := range t.Settings {
			if s.Place.Path == file && !set[s.Name] {
				set[s.Name] = true
				out = append(out, s)
			}
		}
		src, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(file)))
		if err != nil {
			return // gone since the scan, or never there
		}
		if named := pythonBase.FindSubmatch(src); named != nil {
			bases := quotedName.FindAllSubmatch(named[1], -1)
			for _, base := range slices.Backward(bases) {
				if name := path.Join(path.Dir(file), string(base[1])); filepath.IsLocal(name) {
					read(name, append(slices.Clone(above), file))
				}
			}
		}
	}
	read(file, nil)
	return out
}

func (t *Tree) config(file string) *Config {
	for i := range t.Configs {
		if t.Configs[i].Path == file {
			return &t.Configs[i]
		}
	}
	return nil
}

// brokenIncludes tells of bases that are not there and of files that include each other.
func (t *Tree) brokenIncludes() []finding.Finding {
	var out []finding.Finding
	for _, c := range t.Configs {
		for _, in := range c.inclusions() {
			where := &finding.Where{Path: in.place.Path, Line: in.place.Line, Byte: int64(in.place.Start)}
			switch base := t.config(in.file); {
			case base == nil && in.sure:
				out = append(out, finding.Finding{Code: "config_base_missing", Severity: finding.Warning, What: fmt.Sprintf("%s is built on %s, which is not in the project", c.Path, in.file),
					Where: where, Expected: "a file of the project", Remedy: "correct the path; what that file sets is not known"})
			case base != nil && t.leadsTo(base, c.Path, nil):
				out = append(out, finding.Finding{Code: "config_includes_itself", Severity: finding.Warning, What: fmt.Sprintf("%s and %s include each other", c.Path, in.file),
					Where: where, Expected: "a base that does not lead back", Remedy: "take one of the two out"})
			}
		}
	}
	return out
}

// leadsTo says whether a configuration includes a file, however deep.
func (t *Tree) leadsTo(c *Config, file string, seen []string) bool {
	if c.Path == file {
		return true
	}
	if slices.Contains(seen, c.Path) {
		return false
	}
	for _, in := range c.inclusions() {
		if base := t.config(in.file); base != nil && t.leadsTo(base, file, append(seen, c.Path)) {
			return true
		}
	}
	return false
}
