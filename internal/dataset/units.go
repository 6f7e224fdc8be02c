package dataset

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// leftOut marks a row that is in no part.
const leftOut = math.MaxUint8

// units reads what a split keeps together or in order: the group, the time or the sequence of each row.
type units struct {
	path     string
	spec     SplitSpec
	column   int
	seed     maphash.Seed
	clusters clusters
	first    string // the first value of a time column; the others are written alike
	numbers  bool
}

func newUnits(t *table, spec SplitSpec) *units {
	u := &units{path: t.path, spec: spec, column: -1, seed: maphash.MakeSeed()}
	switch spec.Strategy {
	case Group:
		u.column = t.column(spec.Group)
	case Time:
		u.column = t.column(spec.Time)
	case Similarity:
		u.column = t.column(spec.Sequence)
	}
	return u
}

// add notes the unit of a row. Rows of a group are made equal, so that deal keeps them together; a group's place in the shuffled
// order is that of its first row.
func (u *units) add(r *row, record *Record) *finding.Finding {
	if u.column < 0 {
		return nil
	}
	value := trim(record.Fields[u.column])
	if isMissing(value) {
		return u.bad(record, "split_value_missing", "no value", "a value in every record", "supply it, remove the record, or split by another column")
	}
	switch u.spec.Strategy {
	case Group:
		r.identity = groupKey(u.seed, value)
	case Time:
		return u.order(r, record, text(value))
	case Similarity:
		u.clusters.add(value)
	}
	return nil
}

// groupKey hashes the name of a group. Numbers count by value, since pandas writes 7 as 7.0 where another row has none; more than 15 digits
// are a name.
func groupKey(seed maphash.Seed, value []byte) uint64 {
	if len(value) <= 15 {
		if number, _, ok := parseNumber(value); ok {
			return maphash.String(seed, strconv.FormatFloat(number+0, 'g', -1, 64))
		}
	}
	return maphash.Bytes(seed, value)
}

func (u *units) bad(record *Record, code, what, expected, remedy string) *finding.Finding {
	line, offset := record.place(u.column)
	column := cmp.Or(u.spec.Group, u.spec.Time, u.spec.Sequence)
	return &finding.Finding{Code: code, Severity: finding.Error, What: fmt.Sprintf("column %q: %s", column, what),
		Where: &finding.Where{Path: u.path, Line: line, Byte: offset, Field: column}, Expected: expected, Remedy: remedy}
}

// timeLayouts are the ways of writing a time that can't be misread; day-first and month-first dates can't be told apart.
// Fractions of a second are read with each, and zones as Z, +02:00, +0200 and +02: pandas, PostgreSQL and ECMWF differ there.
var timeLayouts = func() (layouts []string) {
	for _, clock := range []string{"15:04:05", "15:04"} {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07"} {
			layouts = append(layouts, "2006-01-02T"+clock+zone)
		}
	}
	return append(layouts, "2006-01-02", "2006-01")
}()

// Instant reads a time: a number (year, step, seconds) as itself, a date or time of ISO 8601, also with slashes or as DD.MM.YYYY, as
// seconds since 1970 (without a zone: UTC).
func Instant(value string) (at float64, number, ok bool) {
	if number, _, ok := parseNumber([]byte(value)); ok && !math.IsInf(number, 0) {
		return number, true, true
	}
	if len(value) >= 10 && value[2] == '.' && value[5] == '.' {
		value = value[6:10] + "-" + value[3:5] + "-" + value[:2] + value[10:]
	}
	value = strings.ReplaceAll(value, "/", "-")
	if len(value) > 10 && value[10] == ' ' {
		value = value[:10] + "T" + strings.TrimLeft(value[10:], " ")
	}
	value = strings.TrimSuffix(value, " UTC")
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, value); err == nil {
			return float64(at.UnixMicro()) / 1e6, false, true
		}
	}
	return 0, false, false
}

func (u *units) order(r *row, record *Record, value string) *finding.Finding {
	at, number, ok := Instant(value)
	if !ok || u.first != "" && number != u.numbers {
		what := fmt.Sprintf("%q is no time that can be ordered", shorten(value, longestShown))
		if ok {
			what = fmt.Sprintf("%q is written otherwise than %q", shorten(value, longestShown), shorten(u.first, longestShown))
		}
		return u.bad(record, "time_unreadable", what, "numbers, or dates as 2024-12-31 or 2024-12-31 23:59:59", "rewrite the column, or name another one")
	}
	if u.first == "" {
		u.first, u.numbers = value, number
	}
	r.when = at
	return nil
}

