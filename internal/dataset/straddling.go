package dataset

import (
	"context"
	"math"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// begins is the first time of a part.
type begins struct {
	at   float64
	line int
}

// timeline is the different times of some rows, in order once sorted. It holds at most twice as many as there are.
type timeline []float64

func (t *timeline) add(at float64) {
	if len(*t) == cap(*t) {
		t.sort()
		*t = slices.Grow(*t, max(len(*t), 64))
	}
	*t = append(*t, at)
}

func (t *timeline) sort() {
	slices.Sort(*t)
	*t = slices.Compact(*t)
}

// straddler follows the times of parts.
type straddler struct {
	parts   map[string]string
	names   []string
	spec    SplitSpec
	reader  units
	without valueless
}

// read calls visit with the time of each row of a file. Rows without a time are passed over.
func (s *straddler) read(ctx context.Context, path string, visit func(at float64, line int)) error {
	s.reader.path = path
	return walkColumn(ctx, path, s.spec.Time, s.spec, func(r *Record, value []byte, column int) error {
		if isMissing(value) {
			line, offset := r.place(column)
			s.without.add(path, line, offset)
			return nil
		}
		var at row
		s.reader.column = column
		if f := s.reader.order(&at, r, text(value)); f != nil {
			return finding.Refuse(*f)
		}
		visit(at.when, r.Line)
		return nil
	})
}

func straddling(ctx context.Context, parts map[string]string, whole string, spec SplitSpec) (Leak, *valueless, error) {
	s := &straddler{parts: parts, names: sortedParts(parts), spec: spec, reader: units{spec: SplitSpec{Strategy: Time, Time: spec.Time}}}
	leak := Leak{Kind: LeakWindow, Severity: finding.Error}
	if spec.Horizon == 0 {
		leak.Severity = finding.Warning
	}
	starts, lines := make([]begins, len(s.names)), make([]timeline, len(s.names))
	for p, name := range s.names {
		starts[p].at = math.Inf(1)
		err := s.read(ctx, parts[name], func(at float64, line int) {
			if lines[p].add(at); at < starts[p].at {
				starts[p] = begins{at, line}
			}
		})
		if err != nil {
			return leak, nil, err
		}
	}
	without := s.without // before the files are read again
	steps, err := s.steps(ctx, lines, whole)
	if err != nil {
		return leak, nil, err
	}
	for p, name := range s.names[:max(len(s.names)-1, 0)] {
		later := p + 1
		for q := later; q < len(s.names); q++ {
			if starts[q].at < starts[later].at {
				later = q
			}
		}
		if math.IsInf(starts[later].at, 1) {
			continue // no later part has a time
		}
		cut := steps.number(starts[later].at)
		err := s.read(ctx, parts[name], func(at float64, line int) {
			if steps.number(at)+int64(spec.Horizon) >= cut {
				leak.add(Place{Part: name, Path: parts[name], Line: line}, Place{Part: s.names[later], Path: parts[s.names[later]], Line: starts[later].line})
			}
		})
		if err != nil {
			return leak, nil, err
		}
	}
	return leak, &without, nil
}

// timeSteps numbers the different times in order.
type timeSteps struct {
	times   timeline
	numbers []int64 // nil: their places
}

func (t *timeSteps) number(at float64) int64 {
	i, _ := slices.BinarySearch(t.times, at)
	if t.numbers == nil {
		return int64(i)
	}
	return t.numbers[i]
}

// steps are the times of the whole file, where that is there. Else they are those of the parts, and the steps that were left out
// between two of them are counted by the distance.
func (s *straddler) steps(ctx context.Context, lines []timeline, whole string) (*timeSteps, error) {
	all := &timeSteps{}
	for p := range lines {
		lines[p].sort()
		all.times = append(all.times, lines[p]...)
	}
	if whole != "" {
		if err := s.read(ctx, whole, func(at float64, _ int) { all.times.add(at) }); err != nil {
			return nil, err
		}
	}
	all.times.sort()
	if whole != "" || s.spec.Horizon == 0 {
		return all, nil
	}
	usual, widest := distances(lines)
	worked := weekdays(all.times)
	all.numbers = make([]int64, len(all.times))
	for i := 1; i < len(all.times); i++ {
		count, width := 1.0, all.times[i]-all.times[i-1]
		if width > widest && usual > 0 {
			count = min(max(math.Round(width/usual), 1), math.MaxInt32)
		}
		if usual == daySeconds && count > 1 {
			count = worked.between(all.times[i-1], count)
		}
		all.numbers[i] = all.numbers[i-1] + int64(count)
	}
	return all, nil
}

const daySeconds = 24 * 60 * 60

// week says which days of the week have rows: those of a market lack two. Day 0 is that of 1970-01-01.
type week [7]bool

func weekdays(times timeline) (days week) {
	for _, at := range times {
		days[dayOfWeek(at)] = true
	}
	return days
}

func dayOfWeek(at float64) int {
	return int(math.Mod(math.Mod(math.Floor(at/daySeconds), 7)+7, 7))
}

// between counts the days with rows among the n that follow a time.
func (w week) between(at, n float64) float64 {
	worked := 0.0
	for i := range 7 {
		if w[(dayOfWeek(at)+1+i)%7] {
			worked += math.Floor((n - float64(i) + 6) / 7)
		}
	}
	return worked
}

// usualShare of the distances within parts are taken for one step: those over weekends are, an outage is not.
const usualShare = 0.98

// distances are the median and the widest usual distance of neighbouring times within a part; 0 where no part has two.
func distances(lines []timeline) (usual, widest float64) {
	var widths []float64
	for _, line := range lines {
		for i := 1; i < len(line); i++ {
			widths = append(widths, line[i]-line[i-1])
		}
	}
	if len(widths) == 0 {
		return 0, 0
	}
	slices.Sort(widths)
	return widths[len(widths)/2], widths[int(usualShare*float64(len(widths)-1))]
}
