package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// The shapes of metrics that Read knows: what a file is (Log.Shape), and within a text log what a row is (Log.Shapes).
const (
	ShapeJSONL       = "jsonl"         // one JSON object a line, long or wide
	ShapeCSV         = "csv"           // a table with a header, wide or long
	ShapeLightning   = "lightning_csv" // metrics.csv of PyTorch Lightning's CSVLogger: sparse rows with epoch and step
	ShapeKeras       = "keras"         // Epoch 3/10, then 10/10 [===] - 1s 3ms/step - loss: 0.31 - val_loss: 0.42
	ShapeHuggingFace = "huggingface"   // {'loss': 0.31, 'learning_rate': 5e-05, 'epoch': 1.0}
	ShapeTqdm        = "tqdm"          // Epoch 3: 100%|████| 10/10 [00:01<00:00, 8.9it/s, loss=0.31]
	ShapeKeyValue    = "key_value"     // epoch=3 val_loss=0.31, Epoch 3 | val loss: 0.31, val/loss 0.31
)

// sniffed is how much of a file decides its shape.
const sniffed = 64 << 10

// Read reads a metrics file of any known shape and says in Log.Shape which it was: JSON lines, a CSV table (also
// PyTorch Lightning's sparse one), or the text log of a training (Keras, Hugging Face Trainer, tqdm with its carriage
// returns, key=value and key: value). The content decides; a name that ends in .jsonl, .csv or .tsv does where the
// content is not clear.
//
// Findings and errors are those of ReadJSONL; a table has csv_row_malformed and csv_header_missing beside them, and a text
// log has neither truncated nor malformed lines, since any text may stand in it.
func Read(path string) (*Log, []finding.Finding, error) {
	head, err := headOf(path)
	if err != nil {
		return nil, nil, err
	}
	switch shape, comma := sniff(path, head); shape {
	case ShapeJSONL:
		return ReadJSONL(path)
	case ShapeCSV:
		return readCSV(path, comma, MaxPoints)
	}
	return readText(path, MaxPoints)
}

func headOf(path string) ([]byte, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head, err := bufio.NewReaderSize(file, sniffed).Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

// sniff decides by the first rows. Most of them being JSON objects makes JSON lines; a header of names over a row of as
// many cells, numbers among them, makes a table; everything else is text.
func sniff(path string, head []byte) (shape string, comma byte) {
	extension := strings.ToLower(filepath.Ext(path))
	var rows [][]byte
	const most = 50
	for raw := range bytes.Lines(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))) {
		if text := bytes.TrimSpace(raw); len(text) > 0 && len(rows) < most {
			rows = append(rows, text)
		}
	}
	objects := 0
	for i, text := range rows {
		_, bad := parseObject(text, nil)
		if bad == nil || bad.cut && i == len(rows)-1 && text[0] == '{' && bytes.HasPrefix(bytes.TrimLeft(text[1:], " "), []byte(`"`)) {
			objects++
		}
	}
	switch {
	case objects > 0 && 2*objects >= len(rows), objects == 0 && len(rows) == 0 && extension != ".log":
		return ShapeJSONL, 0
	case extension == ".csv" || extension == ".tsv":
		return ShapeCSV, commaOf(rows[0])
	case len(rows) > 1 && isTable(rows[0], rows[1]):
		return ShapeCSV, commaOf(rows[0])
	case objects > 0 && extension == ".jsonl":
		return ShapeJSONL, 0
	}
	return "", 0
}

// rowShape is what a row of the log's shape looks like.
func (l *Log) rowShape() string {
	switch l.Shape {
	case ShapeCSV, ShapeLightning:
		return csvRowShape
	case ShapeJSONL, "":
		return metricsRowShape
	}
	return textRowShape
}
