package dataset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// recordFinding is the finding of a *RecordError, nil for any other error.
func (t *table) recordFinding(err error) *finding.Finding {
	var broken *RecordError
	if !errors.As(err, &broken) {
		return nil
	}
	f := finding.Finding{Code: broken.Code, Severity: finding.Error, What: broken.Why,
		Where:    &finding.Where{Path: t.path, Line: broken.Line, Byte: broken.Byte},
		Expected: fmt.Sprintf("records of at most %d bytes", MaxRecord), Remedy: "check that this is a text table with one record a line"}
	switch broken.Code {
	case "gzip_damaged", "parquet_damaged", "json_damaged":
		f.Expected, f.Remedy = "a complete file", "fetch or write it again"
	case "gzip_bomb":
		f.Expected, f.Remedy = "a file that unpacks to what its size lets expect", "find out where it comes from; if it is meant, unpack it yourself"
	}
	if broken.Code == "quote_unterminated" {
		f.Expected, f.Remedy = "a closing quote", `close the quote, or double it ("") where it is part of the text`
	}
	return &f
}

// findings tells what was odd about the text so far: about the header, the cut of the records, and single bytes.
func (t *table) findings() []finding.Finding {
	out := append([]finding.Finding{}, t.early...)
	if f := t.ragged(); f != nil {
		out = append(out, *f)
	}
	add := func(count int64, code string, severity finding.Severity, where finding.Where, what, expected, remedy string) {
		if count > 0 {
			where.Path = t.path
			out = append(out, finding.Finding{Code: code, Severity: severity, What: fmt.Sprintf(what, count), Where: &where, Expected: expected, Remedy: remedy})
		}
	}
	add(t.odd.nul, "nul_bytes", finding.Error, t.odd.nulAt, "NUL bytes in %d record(s)", "text without NUL bytes",
		"find out what damaged the file; readers stop or differ there")
	add(t.odd.notUTF8, "encoding_not_utf8", finding.Warning, t.odd.notUTF8At, "%d record(s) are not UTF-8; they are read as Latin-1", "UTF-8",
		"pass the encoding in the script, or convert: iconv -f LATIN1 -t UTF-8")
	add(t.odd.bareCR, "bare_cr", finding.Warning, t.odd.bareCRAt, "%d record(s) hold a carriage return in the middle", "line ends LF or CRLF",
		"pandas ends the record there and counts more rows; remove it")
	reader := t.reader
	if reader == nil {
		reader = &Reader{}
	}
	add(reader.stray, "quote_stray", finding.Warning, finding.Where{Line: int(reader.strayAt[0]), Byte: reader.strayAt[1]},
		"%d field(s) hold a quote that neither opens nor closes the field; it is taken as text", "quotes around whole fields, doubled inside", "strict readers refuse these records; quote the field")
	add(t.blank+reader.blank, "blank_lines", finding.Note, finding.Where{}, "%d blank line(s) were skipped and are not counted as records", "", "")
	if t.rows == 0 {
		out = append(out, finding.Finding{Code: "no_rows", Severity: finding.Error, What: "the file has a header and no data records",
			Where: &finding.Where{Path: t.path, Line: 1}, Expected: "at least one data record", Remedy: "check that it was written completely"})
	}
	if len(t.names) == 1 && t.rows > 0 {
		add(1, "single_column", finding.Note, finding.Where{Line: 1}, "found %d column", "", "name the delimiter if the file has more columns")
	}
	return out
}

// ragged tells of records whose number of fields is not the header's.
func (t *table) ragged() *finding.Finding {
	if t.badTotal == 0 {
		return nil
	}
	var places []string
	for _, row := range t.bad[:min(len(t.bad), 3)] {
		places = append(places, fmt.Sprintf("line %d has %d", row.Line, row.Fields))
	}
	if t.badTotal > int64(len(places)) {
		places = append(places, "…")
	}
	first := t.bad[0]
	if first.Why != "" {
		return &finding.Finding{Code: "row_not_json", Severity: finding.Error, What: fmt.Sprintf("%d of %d line(s) can't be read as a JSON object; line %d: %s", t.badTotal, t.rows, first.Line, first.Why),
			Where: &finding.Where{Path: t.path, Line: first.Line, Byte: first.Byte}, Expected: "one JSON object a line", Remedy: "repair or remove these lines"}
	}
	f := &finding.Finding{Code: "row_ragged", Severity: finding.Error,
		What:     fmt.Sprintf("%d of %d record(s) don't have the %d fields of the header: %s", t.badTotal, t.rows, first.Want, strings.Join(places, ", ")),
		Where:    &finding.Where{Path: t.path, Line: first.Line, Byte: first.Byte},
		Expected: fmt.Sprintf("%d fields", first.Want), Remedy: "repair or remove these records; quote values that contain the delimiter"}
	if t.badTotal == t.rows {
		f.Remedy = "the header does not fit any record: name the delimiter, or correct the first line"
		if first.Fields == first.Want+1 {
			f.Remedy = "the header lacks a name for the first column (a written-out index): add one"
		}
	}
	return f
}

// errorsOf keeps the findings that stop a step.
func errorsOf(findings []finding.Finding) []finding.Finding {
	var out []finding.Finding
	for _, f := range findings {
		if f.Severity == finding.Error {
			out = append(out, f)
		}
	}
	return out
}

// newline names the line ends that were seen.
func (r *Reader) newline() string {
	switch {
	case r == nil:
		return ""
	case r.lf > 0 && r.crlf > 0:
		return "mixed"
	case r.crlf > 0:
		return "crlf"
	case r.lf > 0 && r.eol == '\r':
		return "cr"
	case r.lf > 0:
		return "lf"
	}
	return "none"
}
