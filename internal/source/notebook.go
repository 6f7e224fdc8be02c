package source

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Notebook is the text of a Jupyter notebook (nbformat 3 and 4, https://nbformat.readthedocs.io/): before each cell a line
// [cell n, code] or [cell n, markdown], n from 1. What a cell printed follows as [cell n, output], since it is what some run said and
// no statement of the author's; pictures are left out.
func Notebook(data []byte) (string, []string, error) {
	var book struct {
		Cells      []cell
		Worksheets []struct{ Cells []cell }
	}
	if err := json.Unmarshal(data, &book); err != nil {
		return "", nil, fmt.Errorf("the notebook is no JSON that can be read: %w", err)
	}
	cells := book.Cells
	for _, sheet := range book.Worksheets {
		cells = append(cells, sheet.Cells...)
	}
	if len(cells) == 0 {
		return "", nil, fmt.Errorf("the notebook has no cells")
	}
	var text strings.Builder
	code, pictures := 0, 0
	for i, c := range cells {
		kind := c.Kind
		if kind == "code" {
			code++
		}
		fmt.Fprintf(&text, "[cell %d, %s]\n%s\n\n", i+1, kind, strings.TrimRight(lines(c.Source)+lines(c.Input), "\n"))
		for _, o := range c.Outputs {
			said := lines(o.Text) + lines(o.Data["text/plain"])
			if o.Name != "" && o.Value != "" {
				said += o.Name + ": " + o.Value
			}
			if o.Data["image/png"] != nil || o.Data["image/svg+xml"] != nil {
				pictures++
			}
			if strings.TrimSpace(said) != "" {
				fmt.Fprintf(&text, "[cell %d, output]\n%s\n\n", i+1, strings.TrimRight(said, "\n"))
			}
		}
	}
	notes := []string{fmt.Sprintf("%d cells, %d of code", len(cells), code)}
	if pictures > 0 {
		notes = append(notes, fmt.Sprintf("%d pictures left out", pictures))
	}
	return text.String(), notes, nil
}

type cell struct {
	Kind    string `json:"cell_type"`
	Source  any    `json:"source"`
	Input   any    `json:"input"` // nbformat 3
	Outputs []struct {
		Text  any            `json:"text"`
		Data  map[string]any `json:"data"`
		Name  string         `json:"ename"`
		Value string         `json:"evalue"`
	} `json:"outputs"`
}

// lines joins what nbformat writes as one string or as a list of lines.
func lines(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, line := range v {
			if s, ok := line.(string); ok {
				b.WriteString(s)
			}
		}
		return b.String()
	}
	return ""
}
