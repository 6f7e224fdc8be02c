package project

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds of one configuration file.
const (
	maxConfigValues = 2000
	maxConfigDepth  = 32
	maxQuoteBytes   = 400 // of one value: a whole file may stand on one line
)

// toolFiles are JSON and YAML files that configure a tool and no training.
var toolFiles = map[string]bool{"package.json": true, "package-lock.json": true, "tsconfig.json": true, "composer.json": true, "mkdocs.yml": true, "mkdocs.yaml": true, "codecov.yml": true,
	"docker-compose.yml": true, "docker-compose.yaml": true, "compose.yaml": true, "compose.yml": true, "environment.yml": true, "environment.yaml": true, "citation.cff": true,
	".pre-commit-config.yaml": true, ".readthedocs.yaml": true, ".readthedocs.yml": true, "onescience.json": true, "trainwright.yaml": true}

// configFormat returns json or yaml for a file that may configure a training, else "".
func configFormat(name string) string {
	base := strings.ToLower(path.Base(name))
	if toolFiles[base] || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
		return ""
	}
	switch path.Ext(base) {
	case ".json":
		return "json"
	case ".yaml", ".yml":
		return "yaml"
	case ".toml":
		return "toml"
	}
	return ""
}

// configReader collects the values of one file.
type configReader struct {
	path     string
	src      string
	lines    lineIndex
	values   []ConfigValue
	index    map[string]int // key to position in values
	findings []finding.Finding
	traps    []Trap
	full     bool
}

// readConfig reads a JSON, YAML or TOML file. What is malformed is a finding with its line; what was read before it is kept. A
// file whose root is a list is data: it has no keys and gives no values.
func readConfig(name, format, src string) (Config, []Trap, []finding.Finding) {
	r := &configReader{path: name, src: src, lines: indexLines(src), index: map[string]int{}}
	switch format {
	case "json":
		r.readJSON()
	case "toml":
		r.readTOML()
	default:
		r.readYAML()
	}
	if r.full {
		r.report("config_cut", finding.Note, 0, fmt.Sprintf("%s holds more than %d values, the first ones are listed", name, maxConfigValues), "", "")
	}
	assignConfigRoles(r.values)
	return Config{Path: name, Format: format, Values: r.values}, r.traps, r.findings
}

func (r *configReader) report(code string, severity finding.Severity, at int, what, expected, remedy string) {
	where := &finding.Where{Path: r.path, Line: r.lines.line(at), Byte: int64(at)}
	r.findings = append(r.findings, finding.Finding{Code: code, Severity: severity, What: what, Where: where, Expected: expected, Remedy: remedy})
}

func (r *configReader) malformed(at int, what string) {
	r.report("config_malformed", finding.Warning, at, fmt.Sprintf("%s can't be read from line %d on: %s", r.path, r.lines.line(at), what),
		"valid "+strings.ToUpper(strings.TrimPrefix(path.Ext(r.path), ".")), "correct the file, or ignore this if nothing reads it")
}

// add takes a leaf over. start is the key's first byte, end the byte after the value. A key that comes twice is told, and
// the last one counts, as Python's readers have it.
func (r *configReader) add(key string, value any, start, end int) {
	if len(r.values) >= maxConfigValues {
		r.full = true
		return
	}
	if end-start > maxQuoteBytes {
		for end = start + maxQuoteBytes; !utf8.RuneStart(r.src[end]); end-- {
		}
	}
	place := Place{Path: r.path, Line: r.lines.line(start), Start: start, End: end}
	v := ConfigValue{Key: key, Value: value, Place: place, Quote: strings.ToValidUTF8(r.src[start:end], "\ufffd")}
	if at, twice := r.index[key]; twice {
		r.report("config_duplicate_key", finding.Warning, start, fmt.Sprintf("%q stands in line %d and again in line %d; only the last one counts", key, r.values[at].Place.Line, place.Line),
			"each key once", "remove one of them")
		r.values[at] = v
		return
	}
	r.index[key] = len(r.values)
	r.values = append(r.values, v)
}

func joinKey(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
