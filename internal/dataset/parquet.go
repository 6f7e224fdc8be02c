package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

const parquetMagic = "PAR1"

// parquetRows reads a Parquet file row by row. Columns are the leaves of the schema, inner ones as outer.inner; the values of a repeated
// one stand as a JSON array. A record's Line is the number of the row, from 1: there are no lines.
type parquetRows struct {
	file   *parquet.File
	group  int
	rows   parquet.Rows
	buffer []parquet.Row
	have   int
	next   int
	names  []string
	write  []func([]byte, parquet.Value) []byte
	list   []bool
	bare   []bool // numbers, truth values and lists, which JSON writes without quotes
	rec    Record
	text   []byte
	ends   []int
	err    error
}

// openParquet reads the footer. A damaged file is a *RecordError: the library panics on some.
func openParquet(file *os.File, size int64) (rows *parquetRows, err error) {
	defer heldParquet(&err, 0)
	if err := footerFits(file, size); err != nil {
		return nil, err
	}
	opened, err := parquet.OpenFile(file, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, &RecordError{Code: "parquet_damaged", Line: 1, Why: "the Parquet file can't be opened; it may be cut off: " + err.Error()}
	}
	p := &parquetRows{file: opened, buffer: make([]parquet.Row, 64)}
	for _, path := range opened.Schema().Columns() {
		leaf, ok := opened.Schema().Lookup(path...)
		if !ok {
			return nil, &RecordError{Code: "parquet_damaged", Line: 1, Why: "the schema has no column " + strings.Join(path, ".")}
		}
		p.names = append(p.names, parquetName(path))
		p.write = append(p.write, parquetText(leaf.Node))
		p.list = append(p.list, leaf.MaxRepetitionLevel > 0)
		kind := leaf.Node.Type().Kind()
		p.bare = append(p.bare, leaf.MaxRepetitionLevel > 0 || kind != parquet.ByteArray && kind != parquet.FixedLenByteArray && kind != parquet.Int96)
	}
	return p, nil
}

// footerFits compares the length of the footer, which the last eight bytes tell, with the file's: the library takes that much memory, 4 GB
// at worst, before it looks.
func footerFits(file *os.File, size int64) error {
	var tail [8]byte
	if size < int64(len(tail)+len(parquetMagic)) {
		return nil // the library says what is wrong with it
	}
	if _, err := file.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) == parquetMagic && length > size-int64(len(tail)+len(parquetMagic)) {
		return &RecordError{Code: "parquet_damaged", Line: 1, Byte: size - int64(len(tail)), Why: fmt.Sprintf("the Parquet file says that its footer has %d bytes, and has %d in all: it is cut off or damaged", length, size)}
	}
	return nil
}

// parquetName leaves out the two levels that lists have by convention (LogicalTypes.md, "Lists").
func parquetName(path []string) string {
	var kept []string
	for i, part := range path {
		if i > 0 && (part == "list" || part == "element" || part == "array" || part == "item") {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, ".")
}

func heldParquet(err *error, row int64) {
	if r := recover(); r != nil {
		*err = &RecordError{Code: "parquet_damaged", Line: int(row) + 1, Why: fmt.Sprintf("the Parquet file is damaged: %.200v", r)}
	}
}

func (p *parquetRows) Next() (record *Record, err error) {
	defer func() {
		if err != nil {
			p.err, record = err, nil
		}
	}()
	defer heldParquet(&err, int64(p.rec.Line)) // values that are not of their column's type
	if p.err == nil {
		if err := p.fill(); err != nil {
			p.err = err
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	row := p.buffer[p.next]
	p.next++
	p.rec.Line++
	p.text, p.ends, p.rec.Fields, p.rec.Starts = p.text[:0], p.ends[:0], p.rec.Fields[:0], p.rec.Starts[:0]
	row.Range(func(column int, values []parquet.Value) bool {
		if p.list[column] {
			p.text = append(p.text, '[')
		}
		said := false
		for _, v := range values {
			if v.IsNull() {
				continue
			}
			if said {
				p.text = append(p.text, ',')
			}
			p.text, said = p.write[column](p.text, v), true
		}
		if p.list[column] {
			p.text = append(p.text, ']')
		}
		p.ends = append(p.ends, len(p.text))
		return true
	})
	from := 0
	for _, end := range p.ends {
		p.rec.Fields, p.rec.Starts = append(p.rec.Fields, p.text[from:end]), append(p.rec.Starts, 0)
		from = end
	}
	p.rec.Raw = p.rec.Raw[:0]
	return &p.rec, nil
}

// fill reads the next rows, from the next row group where one is at its end.
func (p *parquetRows) fill() (err error) {
	defer heldParquet(&err, int64(p.rec.Line))
	groups := p.file.RowGroups()
	for p.next >= p.have {
		if p.rows == nil {
			if p.group == len(groups) {
				return io.EOF
			}
			p.rows = groups[p.group].Rows()
			p.group++
		}
		n, err := p.rows.ReadRows(p.buffer)
		p.have, p.next = n, 0
		if err == io.EOF || n == 0 && err == nil {
			p.rows.Close()
			p.rows = nil
		} else if err != nil {
			return &RecordError{Code: "parquet_damaged", Line: p.rec.Line + 1, Why: "the Parquet file is damaged: " + err.Error()}
		}
	}
	return nil
}

// parquetText says how values of a column are written: times as ISO 8601 in UTC, decimals with their point.
func parquetText(node parquet.Node) func([]byte, parquet.Value) []byte {
	var logical format.LogicalTypeValue
	if l := node.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case *format.DateType:
		return func(b []byte, v parquet.Value) []byte {
			return time.Unix(int64(v.Int32())*86400, 0).UTC().AppendFormat(b, "2006-01-02")
		}
	case *format.TimestampType:
		unit := time.Nanosecond
		if l.Unit.Value != nil {
			unit = l.Unit.Value.Duration()
		}
		return func(b []byte, v parquet.Value) []byte {
			return instantOf(unit, v.Int64()).AppendFormat(b, time.RFC3339Nano)
		}
	case *format.DecimalType:
		scale := int(l.Scale)
		if kind := node.Type().Kind(); kind == parquet.Int32 || kind == parquet.Int64 {
			return func(b []byte, v parquet.Value) []byte {
				return strconv.AppendFloat(b, float64(v.Int64())/math.Pow10(scale), 'f', scale, 64)
			}
		}
	}
	switch node.Type().Kind() {
	case parquet.Float:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendFloat(b, float64(v.Float()), 'g', -1, 32) }
	case parquet.Double:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendFloat(b, v.Double(), 'g', -1, 64) }
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(b []byte, v parquet.Value) []byte { return append(b, v.ByteArray()...) }
	}
	return func(b []byte, v parquet.Value) []byte { return append(b, v.String()...) }
}

func instantOf(unit time.Duration, at int64) time.Time {
	switch unit {
	case time.Millisecond:
		return time.UnixMilli(at).UTC()
	case time.Microsecond:
		return time.UnixMicro(at).UTC()
	}
	return time.Unix(0, at).UTC()
}
