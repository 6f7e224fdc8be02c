package metrics

import "math"

// Spot is a value with the place it was read from: physical line, and bytes [Start, End) of the row. Value is nil where
// NonFinite says what stood there.
type Spot struct {
	Value     *float64 `json:"value"`
	NonFinite string   `json:"nonfinite,omitempty"`
	Step      *int64   `json:"step,omitempty"`
	Epoch     *float64 `json:"epoch,omitempty"`
	Line      int      `json:"line"`
	Start     int64    `json:"start"`
	End       int64    `json:"end"`
}

// Spot is the point without its names.
func (p Point) Spot() Spot {
	s := Spot{NonFinite: p.NonFinite, Step: p.Step, Epoch: p.Epoch, Line: p.Line, Start: p.Start, End: p.End}
	if p.NonFinite == "" && !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
		value := p.Value
		s.Value = &value
	}
	return s
}

// Summary is one series in short. Better is the side on which its values are better (min or max, "" when the name does not
// tell), and Best the best finite value, nil without such a side. Count and NotFinite rest on all rows, kept or not.
type Summary struct {
	Key       string `json:"key"` // split/name, as ParseKey reads it
	Better    string `json:"better,omitempty"`
	Unit      string `json:"unit,omitempty"`
	Count     int    `json:"count"`
	NotFinite int    `json:"not_finite,omitempty"`
	First     Spot   `json:"first"`
	Last      Spot   `json:"last"`
	Best      *Spot  `json:"best,omitempty"`
}

// Summaries are all series of the log in short, in the order in which they first appear.
func (l *Log) Summaries() []Summary {
	at := map[Key]int{}
	var all []Summary
	best := map[Key]*Point{}
	for i := range l.Points {
		p := &l.Points[i]
		key := p.Key()
		index, ok := at[key]
		if !ok {
			index = len(all)
			at[key] = index
			all = append(all, Summary{Key: key.String(), Better: direction(key), Unit: p.Unit, First: p.Spot()})
		}
		s := &all[index]
		s.Count++
		s.Last = p.Spot()
		if p.NonFinite != "" {
			s.NotFinite++
			continue
		}
		if b := best[key]; b == nil || s.Better == "min" && p.Value < b.Value || s.Better == "max" && p.Value > b.Value {
			best[key] = p
		}
	}
	for key, index := range at {
		s := &all[index]
		if p := best[key]; p != nil && s.Better != "" {
			spot := p.Spot()
			s.Best = &spot
		}
		if t := l.tallies[key]; t != nil {
			s.Count, s.NotFinite = t.count, t.nonFinite
		}
	}
	return all
}

// Thinned gives at most n points of a series, spread evenly, with the first, the last and the best one, and every kind of
// value that is not finite where it first stands.
func (l *Log) Thinned(k Key, n int) []Point {
	series := l.Series(k)
	if len(series) <= n || n < 4 {
		return series
	}
	keep := map[int]bool{0: true, len(series) - 1: true}
	best, hasBest := l.Best(k)
	seen := map[string]bool{"": true}
	for i, p := range series {
		if hasBest && p.Start == best.Start {
			keep[i] = true
		}
		if !seen[p.NonFinite] {
			seen[p.NonFinite], keep[i] = true, true
		}
	}
	room := n - len(keep)
	for i := range room {
		keep[(i+1)*(len(series)-1)/(room+1)] = true
	}
	thinned := make([]Point, 0, len(keep))
	for i, p := range series {
		if keep[i] {
			thinned = append(thinned, p)
		}
	}
	return thinned
}
