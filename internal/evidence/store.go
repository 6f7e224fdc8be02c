package evidence

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

const (
	sourcesFile = "sources.json"
	factsFile   = "facts.json"
	claimsFile  = "claims.json"
)

// LoadSources reads sources.json of a run; none is an empty list, a broken one is refused with json_unreadable.
func LoadSources(dir string) ([]Source, error) { return load[Source](dir, sourcesFile) }

// LoadFacts reads facts.json of a run, as LoadSources does.
func LoadFacts(dir string) ([]Fact, error) { return load[Fact](dir, factsFile) }

// LoadClaims reads claims.json of a run, as LoadSources does.
func LoadClaims(dir string) ([]Claim, error) { return load[Claim](dir, claimsFile) }

// SaveSources commits sources.json.
func SaveSources(dir string, sources []Source) error { return save(dir, sourcesFile, sources) }

// SaveFacts commits facts.json, without secrets.
func SaveFacts(dir string, facts []Fact) error {
	clean := slices.Clone(facts)
	for i := range clean {
		f := &clean[i]
		f.Quote, f.Why, f.VerifyLater = redact.Text(f.Quote), redact.Text(f.Why), redact.Text(f.VerifyLater)
		if s, ok := f.Value.(string); ok {
			f.Value = redact.Value(f.Field, s)
		}
		if f.Conflicts == nil {
			f.Conflicts = []string{}
		}
	}
	return save(dir, factsFile, clean)
}

// SaveClaims commits claims.json.
func SaveClaims(dir string, claims []Claim) error {
	clean := slices.Clone(claims)
	for i := range clean {
		if clean[i].From == nil {
			clean[i].From = []Range{}
		}
	}
	return save(dir, claimsFile, clean)
}

func load[T any](dir, name string) ([]T, error) {
	var list []T
	err := rundir.ReadJSON(filepath.Join(dir, name), &list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

func save[T any](dir, name string, list []T) error {
	if list == nil {
		list = []T{}
	}
	return rundir.WriteJSON(filepath.Join(dir, name), list)
}

// AddSource appends a captured source, unless it is there already.
func AddSource(sources []Source, s Source) []Source {
	if slices.ContainsFunc(sources, func(old Source) bool { return old.ID == s.ID }) {
		return sources
	}
	return append(sources, s)
}

// NextSourceID is the id that the next source of a list gets.
func NextSourceID(sources []Source) string {
	return nextID("s", sources, func(s Source) string { return s.ID })
}

// NextFactID is the id after the highest one in use.
func NextFactID(facts []Fact) string {
	return nextID("f", facts, func(f Fact) string { return f.ID })
}

func nextID[T any](prefix string, list []T, id func(T) string) string {
	highest := 0
	for _, item := range list {
		if n, err := strconv.Atoi(strings.TrimPrefix(id(item), prefix)); err == nil {
			highest = max(highest, n)
		}
	}
	return prefix + strconv.Itoa(highest+1)
}
