package dataset

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// Profile is what data_profile.json holds: what was read, how it is written, and each column.
type Profile struct {
	Files      []FileInfo         `json:"files"`
	Coverage   Coverage           `json:"coverage"`
	Format     Format             `json:"format"`
	Columns    map[string]*Column `json:"columns"`
	Order      []string           `json:"order"` // the columns as the header has them
	Duplicates Duplicates         `json:"duplicates"`
	Bad        []BadRow           `json:"bad,omitempty"` // the first few ragged records
	BadTotal   int64              `json:"bad_total,omitempty"`

	target string // the target whose missing values ProfileTable has told of
}

// Coverage says how much of the data the profile rests on. Rows is a projection from the bytes read where Estimated.
type Coverage struct {
	RowsRead  int64 `json:"rows_read"`
	Rows      int64 `json:"rows"`
	Whole     bool  `json:"whole"`
	Estimated bool  `json:"rows_estimated,omitempty"`
	Unknown   bool  `json:"rows_unknown,omitempty"` // Rows is only what was read: nothing tells how many follow
}

// Duplicates are data records equal to an earlier one, compared by their values without the columns in Ignoring.
type Duplicates struct {
	Rows        int64       `json:"rows"`
	Examples    []Duplicate `json:"examples,omitempty"`
	RowsChecked int64       `json:"rows_checked"`
	Ignoring    []string    `json:"ignoring,omitempty"`
}

// Duplicate is a record and the line of the first one like it.
type Duplicate struct {
	Line      int `json:"line"`
	FirstLine int `json:"first_line"`
}

// ProfileOptions say how to read and where to stop. Zero values mean: look, read all, the usual bounds.
type ProfileOptions struct {
	Dialect
	MaxBytes int64  // read records up to this offset; 0 reads the whole file
	ID       string // left out when records are compared
	Target   string // its missing values are an error

	DistinctBound  int   // distinct values counted exactly per column; 0: 131,072, less for wide files
	QuantileBound  int   // values kept per column for quantiles; 0: 131,072, less for wide files
	DuplicateBound int64 // records compared; 0: all
}

// bounded fills in the bounds. Columns share a budget of eight million hashes (128 MB at worst) and four million numbers
// (32 MB).
func (o ProfileOptions) bounded(columns int) ProfileOptions {
	share := func(budget, most int) int { return min(max(budget/max(columns, 1), 64), most) }
	if o.DistinctBound <= 0 {
		o.DistinctBound = share(8<<20, 1<<17)
	}
	if o.QuantileBound <= 0 {
		o.QuantileBound = share(4<<20, 1<<17)
	}
	if o.DuplicateBound <= 0 {
		o.DuplicateBound = math.MaxInt64
	}
	return o
}

// profiler is one reading of a file.
type profiler struct {
	opts      ProfileOptions
	table     *table
	columns   []*gatherer // once all is read
	rows      rowSide
	duplicate Duplicates
	offset    int64            // behind the last record read
	broken    *finding.Finding // what ended the reading before the bound
}

