package trainer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// TakeOver reads an edited training_knowledge.md back: each changed row of its tables is a fact of the agent, which takes the
// place of what other sources say; a row whose quote was not changed with its value has no quote.
func (p knowledge) TakeOver(_ *engine.Run, edit rundir.Edit) (map[string]any, []int, []finding.Finding, error) {
	var facts, resolve []any
	var covered []int
	for _, row := range changedRows(edit, "field") {
		field, value := row.cell("field"), row.cell("value")
		if field == "" || cut(value) || value == row.was("value") {
			continue
		}
		fact := map[string]any{"field": field, "value": cellValue(value), "status": evidence.Assumption, "verify_later": edit.Name + " was edited by hand"}
		if quote := strings.Trim(row.cell("quote or reason"), "`"); quote != "" && quote != strings.Trim(row.was("quote or reason"), "`") && row.cell("source") != "" {
			fact["status"], fact["source"], fact["quote"] = evidence.Confirmed, row.cell("source"), quote
		}
		facts = append(facts, fact)
		resolve = append(resolve, map[string]any{"field": field, "keep": keepNew, "why": edit.Name + " was edited by hand"})
		covered = append(covered, row.line)
	}
	if facts == nil {
		return nil, nil, nil, nil
	}
	return map[string]any{"facts": facts, "resolve": resolve}, covered, nil, nil
}

// TakeOver reads an edited training_plan.md back: changed rows of the strategy and changed success criteria.
func (p strategyPhase) TakeOver(run *engine.Run, edit rundir.Edit) (map[string]any, []int, []finding.Finding, error) {
	chosen := map[string]any{}
	var covered []int
	for _, row := range changedRows(edit, "field") {
		field, value := row.cell("field"), row.cell("value")
		known := slices.ContainsFunc(leaves, func(l leafSpec) bool { return l.path == field })
		if !known || cut(value) || value == "—" || value == row.was("value") {
			continue
		}
		put(chosen, field, cellValue(value))
		covered = append(covered, row.line)
	}
	var found []finding.Finding
	if criteria, at := changedItems(edit, "Success criteria"); at != nil {
		if len(run.Handoff.CompletionCriteria) > 0 {
			amendment, err := json.Marshal(map[string]any{"run_id": run.ID, "step_handoff": map[string]any{"completion_criteria": criteria},
				"resolve": []any{map[string]any{"field": "completion_criteria", "keep": "sent"}}})
			if err != nil {
				return nil, nil, nil, err
			}
			found = append(found, finding.Finding{Code: "criteria_of_handoff", Severity: finding.Warning, What: "the success criteria are the user's completion_criteria; an edit of the plan does not change them",
				Where: &finding.Where{Path: run.File(edit.Name), Line: at[0] + 1}, Expected: strings.Join(run.Handoff.CompletionCriteria, "; "), Remedy: fmt.Sprintf("when the user has changed them: %s %s", run.Skill.Walker, amendment)})
		} else {
			chosen["success"] = criteria
			covered = append(covered, at...)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, found, nil
	}
	return map[string]any{"strategy": chosen}, covered, found, nil
}

// What of the data plan's lists can be read back, by the words before the colon.
var dataPlanItems = map[string]string{"id": "id", "target": "target", "sampling": "sampling", "normalization": "normalization",
	"augmentation": "augmentation", "collate or batching": "collate_or_batching"}

var listItem = regexp.MustCompile(`^- ([a-z ]+): (.+)$`)

// TakeOver reads an edited data_preparation_plan.md back: the id, the target, units and meanings, and how samples are prepared.
func (p dataAndSplit) TakeOver(_ *engine.Run, edit rundir.Edit) (map[string]any, []int, []finding.Finding, error) {
	chosen, columns := map[string]any{}, map[string]any{}
	var covered []int
	for _, row := range changedRows(edit, "column") {
		note := map[string]any{}
		for _, name := range []string{"unit", "meaning"} {
			if value := row.cell(name); value != row.was(name) && !cut(value) {
				note[name] = value
			}
		}
		if column := strings.Trim(row.cell("column"), "`"); column != "" && len(note) > 0 {
			columns[column] = note
			covered = append(covered, row.line)
		}
	}
	lines := strings.Split(edit.Text(), "\n")
	added, _ := edit.Lines()
	for _, at := range added {
		item := listItem.FindStringSubmatch(lines[at])
		if item == nil || dataPlanItems[item[1]] == "" {
			continue
		}
		name, value := dataPlanItems[item[1]], item[2]
		if name == "id" || name == "target" {
			value = firstCode(value)
		}
		if value == "" || cut(value) {
			continue
		}
		chosen[name] = value
		covered = append(covered, at)
	}
	if len(columns) > 0 {
		chosen["columns"] = columns
	}
	if len(chosen) == 0 {
		return nil, nil, nil, nil
	}
	return map[string]any{"data": chosen}, covered, nil, nil
}

// firstCode is what stands between the first two backticks; without any, the first word.
func firstCode(s string) string {
	if parts := strings.SplitN(s, "`", 3); len(parts) == 3 {
		return parts[1]
	}
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return word
}

// cut says that a cell was too long to be written whole: what it says can't be read back.
func cut(cell string) bool { return strings.HasSuffix(cell, "…") }

// cellValue is what a cell says: a number, true or false, a list in JSON, else its words.
func cellValue(cell string) any {
	var v any
	if err := json.Unmarshal([]byte(cell), &v); err == nil && v != nil {
		return v
	}
	return cell
}

// put sets a dotted path in a tree.
func put(tree map[string]any, path string, value any) {
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		next, _ := tree[part].(map[string]any)
		if next == nil {
			next = map[string]any{}
			tree[part] = next
		}
		tree = next
	}
	tree[parts[len(parts)-1]] = value
}

