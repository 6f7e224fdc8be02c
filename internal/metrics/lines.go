package metrics

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/trainwright/trainwright/internal/finding"
)

// MaxLine is the longest row that is read, in bytes. A longer one is reported and stepped over.
const MaxLine = 1 << 20

// maxLineFindings bounds how many lines of one file are reported one by one; the rest is counted.
const maxLineFindings = 20

// line is one physical line without its end. number counts from 1; start and end are byte offsets in the file.
type line struct {
	text       []byte
	number     int
	start, end int64
	terminated bool
	tooLong    bool
}

// lineReader cuts a stream into lines and keeps at most MaxLine bytes of one. The text of a line is valid until the
// next call.
type lineReader struct {
	source *bufio.Reader
	offset int64
	number int
	text   []byte
}

func newLineReader(source io.Reader) *lineReader {
	return &lineReader{source: bufio.NewReaderSize(source, 64<<10)}
}

// next returns the next line, or io.EOF after the last one. A last line without a line end has terminated == false.
func (r *lineReader) next() (line, error) {
	r.text = r.text[:0]
	current := line{start: r.offset}
	for {
		part, err := r.source.ReadSlice('\n')
		r.offset += int64(len(part))
		if room := MaxLine + 2 - len(r.text); len(part) > room {
			current.tooLong = true
			r.text = append(r.text, part[:room]...)
		} else {
			r.text = append(r.text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || r.offset == current.start) {
			return line{}, err
		}
		current.terminated = err == nil
		break
	}
	r.number++
	current.number, current.end = r.number, r.offset
	current.text = r.text
	if current.terminated {
		current.end--
		current.text = bytes.TrimSuffix(current.text, []byte("\n"))
	}
	if trimmed := bytes.TrimSuffix(current.text, []byte("\r")); len(trimmed) < len(current.text) {
		current.text = trimmed
		current.end--
	}
	if len(current.text) > MaxLine {
		current.tooLong = true
	}
	if bom := []byte("\xef\xbb\xbf"); r.number == 1 && bytes.HasPrefix(current.text, bom) {
		current.text = current.text[len(bom):]
		current.start += int64(len(bom))
	}
	return current, nil
}

// openRegular opens a regular file. Anything else is refused before it is opened, since opening a pipe blocks. The
// error is both a *finding.Refused and the cause, so errors.Is(err, fs.ErrNotExist) works.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, finding.Refuse(finding.Finding{
			Code: "not_a_file", Severity: finding.Error, What: path + " is not a regular file",
			Where: &finding.Where{Path: path}, Remedy: "name the file itself",
		})
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(path)
	}
	if err == nil {
		return file, nil
	}
	refusal := finding.Finding{
		Code: "file_unreadable", Severity: finding.Error, What: "the file can't be read",
		Where: &finding.Where{Path: path}, Remedy: "check its permissions",
	}
	if errors.Is(err, fs.ErrNotExist) {
		refusal.Code, refusal.What = "file_missing", "the file does not exist"
		refusal.Remedy = "check the path, and whether the job wrote it"
	}
	return nil, fmt.Errorf("%w: %w", finding.Refuse(refusal), err)
}

// rowFile says how the rows of one kind of file are reported.
type rowFile struct {
	path      string
	malformed string           // code of a line that is no usable row
	severity  finding.Severity // of a lost row
	rowShape  string           // what a row looks like, for "expected"
	form      string           // what the file should be: JSON lines, a CSV table, …
}

// rowsRead is what reading the rows of a file came to.
type rowsRead struct {
	sha256   string
	bytes    int64
	findings []finding.Finding
}

// rowProblem says why an object is not a usable row; at is the byte within the line.
type rowProblem struct {
	at   int
	what string
}

// each reads the file to its end and hands every object to take. Lines that can't be used become findings, and all
// others are still read.
func (f rowFile) each(take func(line, []field) *rowProblem) (rowsRead, error) {
	return f.eachLine(func(current line, lost *lineReport) { f.one(current, take, lost) })
}

