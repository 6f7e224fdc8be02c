package trainer

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Rows that a smoke run takes of each part, unless a micro-batch, a window or the number of classes needs more.
const (
	smokeTrainRows = 64
	smokeOtherRows = 16
	// smokeScan bounds how much of a part is looked at for its classes, in bytes; smokeClasses how many classes are told apart.
	smokeScan    = 64 << 20
	smokeClasses = 1000
)

// smokePart is a file that the script reads and the cut of it that the smoke run reads instead. Part is train, val, test, or
// empty for the one file of a script that splits it itself.
type smokePart struct {
	part, from, to string
	rows           int // at least so many, where there are as many
}

// smokeParts lists what is cut into folder. The files keep their names, since a script may know them; it gives nothing where
// two of them have the same one.
func (c *commander) smokeParts(folder string) []smokePart {
	var parts []smokePart
	add := func(part, from string, rows int) {
		parts = append(parts, smokePart{part: part, from: from, to: filepath.Join(folder, filepath.Base(from)), rows: c.smokeRows(rows)})
	}
	for _, name := range partNames {
		rows := smokeOtherRows
		if name == "train" {
			rows = smokeTrainRows
		}
		if from := c.part(name); from != "" {
			add(name, from, rows)
		}
	}
	if whole := c.whole(); len(parts) == 0 && whole != "" {
		add("", whole, smokeTrainRows+2*smokeOtherRows)
	}
	for i, p := range parts {
		if slices.ContainsFunc(parts[:i], func(o smokePart) bool { return o.to == p.to }) {
			return nil
		}
	}
	return parts
}

// smokeRows raises a number of rows to a micro-batch and to some windows of a forecast, where these are known.
func (c *commander) smokeRows(rows int) int {
	if micro, ok := asFloat(c.plan.Leaves["batch.micro"].Value); ok {
		rows = max(rows, int(micro))
	}
	history, _ := asFloat(c.manifest.DomainMetadata["history_window"])
	horizon, _ := asFloat(c.manifest.DomainMetadata["forecast_horizon"])
	return max(rows, 4*int(history+horizon))
}

// smokeTarget is the column by whose classes the rows are chosen, "" for the first rows as they come.
func (c *commander) smokeTarget(profile *dataset.Profile) string {
	target := c.manifest.Schema.Target
	switch c.run.Handoff.Inputs.Model.TaskType {
	case "classification":
		return target.Name
	case "", "unknown":
	default:
		return ""
	}
	column := profile.Columns[target.Name]
	few := column != nil && target.Type == dataset.TypeInteger && column.Distinct <= 20 && !column.DistinctAtLeast
	if few || target.Type == dataset.TypeString || target.Type == dataset.TypeBoolean {
		return target.Name
	}
	return ""
}

// smokeManifest is the data manifest with the cuts in place of the parts.
func smokeManifest(manifest contract.DataManifest, parts []smokePart) contract.DataManifest {
	files := []contract.DataFile{}
	for _, p := range parts {
		if p.part == "" {
			manifest.TrainSource = p.to
		}
		files = append(files, contract.DataFile{Path: p.to, Part: p.part})
	}
	manifest.Files = files
	return manifest
}

// cut writes the chosen rows of the part, byte for byte as they stand there and in their order, and counts them.
func (p smokePart) cut(format dataset.Format, target string) (int, error) {
	t := smokeTable{path: p.from, format: format, column: -1}
	quota, err := t.quota(target, p.rows)
	if err != nil {
		return 0, err
	}
	out, err := os.Create(p.to)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	to := bufio.NewWriter(out)
	rows, left := 0, p.rows
	err = t.each(func(header bool, r *dataset.Record) bool {
		class := t.class(r)
		switch {
		case header:
		case quota != nil && quota[class] == 0:
			return true
		case quota != nil:
			quota[class]--
			rows++
		default:
			rows++
			left--
		}
		_, _ = to.Write(r.Raw) // Flush tells
		_, _ = to.WriteString(cmp.Or(string(r.End), "\n"))
		return quota != nil || left > 0
	}, to)
	if err != nil {
		return 0, err
	}
	if err := to.Flush(); err != nil {
		return 0, err
	}
	return rows, out.Close()
}

// smokeTable reads a part as the profile says that its data is written.
type smokeTable struct {
	path   string
	format dataset.Format
	column int // of the target; -1 for none
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// each calls visit with the header and the records, until it says no, the file ends, or enough of it was looked at. A byte
// order mark is passed on to mark.
func (t *smokeTable) each(visit func(header bool, r *dataset.Record) bool, mark io.Writer) error {
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer file.Close()
	src := bufio.NewReader(file)
	if head, _ := src.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
		_, _ = src.Discard(len(byteOrderMark))
		if _, err := mark.Write(byteOrderMark); err != nil {
			return err
		}
	}
	options := dataset.ReaderOptions{}
	if t.format.Delimiter != "" {
		options.Delimiter = t.format.Delimiter[0]
	}
	if t.format.Newline == "cr" {
		options.LineEnd = '\r'
	}
	reader := dataset.NewReader(src, options)
	for header := t.format.Header; ; {
		record, err := reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", t.path, err)
		}
		if len(bytes.TrimSpace(record.Raw)) == 0 {
			continue
		}
		if record.Byte > smokeScan || !visit(header, record) {
			return nil
		}
		header = false
	}
}

// quota is how many rows of each class are taken: in proportion, and of each class two where it has two. It is nil where
// the first rows are taken as they come.
func (t *smokeTable) quota(target string, rows int) (map[string]int, error) {
	if target == "" || !t.format.Header {
		return nil, nil
	}
	counts, total := map[string]int{}, 0
	err := t.each(func(header bool, r *dataset.Record) bool {
		if header {
			t.column = slices.IndexFunc(r.Fields, func(f []byte) bool { return strings.TrimSpace(string(f)) == target })
			return t.column >= 0
		}
		counts[t.class(r)]++
		total++
		return len(counts) <= smokeClasses
	}, io.Discard)
	if err != nil || t.column < 0 || len(counts) > smokeClasses {
		t.column = -1
		return nil, err
	}
	return smokeQuota(counts, total, rows), nil
}

// smokeQuota deals rows to classes; what rounding leaves goes to the largest.
func smokeQuota(counts map[string]int, total, rows int) map[string]int {
	quota, dealt := map[string]int{}, 0
	classes := slices.Sorted(maps.Keys(counts))
	for _, class := range classes {
		quota[class] = min(counts[class], max(2, rows*counts[class]/total))
		dealt += quota[class]
	}
	slices.SortStableFunc(classes, func(a, b string) int { return counts[b] - counts[a] })
	for _, class := range classes {
		more := min(max(0, rows-dealt), counts[class]-quota[class])
		quota[class] += more
		dealt += more
	}
	return quota
}

func (t *smokeTable) class(r *dataset.Record) string {
	if t.column < 0 || t.column >= len(r.Fields) {
		return ""
	}
	return string(r.Fields[t.column])
}

// otherFiles says whether a folder that the script is given holds more than the parts.
func otherFiles(folder string, parts []smokePart) bool {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !slices.ContainsFunc(parts, func(p smokePart) bool { return p.from == filepath.Join(folder, e.Name()) })
	})
}

// smokeProfile is how the data is written, nil where it was not read as a table.
func smokeProfile(path string) *dataset.Profile {
	var profile dataset.Profile
	if err := rundir.ReadJSON(path, &profile); err != nil || len(profile.Order) == 0 {
		return nil
	}
	return &profile
}
