package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Dates is what a column of dates spans and how regularly. Step is the most frequent time between one value and the next later one,
// in seconds; a gap is longer than one and a half steps. Values that begin again at an earlier time, as when the file lists
// station after station, are counted in Backward and end no gap.
type Dates struct {
	Format   string `json:"format"` // of the first value: YYYY-MM-DD, YYYY-MM-DD hh:mm:ss, DD.MM.YYYY, …
	First    string `json:"first"`  // the earliest, ISO 8601
	Last     string `json:"last"`
	Step     int64  `json:"step_seconds,omitempty"`
	Gaps     int64  `json:"gaps,omitempty"`
	Widest   *Gap   `json:"widest_gap,omitempty"`
	Repeated int64  `json:"repeated,omitempty"` // values equal to the one before
	Backward int64  `json:"backward,omitempty"` // values earlier than the one before
	Odd      int64  `json:"odd,omitempty"`      // values of another format than the first
}

// Gap is a stretch without a value: its length in seconds, and the line of the value behind it.
type Gap struct {
	Seconds int64 `json:"seconds"`
	Line    int   `json:"line"`
	Byte    int64 `json:"byte"`
}

// maxSteps is how many lengths of step are told apart; a column with more has no regular step.
const maxSteps = 1024

// chronology follows the dates of a column in the order of the file.
type chronology struct {
	n                  int64
	form               dateForm // of the first
	first, last        int64    // earliest and latest, seconds since 1970
	previous           int64
	repeated, backward int64
	odd                int64
	steps              map[int64]*stepCount // nil once there are too many
}

type stepCount struct {
	n  int64
	at Gap // the first place
}

func (c *chronology) add(value []byte, where cell) {
	at, form := secondsOf(value)
	if c.n++; c.n == 1 {
		c.form, c.first, c.last, c.previous, c.steps = form, at, at, at, map[int64]*stepCount{}
		return
	}
	if form != c.form {
		c.odd++
	}
	c.first, c.last = min(c.first, at), max(c.last, at)
	switch step := at - c.previous; {
	case step < 0:
		c.backward++
	case step == 0:
		c.repeated++
	case c.steps == nil:
	case c.steps[step] != nil:
		c.steps[step].n++
	case len(c.steps) == maxSteps:
		c.steps = nil
	default:
		line, offset := where.place()
		c.steps[step] = &stepCount{1, Gap{step, line, offset}}
	}
	c.previous = at
}

// finish makes the Dates, nil without any.
func (c *chronology) finish() *Dates {
	if c.n == 0 {
		return nil
	}
	d := &Dates{Format: c.form.String(), First: isoTime(c.first), Last: isoTime(c.last), Repeated: c.repeated, Backward: c.backward, Odd: c.odd}
	var most int64
	for step, count := range c.steps {
		if count.n > most || count.n == most && step < d.Step {
			most, d.Step = count.n, step
		}
	}
	if most < 2 {
		d.Step = 0 // no two steps are alike
		return d
	}
	for step, count := range c.steps {
		if 2*step > 3*d.Step && !aboutAMonth(d.Step, step) {
			d.Gaps += count.n
			if d.Widest == nil || step > d.Widest.Seconds {
				d.Widest = &count.at
			}
		}
	}
	return d
}

// aboutAMonth says that two steps are both months (28 to 31 days) or years (365, 366): they are of one calendar.
func aboutAMonth(a, b int64) bool {
	const day = 24 * 3600
	both := func(low, high int64) bool { return min(a, b) >= low*day && max(a, b) <= high*day }
	return both(28, 31) || both(365, 366) || both(90, 92)
}

func isoTime(seconds int64) string {
	at := time.Unix(seconds, 0).UTC()
	if seconds%(24*3600) == 0 {
		return at.Format("2006-01-02")
	}
	return at.Format("2006-01-02T15:04:05")
}

// dateForm is how a date is written: the sign between year, month and day, what stands before the clock (0 for no clock), and
// whether the clock has seconds.
type dateForm struct {
	sign, clock byte
	seconds     bool
}

func (f dateForm) String() string {
	form := "YYYY" + string(f.sign) + "MM" + string(f.sign) + "DD"
	if f.sign == '.' {
		form = "DD.MM.YYYY"
	}
	if f.clock != 0 {
		form += string(f.clock) + "hh:mm"
	}
	if f.seconds {
		form += ":ss"
	}
	return form
}

// secondsOf reads what isDate has recognised: seconds since 1970 as if it were UTC, since zones do not matter for the order of one
// column, and how it is written.
func secondsOf(b []byte) (seconds int64, form dateForm) {
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	var year, month, day int
	if b[2] != '.' {
		year, month, day, form.sign = two(0)*100+two(2), two(5), two(8), b[4]
	} else {
		day, month, year, form.sign = two(0), two(3), two(6)*100+two(8), '.'
	}
	at := daysFromCivil(year, month, day) * 24 * 3600
	if len(b) > 10 {
		form.clock = b[10]
		at += int64(two(11))*3600 + int64(two(14))*60
		if rest := b[11:]; len(rest) >= 8 && rest[5] == ':' && digitsAt(rest, 6, 2) {
			at += int64(two(17))
			form.seconds = true
		}
	}
	return at, form
}