// cluster makes similar sequences equal rows.
func (u *units) cluster(ctx context.Context, rows []row) error {
	if u.spec.Strategy != Similarity {
		return nil
	}
	if len(rows) > maxSequences {
		return finding.Refuse(tooManyRows(u.path, maxSequences))
	}
	leaders, err := u.clusters.leaders(ctx)
	if err != nil {
		return err
	}
	for i, leader := range leaders {
		rows[i].identity = uint64(leader)
	}
	return nil
}

// assign gives each row its part, and completes the split's words about it.
func (s *scanned) assign(split *Split, spec SplitSpec, names []string, weights []int64) ([]uint8, []finding.Finding, error) {
	switch spec.Strategy {
	case Time:
		return s.byTime(split, spec, names, weights)
	case Group, Similarity:
		part, count := deal(s.rows, weights, 1)
		split.Unit = map[string]string{Group: "group", Similarity: "sequence"}[spec.Strategy]
		if count < len(names) {
			return nil, nil, finding.Refuse(finding.Finding{Code: "split_units_few", Severity: finding.Error, Where: &finding.Where{Path: s.path},
				What:     fmt.Sprintf("%d different %ss can't fill %d parts", count, cmp.Or(spec.Group, "cluster"), len(names)),
				Expected: "at least one for each part", Remedy: "choose fewer parts, or another column"})
		}
		s.fill(part, len(names))
		split.Units = s.count(names, part)
		found, err := s.judgeUnits(names, weights, part, split)
		return part, found, err
	}
	part, different := deal(s.rows, weights, max(len(s.classes), 1))
	found, err := s.judge(names, weights, part, different)
	return part, found, err
}

// members lists the rows of each unit, by the unit's place in the shuffled order.
func (s *scanned) members() (list []group, of map[uint64][]uint32) {
	list, _ = groupsOf(s.rows)
	of = make(map[uint64][]uint32, len(list))
	for i := range s.rows {
		of[s.rows[i].identity] = append(of[s.rows[i].identity], uint32(i))
	}
	return list, of
}

// fill gives each empty part the smallest unit of the part that has most of them.
func (s *scanned) fill(part []uint8, parts int) {
	list, of := s.members()
	for p := range parts {
		held := make([][]group, parts)
		for _, g := range list {
			held[part[g.first]] = append(held[part[g.first]], g)
		}
		if len(held[p]) > 0 {
			continue
		}
		from := slices.MaxFunc(held, func(a, b []group) int { return cmp.Compare(len(a), len(b)) })
		smallest := slices.MinFunc(from, func(a, b group) int { return cmp.Compare(a.size, b.size) })
		for _, i := range of[s.rows[smallest.first].identity] {
			part[i] = uint8(p)
		}
	}
}

func (s *scanned) count(names []string, part []uint8) map[string]int64 {
	list, _ := groupsOf(s.rows)
	out := map[string]int64{}
	for _, g := range list {
		out[names[part[g.first]]]++
	}
	return out
}

// unevenShare is how far a part may be from the size that was asked for, in parts of it, before that is worth a warning.
const unevenShare = 0.2

func (s *scanned) judgeUnits(names []string, weights []int64, part []uint8, split *Split) ([]finding.Finding, error) {
	counts := make([]int64, len(names))
	for _, p := range part {
		if p != leftOut {
			counts[p]++
		}
	}
	why := fmt.Sprintf("whole %ss stay together", split.Unit)
	if split.Strategy == Time {
		why = "whole time steps stay together"
	}
	if split.LeftOut > 0 {
		why = fmt.Sprintf("%d before a cut are in no part and %s", split.LeftOut, why)
	}
	var found []finding.Finding
	for p, want := range shares(int64(len(s.rows))-split.LeftOut, weights) {
		if math.Abs(float64(counts[p]-want)) > unevenShare*float64(want) {
			found = append(found, finding.Finding{Code: "split_sizes_inexact", Severity: finding.Warning, Where: &finding.Where{Path: s.path},
				What:     fmt.Sprintf("%q has %d rows instead of %d, since %s", names[p], counts[p], want, why),
				Expected: "parts near the fractions", Remedy: "accept it, or choose other fractions"})
		}
	}
	return found, nil
}

