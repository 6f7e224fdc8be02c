package dataset

import (
	"cmp"
	"slices"
	"strconv"
)

// The types of a column. A column is of a type when all its values are; an integer column with some decimals is a
// number column; "mixed" has at least half its values of one type and the rest of another.
const (
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeDate    = "date"
	TypeString  = "string"
	TypeEmpty   = "empty"
	TypeMixed   = "mixed"
)

// ValueCount is a value and how often it stands in its column.
type ValueCount struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// BadValue is a value that does not fit its column.
type BadValue struct {
	Line  int    `json:"line"`
	Byte  int64  `json:"byte"`
	Value string `json:"value"`
}

// Column is the profile of one column. Min, Max, Mean, Std and Quantiles are of its finite numbers; Std is that of the
// population (n, not n-1). Distinct counts spellings: "1" and "1.0" are two.
type Column struct {
	Name             string             `json:"name"`
	Type             string             `json:"type"`
	Decimal          string             `json:"decimal,omitempty"` // "," where its numbers are written with a decimal comma
	Missing          int64              `json:"missing"`
	Absent           int64              `json:"absent,omitempty"` // of these, JSON rows without the key
	MissingSpellings map[string]int64   `json:"missing_spellings,omitempty"`
	MissingAt        []BadValue         `json:"missing_at,omitempty"` // the first few
	Distinct         int64              `json:"distinct"`
	DistinctAtLeast  bool               `json:"distinct_at_least,omitempty"` // Distinct is a lower bound
	Numbers          int64              `json:"numbers,omitempty"`           // finite numbers behind the statistics
	NonFinite        int64              `json:"non_finite,omitempty"`        // infinities, written out or by overflow
	Min              *float64           `json:"min,omitempty"`
	Max              *float64           `json:"max,omitempty"`
	Mean             *float64           `json:"mean,omitempty"`
	Std              *float64           `json:"std,omitempty"`
	Quantiles        map[string]float64 `json:"quantiles,omitempty"`
	QuantilesFrom    int64              `json:"quantiles_from,omitempty"` // set where they come from a sample of that many values
	Sentinels        []ValueCount       `json:"sentinels,omitempty"`      // numbers that may stand for "no value"; they are in the statistics
	Dates            *Dates             `json:"dates,omitempty"`
	Top              []ValueCount       `json:"top,omitempty"` // most frequent first; those met early where there are more than 4096
	Bad              []BadValue         `json:"bad,omitempty"` // the first few values that don't fit the type
	BadTotal         int64              `json:"bad_total,omitempty"`
}

var quantilesTaken = []float64{0.05, 0.25, 0.5, 0.75, 0.95}

// longestShown is how many bytes of a value a profile shows.
const longestShown = 120

// gatherer builds a Column from its values.
type gatherer struct {
	kinds     [kindCount]int64
	examples  [kindCount][]BadValue
	spellings map[string]int64
	numbers   moments
	sample    reservoir
	absent    int64
	empty     int64 // values missing by being nothing, the most frequent spelling
	commas    int64 // strings that are numbers with a decimal comma
	values    frequencies
	suspects  suspects
	dates     chronology
}

func newGatherer(distinct, quantiles int) *gatherer {
	return &gatherer{values: newFrequencies(distinct), sample: reservoir{bound: quantiles}}
}

// take adds the values of a column, from a record of the batch on. Hashes are looked up when all are made, so that one look
// need not wait for another; keys is room for them.
func (g *gatherer) take(b *batch, column, from int, keys []uint64) []uint64 {
	keys = keys[:0]
	hashed := g.values.wanted()
	for n := from; n < len(b.records); n++ {
		field := b.field(&b.records[n], column)
		value := trim(field)
		if !g.add(field, value, cell{b, n, column}) || !hashed {
			continue
		}
		key := hashOf(value)
		if g.values.unfollow {
			keys = append(keys, key)
		} else {
			g.values.add(key, value)
		}
	}
	g.values.addAll(keys)
	return keys
}