// daysFromCivil are the days since 1970-01-01 of a date of the Gregorian calendar (Howard Hinnant, "chrono-Compatible Low-Level Date
// Algorithms"); a day that the month does not have counts on into the next.
func daysFromCivil(year, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	ofEra := year - era*400
	ofYear := (153*((month+9)%12)+2)/5 + day - 1
	return int64(era*146097+ofEra*365+ofEra/4-ofEra/100+ofYear) - 719468
}

// dateFindings tells of a time axis that is not what a forecast takes it for.
func dateFindings(path string, c *Column) []finding.Finding {
	d := c.Dates
	if d == nil || c.Type != TypeDate {
		return nil
	}
	var out []finding.Finding
	if d.Gaps > 0 && 6*d.Gaps <= c.Distinct { // more of them are a calendar, such as working days
		out = append(out, finding.Finding{Code: "time_gaps", Severity: finding.Note, Where: &finding.Where{Path: path, Field: c.Name, Line: d.Widest.Line, Byte: d.Widest.Byte},
			What:     fmt.Sprintf("column %q has %d gap(s) wider than its step of %s; the widest is %s", c.Name, d.Gaps, lengthOf(d.Step), lengthOf(d.Widest.Seconds)),
			Expected: "a regular step", Remedy: "a window over a gap is no window: fill it, or cut the series there"})
	}
	if d.Backward > 0 && 20*d.Backward <= c.Distinct { // else the rows are in no order of time at all
		out = append(out, finding.Finding{Code: "time_unordered", Severity: finding.Note, Where: &finding.Where{Path: path, Field: c.Name},
			What:   fmt.Sprintf("column %q goes back in time %d time(s) in the order of the rows", c.Name, d.Backward),
			Remedy: "nothing to do where the file lists one series after another (phase_2_data_and_split: data.group names its column); else sort it"})
	}
	if d.Odd > 0 {
		out = append(out, finding.Finding{Code: "dates_mixed", Severity: finding.Warning, Where: &finding.Where{Path: path, Field: c.Name},
			What:     fmt.Sprintf("column %q writes %d date(s) otherwise than the first, %s", c.Name, d.Odd, d.Format),
			Expected: "one format", Remedy: "rewrite them; readers guess the format from the first values"})
	}
	return out
}

// timeUnits are the units of a length of time, in seconds, the longest first.
var timeUnits = []struct {
	seconds int64
	name    string
}{{24 * 3600, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}}

// lengthOf writes a length of time in its largest whole unit.
func lengthOf(seconds int64) string {
	for _, unit := range timeUnits {
		if seconds%unit.seconds == 0 {
			n := seconds / unit.seconds
			if n == 1 {
				return "1 " + unit.name
			}
			return strconv.FormatInt(n, 10) + " " + unit.name + "s"
		}
	}
	return ""
}

// sentinels are numbers that people and instruments write for "no value". The last are the default fill values of netCDF (NC_FILL_FLOAT,
// NC_FILL_INT; https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html) and of GRIB.
var sentinels = []float64{-99, -999, -9999, -99999, -999.9, -99.9, -9999.9, 999, 9999, 99999, 999.9, 99.9, 9999.9, 9.969209968386869e36, -2147483647, -32767, 9.999e20}

// sentinelFilter is true for few numbers beside the sentinels.
var sentinelFilter = func() (filter [256]bool) {
	for _, number := range sentinels {
		filter[filterOf(number)] = true
	}
	return filter
}()

func filterOf(number float64) uint8 { return uint8(math.Float64bits(number) * hashA >> 56) }

// suspect is a sentinel that a column holds: how often, and where first.
type suspect struct {
	value float64
	n     int64
	at    BadValue
}

// suspects counts sentinels. Few numbers are as far out as the least of them, so that most cost one comparison.
type suspects []suspect

func (s *suspects) add(number float64, value []byte, at cell) {
	if number < 99 && number > -99 || !sentinelFilter[filterOf(number)] || !slices.Contains(sentinels, number) {
		return
	}
	for j := range *s {
		if (*s)[j].value == number {
			(*s)[j].n++
			return
		}
	}
	line, offset := at.place()
	*s = append(*s, suspect{number, 1, BadValue{Line: line, Byte: offset, Value: shorten(text(value), longestShown)}})
}

// leastSentinels is how often a number has to stand to be taken for a sign.
const leastSentinels = 3

// found are the sentinels that stand apart: at an end of the range, repeated, and more than five interquartile ranges from the rest.
// sorted are the column's numbers, or a sample of them.
func (s suspects) found(sorted []float64) []suspect {
	var out []suspect
	rest := slices.DeleteFunc(slices.Clone(sorted), func(v float64) bool {
		return slices.ContainsFunc(s, func(x suspect) bool { return x.value == v && x.n >= leastSentinels })
	})
	if len(rest) == 0 {
		return nil
	}
	low, high := quantile(rest, 0.25), quantile(rest, 0.75)
	reach := max(5*(high-low), rest[len(rest)-1]-rest[0])
	for _, x := range s {
		if x.n >= leastSentinels && (x.value < rest[0] && low-x.value > reach || x.value > rest[len(rest)-1] && x.value-high > reach) {
			out = append(out, x)
		}
	}
	return out
}
