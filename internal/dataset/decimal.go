package dataset

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// A file whose delimiter is no comma may write numbers with a decimal comma, as spreadsheets do in much of Europe: 3,14 or
// 1.234,5. Whether a column does is decided by the records at the beginning of the file.

// decimalComma says which columns of these records hold nothing but numbers and missing values, and a decimal comma among them.
func decimalComma(records [][]string) []bool {
	var commas, others []bool
	for _, fields := range records {
		for i, field := range fields {
			for len(commas) <= i {
				commas, others = append(commas, false), append(others, false)
			}
			value := trim([]byte(field))
			switch k, _ := classify(value); {
			case isDecimalComma(value):
				commas[i] = true
			case k == kindString || k == kindDate || k == kindBoolean:
				others[i] = true
			}
		}
	}
	for i := range commas {
		commas[i] = commas[i] && !others[i]
	}
	return commas
}

// isDecimalComma recognises "1,5", "-0,25", "2,5e-3" and "1.234,5".
func isDecimalComma(b []byte) bool {
	i := bytes.IndexByte(b, ',')
	if i < 0 || i == len(b)-1 {
		return false
	}
	whole, fraction := bytes.TrimLeft(b[:i], "+-"), b[i+1:]
	if len(b)-len(fraction)-1-len(whole) > 1 {
		return false
	}
	if e := bytes.IndexAny(fraction, "eE"); e > 0 {
		exponent := bytes.TrimLeft(fraction[e+1:], "+-")
		if len(exponent) == 0 || !digitsAt(exponent, 0, len(exponent)) {
			return false
		}
		fraction = fraction[:e]
	}
	if !digitsAt(fraction, 0, len(fraction)) {
		return false
	}
	groups := bytes.Split(whole, []byte{'.'})
	for n, group := range groups {
		if !digitsAt(group, 0, len(group)) || n > 0 && len(group) != 3 || len(groups) > 1 && n == 0 && (len(group) == 0 || len(group) > 3) {
			return false
		}
	}
	return true
}

// pointed gives a record's decimal commas a point, in the columns that write them. The record's bytes stay as they are: what is
// copied into another file is copied as it was written.
func (t *table) pointed(r *Record) {
	t.scratch = t.scratch[:0]
	for i, writes := range t.commas {
		if !writes || i >= len(r.Fields) {
			continue
		}
		value := trim(r.Fields[i])
		if !isDecimalComma(value) {
			if bytes.IndexByte(value, '.') >= 0 {
				t.points[i]++
			}
			continue
		}
		from := len(t.scratch)
		for _, c := range value {
			switch c {
			case '.':
			case ',':
				t.scratch = append(t.scratch, '.')
			default:
				t.scratch = append(t.scratch, c)
			}
		}
		r.Fields[i] = t.scratch[from:len(t.scratch):len(t.scratch)]
	}
}

// decimalFindings tells which columns are read with a decimal comma, and where a point stands among the commas.
func (t *table) decimalFindings() []finding.Finding {
	var out []finding.Finding
	var written []string
	for i, writes := range t.commas {
		if !writes {
			continue
		}
		written = append(written, strconv.Quote(t.names[i]))
		if t.points[i] > 0 {
			out = append(out, finding.Finding{Code: "decimal_mixed", Severity: finding.Warning, Where: &finding.Where{Path: t.path, Field: t.names[i]},
				What:     fmt.Sprintf("column %q writes decimal commas, and %d value(s) hold a point and no comma; the point is read as a decimal point", t.names[i], t.points[i]),
				Expected: "one way of writing numbers", Remedy: "find out whether that point parts thousands, and rewrite these values"})
		}
	}
	if written == nil {
		return nil
	}
	return append([]finding.Finding{{Code: "decimal_comma", Severity: finding.Note, Where: &finding.Where{Path: t.path},
		What:   "numbers are written with a decimal comma, and read as numbers, in the columns " + shorten(strings.Join(written, ", "), 200),
		Remedy: "the script must read them so as well (pandas: decimal=',')"}}, out...)
}