// eachLine reads the file to its end and hands every line that is not blank to take.
func (f rowFile) eachLine(take func(line, *lineReport)) (rowsRead, error) {
	file, err := openRegular(f.path)
	if err != nil {
		return rowsRead{}, err
	}
	defer file.Close()
	digest := sha256.New()
	source := io.TeeReader(file, digest)
	reader := newLineReader(source)
	lost, lines := lineReport{file: f}, 0
	for {
		current, err := reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return rowsRead{}, fmt.Errorf("read %s after byte %d: %w", f.path, reader.offset, err)
		}
		if current.number == 1 && bytes.IndexByte(current.text[:min(len(current.text), 512)], 0) >= 0 {
			rest, err := io.Copy(io.Discard, reader.source)
			if err != nil {
				return rowsRead{}, fmt.Errorf("read %s: %w", f.path, err)
			}
			reader.offset += rest
			lost.findings = append(lost.findings, f.notText())
			lines++
			break
		}
		if len(bytes.TrimSpace(current.text)) == 0 {
			continue
		}
		lines++
		take(current, &lost)
	}
	if lines == 0 {
		lost.findings = append(lost.findings, f.empty(reader.offset))
	}
	return rowsRead{
		sha256: "sha256:" + hex.EncodeToString(digest.Sum(nil)), bytes: reader.offset, findings: lost.all(),
	}, nil
}

// one parses a line and hands it on, or reports it.
func (f rowFile) one(current line, take func(line, []field) *rowProblem, lost *lineReport) {
	if current.tooLong {
		lost.add("line_too_long", current, 0, fmt.Sprintf("line %d has more than %d bytes and is left out", current.number, MaxLine))
		return
	}
	row, bad := parseObject(current.text, lost.row[:0])
	lost.row = row
	switch {
	case bad == nil:
		if problem := take(current, row); problem != nil {
			lost.add(f.malformed, current, problem.at, fmt.Sprintf("line %d: %s", current.number, problem.what))
		}
	case bad.cut && !current.terminated:
		lost.findings = append(lost.findings, finding.Finding{
			Code: "line_truncated", Severity: f.severity,
			What:  fmt.Sprintf("the last line (%d) ends in the middle of a row; the rows before it are read", current.number),
			Where: f.where(current.number, current.start), Expected: f.rowShape,
			Remedy: "if the job still runs, read again; else the writer was stopped while it wrote",
		})
	default:
		lost.add(f.malformed, current, bad.at, fmt.Sprintf("line %d is not a JSON row: expected %s", current.number, bad.want))
	}
}

func (f rowFile) where(number int, offset int64) *finding.Where {
	return &finding.Where{Path: f.path, Line: number, Byte: offset}
}

// unterminated is a last row that no line end follows, in a shape that does not show by itself where a row is whole.
func (f rowFile) unterminated(current line) finding.Finding {
	return finding.Finding{
		Code: "line_unterminated", Severity: finding.Note, Where: f.where(current.number, current.start),
		What:   fmt.Sprintf("no line end follows the last row (line %d), so its last number may be cut short", current.number),
		Remedy: "if the job still runs, read again; else do not rest a claim on that number",
	}
}

// wordByte says whether a byte may stand inside a number or word.
func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '.' || c == '-'
}

func (f rowFile) notText() finding.Finding {
	return finding.Finding{
		Code: "not_text", Severity: finding.Error, What: "the file is binary (or UTF-16), not " + f.form,
		Where: &finding.Where{Path: f.path}, Expected: f.rowShape, Remedy: "write UTF-8 text, or name the right file",
	}
}

func (f rowFile) empty(size int64) finding.Finding {
	return finding.Finding{
		Code: "file_empty", Severity: finding.Error, What: fmt.Sprintf("the file has no rows (%d bytes)", size),
		Where: &finding.Where{Path: f.path}, Expected: f.rowShape,
		Remedy: "if the job still runs, read again later; else see its log for why nothing was written",
	}
}

// lineReport collects findings about lines: the first ones singly, the others as one count a code.
type lineReport struct {
	file     rowFile
	findings []finding.Finding
	single   int
	more     map[string]int
	codes    []string
	row      []field // of the last line, used again
}

func (r *lineReport) add(code string, current line, at int, what string) {
	if r.single < maxLineFindings {
		r.single++
		r.findings = append(r.findings, finding.Finding{
			Code: code, Severity: r.file.severity, What: what,
			Where: r.file.where(current.number, current.start+int64(at)), Expected: r.file.rowShape,
			Remedy: "fix the writer; the other lines are read",
		})
		return
	}
	if r.more == nil {
		r.more = map[string]int{}
	}
	if r.more[code] == 0 {
		r.codes = append(r.codes, code)
	}
	r.more[code]++
}

func (r *lineReport) all() []finding.Finding {
	for _, code := range r.codes {
		r.findings = append(r.findings, finding.Finding{
			Code: code, Severity: r.file.severity, What: fmt.Sprintf("%d more lines are like that", r.more[code]),
			Where: &finding.Where{Path: r.file.path}, Expected: r.file.rowShape,
		})
	}
	return r.findings
}