// ProfileTable reads a table (delimited text, JSON Lines, a JSON array of objects, Parquet; text also packed with gzip) in bounded memory and describes it. A file that is no text table is refused
// (*finding.Refused: file_missing, file_unreadable, path_is_directory, file_empty, not_text, delimiter_invalid,
// column_unknown). Damage inside the file comes as findings beside the profile of what could be read.
func ProfileTable(ctx context.Context, path string, opts ProfileOptions) (*Profile, []finding.Finding, error) {
	t, err := openBounded(ctx, path, opts.Dialect, opts.MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	p := &profiler{opts: opts.bounded(len(t.names)), table: t}
	p.rows = rowSide{seed: maphash.MakeSeed(), id: t.column(opts.ID), bound: p.opts.DuplicateBound}
	if t.reader != nil {
		p.rows.delim = t.reader.delim
	}
	for _, name := range []string{opts.ID, opts.Target} {
		if f := t.unknown(name); f != nil {
			return nil, nil, finding.Refuse(*f)
		}
	}
	if opts.ID != "" {
		p.duplicate.Ignoring = []string{opts.ID}
	}
	p.rows.copies = newCopies(t.column(opts.Target), len(t.names))
	defer p.rows.repeats.close()
	broken, err := p.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	p.broken = broken
	profile, err := p.finish()
	if err != nil {
		return nil, nil, err
	}
	found := t.findings()
	if broken != nil {
		found = append(found, *broken)
	}
	return profile, append(found, p.findings(profile)...), nil
}

// read takes every record. Text that can't be cut into records any further ends it with a finding, not an error.
func (p *profiler) read(ctx context.Context) (*finding.Finding, error) {
	takes, columns := []func(*batch){p.rows.take}, []*columnSide{}
	for i := range columnSides {
		side := newColumnSide(i, len(p.table.names), func() *gatherer { return newGatherer(p.opts.DistinctBound, p.opts.QuantileBound) })
		takes, columns = append(takes, side.take), append(columns, side)
	}
	sides := gather(takes...)
	at := <-sides.free
	ended, found, err := p.fill(ctx, sides, &at)
	sides.finish(at)
	p.columns = dealt(columns)
	if ended || found != nil || err != nil {
		return found, err
	}
	// The bound may have fallen behind the last record; only a further read tells.
	if record, err := p.table.source.Next(); err == nil {
		p.offset = record.Byte
	} else if p.table.ended = err == io.EOF; err != io.EOF && !errors.Is(err, errPastBound) && !errors.As(err, new(*RecordError)) {
		return nil, p.table.refuse(err)
	}
	return nil, nil
}

// fill copies records into batches until the bound, or until the text ends or can't be read any further.
func (p *profiler) fill(ctx context.Context, sides *gathering, at **batch) (ended bool, found *finding.Finding, err error) {
	for p.opts.MaxBytes <= 0 || p.offset < p.opts.MaxBytes {
		record, err := p.table.next(ctx)
		if err == io.EOF {
			return true, nil, nil
		}
		if errors.Is(err, errPastBound) {
			p.offset = max(p.offset, p.opts.MaxBytes)
			return true, nil, nil
		}
		if f := p.table.recordFinding(err); f != nil {
			return true, f, nil
		}
		if err != nil {
			return true, nil, p.table.refuse(err)
		}
		p.offset = max(p.offset, record.Byte+int64(len(record.Raw)+len(record.End)))
		(*at).add(record, p.table.reader != nil && !record.Quoted && p.table.commas == nil)
		if (*at).full() {
			sides.hand(*at)
			*at = <-sides.free
		}
	}
	return false, nil, nil
}

func (p *profiler) finish() (profile *Profile, err error) {
	t := p.table
	p.duplicate.RowsChecked = p.rows.repeats.n
	if p.duplicate.Rows, p.duplicate.Examples, err = p.rows.repeats.find(keptExamples); err != nil {
		return nil, err
	}
	t.format.Newline = t.reader.newline()
	if t.odd.notUTF8 > 0 {
		t.format.Encoding = "latin-1"
	}
	profile = &Profile{Files: []FileInfo{t.info()}, Format: t.format, Columns: map[string]*Column{}, Order: slices.Clone(t.names),
		Duplicates: p.duplicate, Bad: t.bad, BadTotal: t.badTotal, target: p.opts.Target}
	for i, column := range p.columns {
		profile.Columns[t.names[i]] = column.finish(t.names[i])
		if i < len(t.commas) && t.commas[i] {
			profile.Columns[t.names[i]].Decimal = ","
		}
	}
	profile.Coverage = Coverage{RowsRead: t.rows, Rows: t.rows, Whole: t.ended}
	if !profile.Coverage.Whole && p.offset > 0 {
		if share, known := t.share(p.offset); known && share > 0 {
			profile.Coverage.Rows, profile.Coverage.Estimated = max(t.rows, int64(float64(t.rows)/share)), true
		} else {
			profile.Coverage.Unknown = true
		}
	}
	return profile, nil
}

// findings tells what the profile shows that a person would want to know before training.
func (p *profiler) findings(profile *Profile) []finding.Finding {
	var out []finding.Finding
	path := p.table.path
	if d := profile.Duplicates; d.Rows > 0 {
		first := d.Examples[0]
		out = append(out, finding.Finding{Code: "rows_duplicate", Severity: finding.Warning,
			What:     fmt.Sprintf("%d of %d records repeat an earlier one; line %d repeats line %d", d.Rows, d.RowsChecked, first.Line, first.FirstLine),
			Where:    &finding.Where{Path: path, Line: first.Line},
			Expected: "independent records", Remedy: "a split keeps repeats in one part; remove them if they are an accident"})
	}
	if checked := profile.Duplicates.RowsChecked; checked < profile.Coverage.RowsRead-profile.BadTotal {
		out = append(out, finding.Finding{Code: "duplicates_unchecked", Severity: finding.Note, Where: &finding.Where{Path: path},
			What: fmt.Sprintf("only the first %d records were compared with each other", checked)})
	}
	if !profile.Coverage.Whole {
		out = append(out, p.partial(profile))
	}
	out = append(out, p.table.decimalFindings()...)
	for i, name := range profile.Order {
		out = append(out, columnFindings(path, profile.Columns[name], p.columns[i])...)
	}
	if p.opts.Target != "" {
		out = append(out, targetMissing(path, profile.Columns[p.opts.Target])...)
		out = append(out, p.rows.copies.findings(path, profile.Order, p.opts.ID)...)
	}
	return out
}

// partial tells how far the profile reaches, and what ended it.
func (p *profiler) partial(profile *Profile) finding.Finding {
	read := fmt.Sprintf("%d of %d bytes", p.offset, p.table.size)
	if p.table.text != nil && p.table.text.packed {
		read = fmt.Sprintf("%d bytes of text", p.offset)
		if share, known := p.table.share(p.offset); known {
			read += fmt.Sprintf(", about %.0f %% of the file", 100*share)
		}
	}
	f := finding.Finding{Code: "coverage_partial", Severity: finding.Note, Where: &finding.Where{Path: p.table.path, Byte: p.offset},
		What:   fmt.Sprintf("the profile rests on the first %d records, %s; where the rows are sorted, the others may look otherwise", profile.Coverage.RowsRead, read),
		Remedy: "raise max_bytes to read all"}
	if p.broken != nil {
		f.What = fmt.Sprintf("the profile rests on the first %d records, %s: reading ended there (%s)", profile.Coverage.RowsRead, read, p.broken.Code)
		f.Remedy = "mend the file at that place, then profile it again"
	}
	return f
}

func columnFindings(path string, c *Column, g *gatherer) []finding.Finding {
	var out []finding.Finding
	add := func(code string, severity finding.Severity, at []BadValue, what, expected, remedy string) {
		where := &finding.Where{Path: path, Field: c.Name}
		if len(at) > 0 {
			where.Line, where.Byte = at[0].Line, at[0].Byte
		}
		out = append(out, finding.Finding{Code: code, Severity: severity, What: what, Where: where, Expected: expected, Remedy: remedy})
	}
	filled := g.kinds[kindString] + g.kinds[kindBoolean] + g.kinds[kindDate] + c.Numbers + c.NonFinite
	if c.Type == TypeMixed {
		add("column_mixed", finding.Warning, c.Bad, fmt.Sprintf("column %q: %d of %d values are of another type, the first is %q", c.Name, c.BadTotal, filled, c.Bad[0].Value),
			"values of one type", "correct these values, or write them as a missing value")
	}
	if c.NonFinite > 0 {
		add("values_non_finite", finding.Warning, g.examples[kindNonFinite], fmt.Sprintf("column %q: %d infinite value(s); they are left out of the statistics", c.Name, c.NonFinite),
			"finite numbers", "clip or remove them; they make the loss non-finite")
	}
	if g.commas > 0 && 2*g.commas >= filled {
		add("decimal_comma", finding.Warning, g.examples[kindString], fmt.Sprintf("column %q writes numbers with a decimal comma (%q); they are read as text", c.Name, g.examples[kindString][0].Value),
			"a decimal point", "convert them, or read with decimal=',' in the script")
	}
	for _, x := range g.suspects {
		add("sentinel_suspected", finding.Warning, []BadValue{x.at}, fmt.Sprintf("column %q: %s stands %d time(s), far from all other values, and in the statistics: perhaps it says that there is none", c.Name, x.at.Value, x.n),
			"an empty field where there is no value", fmt.Sprintf("ask the user; if so write them empty, or have the script read them so (pandas: na_values=[%s])", x.at.Value))
	}
	out = append(out, dateFindings(path, c)...)
	if filled == 0 && c.Missing > 0 {
		add("column_empty", finding.Warning, nil, fmt.Sprintf("column %q holds no value", c.Name), "", "leave it out of the features")
	} else if c.Distinct == 1 && filled > 1 && c.Missing == 0 {
		add("column_constant", finding.Note, nil, fmt.Sprintf("column %q has the same value in every record", c.Name), "", "leave it out of the features; dividing by its deviation divides by zero")
	}
	return out
}

// targetMissing tells of records without a target.
func targetMissing(path string, c *Column) []finding.Finding {
	if c == nil || c.Missing == 0 {
		return nil
	}
	f := finding.Finding{Code: "target_missing_values", Severity: finding.Error,
		What:     fmt.Sprintf("the target %q is missing in %d record(s)", c.Name, c.Missing),
		Where:    &finding.Where{Path: path, Field: c.Name},
		Expected: "a target in every record", Remedy: "remove these records or supply their targets"}
	if len(c.MissingAt) > 0 {
		f.What += ": " + linesOf(c.MissingAt, c.Missing)
		f.Where.Line, f.Where.Byte = c.MissingAt[0].Line, c.MissingAt[0].Byte
	}
	return []finding.Finding{f}
}