// add looks at a value and says whether it is one, and not missing.
func (g *gatherer) add(field, value []byte, at cell) (filled bool) {
	k, number := classify(value)
	if g.kinds[k]++; len(g.examples[k]) < keptExamples {
		line, offset := at.place()
		g.examples[k] = append(g.examples[k], BadValue{Line: line, Byte: offset, Value: shorten(text(value), longestShown)})
	}
	switch k {
	case kindMissing:
		switch {
		case field == nil:
			g.absent++
		case len(value) == 0:
			g.empty++
		default:
			if g.spellings == nil {
				g.spellings = map[string]int64{}
			}
			g.spellings[string(value)]++
		}
		return false
	case kindInteger, kindNumber:
		g.numbers.add(number)
		g.sample.add(number)
		g.suspects.add(number, value, at)
	case kindDate:
		g.dates.add(value, at)
	case kindString:
		if isDecimalComma(value) {
			g.commas++
		}
	}
	return true
}

// finish makes the Column.
func (g *gatherer) finish(name string) *Column {
	if g.empty > 0 {
		if g.spellings == nil {
			g.spellings = map[string]int64{}
		}
		g.spellings[""] += g.empty
	}
	c := &Column{Name: name, Missing: g.kinds[kindMissing], Absent: g.absent, MissingSpellings: g.spellings, MissingAt: g.examples[kindMissing],
		Top: g.values.top(keptExamples), Numbers: g.numbers.n, NonFinite: g.kinds[kindNonFinite]}
	c.Distinct, c.DistinctAtLeast = g.values.distinct()
	if g.numbers.n > 0 {
		c.Min, c.Max, c.Mean, c.Std = finite(g.numbers.min), finite(g.numbers.max), finite(g.numbers.mean), finite(g.numbers.std())
		slices.Sort(g.sample.kept)
		c.Quantiles = map[string]float64{}
		for _, q := range quantilesTaken {
			if value := finite(quantile(g.sample.kept, q)); value != nil {
				c.Quantiles[strconv.FormatFloat(q, 'g', -1, 64)] = *value
			}
		}
		if g.sample.seen > uint64(len(g.sample.kept)) {
			c.QuantilesFrom = int64(len(g.sample.kept))
		}
		g.suspects = g.suspects.found(g.sample.kept)
		for _, x := range g.suspects {
			c.Sentinels = append(c.Sentinels, ValueCount{x.at.Value, x.n})
		}
	}
	c.Dates = g.dates.finish()
	c.Type = g.typeOf(c)
	return c
}

// typeOf decides the type and, for a mixed column, which values are the odd ones.
func (g *gatherer) typeOf(c *Column) string {
	numbers := g.kinds[kindInteger] + g.kinds[kindNumber] + g.kinds[kindNonFinite]
	filled := numbers + g.kinds[kindBoolean] + g.kinds[kindDate] + g.kinds[kindString]
	families := []struct {
		n    int64
		name string
		own  []kind
	}{
		{numbers, TypeNumber, []kind{kindInteger, kindNumber, kindNonFinite}},
		{g.kinds[kindDate], TypeDate, []kind{kindDate}},
		{g.kinds[kindBoolean], TypeBoolean, []kind{kindBoolean}},
	}
	if filled == 0 {
		return TypeEmpty
	}
	for _, family := range families {
		switch {
		case family.n == filled && family.name == TypeNumber && g.kinds[kindInteger] == filled:
			return TypeInteger
		case family.n == filled:
			return family.name
		case 2*family.n >= filled:
			c.BadTotal = filled - family.n
			for k := kindInteger; k < kindCount; k++ {
				if !slices.Contains(family.own, k) {
					c.Bad = append(c.Bad, g.examples[k]...)
				}
			}
			slices.SortStableFunc(c.Bad, func(a, b BadValue) int { return cmp.Compare(a.Byte, b.Byte) })
			c.Bad = c.Bad[:min(len(c.Bad), keptExamples)]
			return TypeMixed
		}
	}
	return TypeString
}