// byTime cuts the time line: each part holds whole time steps (different values of the time column), the earlier part the earlier ones,
// and Gap steps before each cut are in no part.
func (s *scanned) byTime(split *Split, spec SplitSpec, names []string, weights []int64) ([]uint8, []finding.Finding, error) {
	order := make([]uint32, len(s.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(cmp.Compare(s.rows[a].when, s.rows[b].when), cmp.Compare(a, b)) })
	var starts []int // where each time step begins in order
	for i, at := range order {
		if i == 0 || s.rows[at].when != s.rows[order[i-1]].when {
			starts = append(starts, i)
		}
	}
	steps := len(starts)
	split.Gap = cmp.Or(spec.Gap, spec.Horizon)
	if split.Horizon > 0 {
		split.Unit = "window"
	}
	part := make([]uint8, len(s.rows))
	split.Units = map[string]int64{}
	until, step := int64(0), 0
	quota := shares(int64(len(s.rows)), weights)
	begin := func(step int) int {
		if step == steps {
			return len(order)
		}
		return starts[step]
	}
	sample := max(1, spec.History+spec.Horizon)
	for p, name := range names {
		until += quota[p]
		first, last := step, step // last is behind the part
		// A step belongs to the part in which its middle lies, but each part gets at least one sample and leaves one for the later ones.
		later := len(names) - 1 - p
		most := steps - later*sample - max(later-1, 0)*split.Gap
		for last < steps && (later == 0 || last < most && (int64(begin(last)+begin(last+1)) < 2*until || last-first < sample+split.Gap)) {
			last++
		}
		step = last
		kept := last
		if later > 0 {
			kept = max(first, last-split.Gap)
		}
		if kept-first < sample {
			return nil, nil, finding.Refuse(finding.Finding{Code: "part_shorter_than_window", Severity: finding.Error,
				What:  fmt.Sprintf("%q would hold %d of %d time steps: a sample needs %d (history and horizon), and %d are left out before a cut", name, kept-first, steps, sample, split.Gap),
				Where: &finding.Where{Path: s.path, Field: spec.Time}, Expected: "at least one sample in each part", Remedy: "choose other fractions, a shorter history or gap, or fewer parts"})
		}
		for i := begin(first); i < begin(last); i++ {
			part[order[i]] = uint8(p)
			if i >= begin(kept) {
				part[order[i]] = leftOut
				split.LeftOut++
			}
		}
		split.Units[name] = int64(kept - first)
		split.Parts[name] = Part{From: s.written(s.rows[order[begin(first)]].when), To: s.written(s.rows[order[begin(kept)-1]].when)}
	}
	var found []finding.Finding
	if spec.Gap > 0 && spec.Gap < spec.Horizon {
		found = append(found, finding.Finding{Code: "gap_shorter_than_horizon", Severity: finding.Warning, Where: &finding.Where{Path: s.path, Field: "split.gap"},
			What:     fmt.Sprintf("the gap of %d time steps is shorter than the horizon of %d: targets of the last training samples lie behind the cut", spec.Gap, spec.Horizon),
			Expected: fmt.Sprintf("a gap of %d or more", spec.Horizon), Remedy: "leave gap out; it is the horizon then"})
	}
	uneven, err := s.judgeUnits(names, weights, part, split)
	return part, append(found, uneven...), err
}

// zoned says whether a time names its zone: then it is shown in UTC, else without one.
func zoned(value string) bool {
	return len(value) > 16 && (strings.HasSuffix(value, "Z") || strings.HasSuffix(value, "UTC") || strings.ContainsAny(value[16:], "+-"))
}

// written is a time as people write it.
func (s *scanned) written(at float64) string {
	if s.dates {
		moment := time.UnixMicro(int64(math.Round(at * 1e6))).UTC()
		if moment.Equal(moment.Truncate(24 * time.Hour)) {
			return moment.Format("2006-01-02")
		}
		if !s.zoned {
			return moment.Format("2006-01-02T15:04:05")
		}
		return moment.Format(time.RFC3339)
	}
	return strconv.FormatFloat(at, 'f', -1, 64)
}
