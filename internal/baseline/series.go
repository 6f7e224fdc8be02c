package baseline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// maxSeries bounds the rows that are put in order of time, at about 40 bytes each.
const maxSeries = 2_000_000

// moment is when a row was measured: at orders rows, in seconds since 1970 UTC where calendar says so.
type moment struct {
	at       float64
	calendar bool
}

// layouts are how dates are written, beside numbers. A day before a month can't be told from a month before a day.
var layouts = []string{time.RFC3339Nano, "2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00", "2006/01/02", "2006/01/02 15:04:05", "2006/01/02 15:04", "2006-01"}

// parseMoment reads a time. A number is a date of eight digits (20260131), seconds or milliseconds since 1970 where it is
// of that size, else only an order.
func parseMoment(value string) (moment, bool) {
	if v, ok := number(value); ok {
		if len(value) == 8 && v == math.Trunc(v) {
			if t, err := time.Parse("20060102", value); err == nil {
				return moment{float64(t.Unix()), true}, true
			}
		}
		switch {
		case v >= 1e8 && v < 5e9:
			return moment{v, true}, true
		case v >= 1e11 && v < 5e12:
			return moment{v / 1000, true}, true
		}
		return moment{v, false}, true
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, value); err == nil {
			return moment{float64(t.Unix()) + float64(t.Nanosecond())/1e9, true}, true
		}
	}
	return moment{}, false
}

// What an observation belongs to, where it is no row of the test part.
const ofTrain, ofBetween = -1, -2

// observation is a target at a time; test is the row of the test part, ofTrain or ofBetween.
type observation struct {
	group string
	at    float64
	value float64
	test  int
}

// series are the observations of both parts.
type series struct {
	all      []observation
	groups   map[string]string // one copy of each name
	calendar bool
	tooLong  bool
	unread   int    // rows whose time can't be read
	example  string // one of those
}

func newSeries() *series { return &series{groups: map[string]string{}, calendar: true} }

func (s *series) add(group, written string, value float64, test int) {
	m, ok := parseMoment(written)
	if !ok {
		if s.unread++; s.unread == 1 {
			s.example = written
		}
		return
	}
	if len(s.all) >= maxSeries {
		s.tooLong = true
		return
	}
	name, known := s.groups[group]
	if !known {
		name = strings.Clone(group)
		s.groups[name] = name
	}
	s.calendar = s.calendar && m.calendar
	s.all = append(s.all, observation{name, m.at, value, test})
}

// sort orders by group and time; the order of the files decides among equals.
func (s *series) sort() {
	slices.SortStableFunc(s.all, func(a, b observation) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.at, b.at)) })
}

// persistence predicts each test row by the target horizon times before it in its group, the mean where a time has several
// rows. Rows without one are predicted as otherwise, and counted.
func (s *series) persistence(rows, horizon int, otherwise float64) (values []any, lacking int) {
	values = make([]any, rows)
	for i := range values {
		values[i] = otherwise
	}
	lacking = rows
	for from := 0; from < len(s.all); {
		to := from
		for to < len(s.all) && s.all[to].group == s.all[from].group {
			to++
		}
		lacking -= persist(s.all[from:to], horizon, values)
		from = to
	}
	return values, lacking
}

// persist does it for one group, in order of time; it returns how many rows it predicted.
func persist(group []observation, horizon int, values []any) (predicted int) {
	var means []float64 // of each time so far
	for from := 0; from < len(group); {
		to, sum := from, 0.0
		for to < len(group) && group[to].at == group[from].at {
			sum += group[to].value
			to++
		}
		if earlier := len(means) - horizon; earlier >= 0 {
			for _, o := range group[from:to] {
				if o.test >= 0 {
					values[o.test] = means[earlier]
					predicted++
				}
			}
		}
		means = append(means, sum/float64(to-from))
		from = to
	}
	return predicted
}

// season names the part of the calendar that repeats in a series.
type season struct{ month, weekday, hour bool }

// seasonOf looks at the train part: months repeat in a series of eleven months or more, hours where rows are less than 20
// hours apart, weekdays where days are measured for two weeks to eleven months. The zero value means none.
func (s *series) seasonOf() season {
	const hour, day = 3600.0, 86400.0
	var times []float64
	for _, o := range s.all {
		if o.test == ofTrain {
			times = append(times, o.at)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	if len(times) < 3 || !s.calendar {
		return season{}
	}
	steps := make([]float64, len(times)-1)
	for i := range steps {
		steps[i] = times[i+1] - times[i]
	}
	slices.Sort(steps)
	step, span := steps[len(steps)/2], times[len(times)-1]-times[0]
	found := season{month: span >= 330*day && step < 330*day, hour: step < 20*hour && span >= 2*day}
	found.weekday = !found.month && !found.hour && step < 7*day && span >= 14*day
	return found
}

func (s season) String() string {
	var parts []string
	for _, p := range []struct {
		on   bool
		name string
	}{{s.month, "month"}, {s.weekday, "weekday"}, {s.hour, "hour of the day"}} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, " and ")
}

type seasonKey struct {
	group       string
	month, hour int
	weekday     int
}

func (s season) key(o observation) seasonKey {
	t := time.Unix(int64(math.Floor(o.at)), 0).UTC()
	k := seasonKey{group: o.group}
	if s.month {
		k.month = int(t.Month())
	}
	if s.weekday {
		k.weekday = int(t.Weekday()) + 1
	}
	if s.hour {
		k.hour = t.Hour() + 1
	}
	return k
}

// climatology predicts each test row by the mean of the train rows of its group in the same season.
func (s *series) climatology(by season, rows int, otherwise float64) (values []any, lacking int) {
	type mean struct{ n, sum float64 }
	means := map[seasonKey]mean{}
	for _, o := range s.all {
		if o.test == ofTrain {
			m := means[by.key(o)]
			means[by.key(o)] = mean{m.n + 1, m.sum + o.value}
		}
	}
	values = make([]any, rows)
	for i := range values {
		values[i] = otherwise
	}
	lacking = rows
	for _, o := range s.all {
		if o.test < 0 {
			continue
		}
		if m := means[by.key(o)]; m.n > 0 {
			values[o.test] = m.sum / m.n
			lacking--
		}
	}
	return values, lacking
}

// withLacking tells of rows that got the mean instead.
func withLacking(why string, lacking int) string {
	if lacking == 0 {
		return why
	}
	return fmt.Sprintf("%s; %d rows without one got the mean", why, lacking)
}
