package metrics

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

var csvRowShape = `a header such as epoch,step,train_loss,val_loss, and as many cells in every row`

// readCSV reads a table of metrics with a header: wide (a column for each metric, blank cells where a row has none, as
// Lightning's CSVLogger and Keras' write them) or long (columns step, split, name, value). A cell that spans lines is not
// read. Findings beside those of ReadJSONL: csv_header_missing (error), csv_row_malformed.
func readCSV(path string, comma byte, limit int) (*Log, []finding.Finding, error) {
	log := newLog(path, ShapeCSV, limit)
	t := table{comma: comma, log: log, keys: keyCache{}}
	file := rowFile{path: path, malformed: "csv_row_malformed", severity: finding.Warning, rowShape: csvRowShape, form: "a CSV table"}
	read, err := file.eachLine(func(current line, lost *lineReport) { t.line(file, current, lost) })
	if err != nil {
		return nil, nil, err
	}
	if log.Shape == ShapeLightning {
		log.Shapes = map[string]int{ShapeLightning: log.Shapes[ShapeCSV]}
	}
	return log, log.finish(read), nil
}

// table reads the lines of a CSV file.
type table struct {
	comma  byte
	header []string
	failed bool // the first row is no header
	cells  []string
	row    []field
	log    *Log
	keys   keyCache
}

func (t *table) line(file rowFile, current line, lost *lineReport) {
	if t.failed {
		return
	}
	if current.tooLong {
		lost.add("line_too_long", current, 0, fmt.Sprintf("line %d has more than %d bytes and is left out", current.number, MaxLine))
		return
	}
	cells, ok := splitCells(current.text, t.comma, t.cells[:0])
	t.cells = cells
	switch {
	case t.header == nil:
		t.begin(file, current, cells, ok, lost)
	case !ok || len(cells) != len(t.header):
		if !current.terminated {
			lost.findings = append(lost.findings, finding.Finding{
				Code: "line_truncated", Severity: finding.Warning, Where: file.where(current.number, current.start), Expected: csvRowShape,
				What:   fmt.Sprintf("the last line (%d) ends in the middle of a row; the rows before it are read", current.number),
				Remedy: "if the job still runs, read again; else the writer was stopped while it wrote",
			})
			return
		}
		lost.add(file.malformed, current, 0, fmt.Sprintf("line %d has %d cells, the header has %d", current.number, len(cells), len(t.header)))
	case slices.Equal(cells, t.header): // a resumed writer repeats its header
	default:
		t.values(current, cells)
		if last := cells[len(cells)-1]; !current.terminated && last != "" {
			lost.findings = append(lost.findings, file.unterminated(current))
		}
	}
}

// begin takes the header.
func (t *table) begin(file rowFile, current line, cells []string, ok bool, lost *lineReport) {
	names := 0
	for _, cell := range cells {
		if !printedNumber(cell) && cell != "" {
			names++
		}
	}
	if !ok || 2*names < len(cells) || names == 0 {
		t.failed = true
		lost.findings = append(lost.findings, finding.Finding{
			Code: "csv_header_missing", Severity: finding.Error, Where: file.where(current.number, current.start),
			What: fmt.Sprintf("line %d is no header: its cells are not names", current.number), Expected: csvRowShape,
			Remedy: "write a header line, or name the right file",
		})
		return
	}
	t.header = append([]string{}, cells...)
	has := map[string]bool{}
	for _, name := range cells {
		has[name] = true
	}
	if has["epoch"] && has["step"] && !has["name"] {
		t.log.Shape = ShapeLightning
	}
}

// values makes a row of the cells and takes its points. A blank cell is no value, whatever its column.
func (t *table) values(current line, cells []string) {
	row := t.row[:0]
	for i, cell := range cells {
		f := field{name: t.header[i], raw: []byte(cell), loose: true}
		switch {
		case cell == "":
			f.kind = kindNull
		case printedNumber(cell):
			f.kind = kindNumber
		case nonFiniteWord(cell) != "":
			f.kind = kindNonFinite
		default:
			f.kind, f.raw = kindString, quoteCell(cell)
		}
		row = append(row, f)
	}
	t.row = row
	points, empty, _ := rowPoints(current, row, t.keys)
	t.log.row(ShapeCSV, points, empty)
}

// quoteCell makes a cell's text readable as a JSON string.
func quoteCell(cell string) []byte {
	return []byte(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(cell) + `"`)
}

// splitCells cuts a line at its commas; a cell in double quotes may hold them, and "" for one quote (RFC 4180). false when
// a quote is not closed.
func splitCells(text []byte, comma byte, into []string) ([]string, bool) {
	for {
		trimmed := bytes.TrimLeft(text, " ")
		if len(trimmed) == 0 || trimmed[0] != '"' {
			end := bytes.IndexByte(text, comma)
			if end < 0 {
				return append(into, string(bytes.TrimSpace(text))), true
			}
			into = append(into, string(bytes.TrimSpace(text[:end])))
			text = text[end+1:]
			continue
		}
		var cell []byte
		at := 1
		for ; at < len(trimmed); at++ {
			if trimmed[at] == '"' {
				if at+1 >= len(trimmed) || trimmed[at+1] != '"' {
					break
				}
				at++
			}
			cell = append(cell, trimmed[at])
		}
		if at >= len(trimmed) {
			return append(into, string(cell)), false
		}
		rest := bytes.TrimLeft(trimmed[at+1:], " ")
		into = append(into, string(cell))
		if len(rest) == 0 {
			return into, true
		}
		if rest[0] != comma {
			return into, false
		}
		text = rest[1:]
	}
}

// commaOf is the separator that a header uses: the one that occurs most, a comma where none does.
func commaOf(header []byte) byte {
	best, most := byte(','), 0
	for _, c := range []byte{',', '\t', ';'} {
		if n := bytes.Count(header, []byte{c}); n > most {
			best, most = c, n
		}
	}
	return best
}

// isTable says whether two lines are the header of a table and its first row: at least two names that hold no pair of
// their own, over as many cells, at least half of them numbers or blank.
func isTable(header, row []byte) bool {
	comma := commaOf(header)
	names, ok := splitCells(header, comma, nil)
	if !ok || len(names) < 2 {
		return false
	}
	for _, name := range names {
		if name == "" || printedNumber(name) || strings.ContainsAny(name, "=:{}[]|") || strings.Count(name, " ") > 2 {
			return false
		}
	}
	cells, ok := splitCells(row, comma, nil)
	if !ok || len(cells) != len(names) {
		return false
	}
	numbers := 0
	for _, cell := range cells {
		if cell == "" || printedNumber(cell) || nonFiniteWord(cell) != "" {
			numbers++
		}
	}
	return 2*numbers >= len(cells)
}