// tableRow is a row of a Markdown table: its line (from 0), its cells by column, and the cells of the row of the same key in the
// rendering.
type tableRow struct {
	line          int
	cells, before map[string]string
}

func (r tableRow) cell(column string) string { return r.cells[column] }
func (r tableRow) was(column string) string  { return r.before[column] }

// changedRows are the rows that the edit added or changed, of tables whose first column is key.
func changedRows(edit rundir.Edit, key string) []tableRow {
	before := map[string]map[string]string{}
	for _, row := range tableRows(string(edit.Rendered), key) {
		before[row.cells[key]] = row.cells
	}
	added, _ := edit.Lines()
	var out []tableRow
	for _, row := range tableRows(edit.Text(), key) {
		if slices.Contains(added, row.line) {
			row.before = before[row.cells[key]]
			out = append(out, row)
		}
	}
	return out
}

var (
	tableRule = regexp.MustCompile(`^\|[-:| ]+\|?$`)
	cellBreak = regexp.MustCompile(`(?:^|[^\\])\|`)
)

// tableRows reads the tables of a Markdown text whose first column is key.
func tableRows(text, key string) []tableRow {
	var out []tableRow
	var header []string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			header = nil
		case tableRule.MatchString(line):
		case i+1 < len(lines) && tableRule.MatchString(strings.TrimSpace(lines[i+1])):
			if header = cellsOf(line); len(header) == 0 || header[0] != key {
				header = nil
			}
		case header != nil:
			row := tableRow{line: i, cells: map[string]string{}}
			for j, cell := range cellsOf(line) {
				if j < len(header) {
					row.cells[header[j]] = cell
				}
			}
			out = append(out, row)
		}
	}
	return out
}

// cellsOf cuts a row at its bars, those that are escaped excepted.
func cellsOf(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var cells []string
	for {
		at := cellBreak.FindStringIndex(line)
		if at == nil {
			break
		}
		cells = append(cells, unescaped(line[:at[1]-1]))
		line = line[at[1]:]
	}
	return append(cells, unescaped(line))
}

func unescaped(cell string) string {
	return strings.TrimSpace(strings.ReplaceAll(cell, `\|`, "|"))
}

// changedItems are the items of the list under a heading, and the lines (from 0) of those that the edit added; nil lines where
// it added none.
func changedItems(edit rundir.Edit, heading string) (items []string, at []int) {
	added, _ := edit.Lines()
	inside := false
	for i, line := range strings.Split(edit.Text(), "\n") {
		if strings.HasPrefix(line, "#") {
			inside = strings.TrimLeft(line, "# ") == heading
		}
		if item, is := strings.CutPrefix(line, "- "); inside && is {
			items = append(items, strings.TrimSpace(item))
			if slices.Contains(added, i) {
				at = append(at, i)
			}
		}
	}
	return items, at
}
