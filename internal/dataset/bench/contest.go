package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainwright/trainwright/internal/dataset"
)

// contestant is a program that profiles one table and prints an answer; its arguments end with the path.
type contestant struct {
	name    string
	command []string
}

// answer is what a contestant prints: its own time from opening the file to the finished profile, so that starting Node
// counts for nobody, and what it counted. Compared and Repeated are ours only: SUMMARIZE looks for no repeated rows.
type answer struct {
	Seconds  float64 `json:"seconds"`
	Rows     int64   `json:"rows"`
	Columns  int     `json:"columns"`
	Compared int64   `json:"compared,omitempty"`
	Repeated int64   `json:"repeated,omitempty"`

	peak float64 // MB of resident memory at most, as the system counted; 0 where it does not tell
}

// profile is the child process of ours.
func profile(ctx context.Context, path string) error {
	began := time.Now()
	p, _, err := dataset.ProfileTable(ctx, path, dataset.ProfileOptions{})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer{Seconds: time.Since(began).Seconds(), Rows: p.Coverage.RowsRead,
		Columns: len(p.Order), Compared: p.Duplicates.RowsChecked, Repeated: p.Duplicates.Rows})
}

//go:embed duckdb.mjs
var duckDBScript []byte

// duckDB puts the script beside the packages of .ci/install and finds its Node.
func duckDB(dir string) (contestant, error) {
	modules, err := filepath.Abs(".cache/npm/node_modules")
	if err != nil {
		return contestant{}, err
	}
	if _, err := os.Stat(filepath.Join(modules, "@duckdb", "node-api")); err != nil {
		return contestant{}, fmt.Errorf("%w: run .ci/install, then this from the root of the repository", err)
	}
	node, err := filepath.EvalSymlinks(filepath.Join(modules, ".bin", "node"))
	if err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			return contestant{}, fmt.Errorf("%w: run .ci/install", err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		return contestant{}, err
	}
	script := filepath.Join(dir, "duckdb.mjs")
	return contestant{name: "DuckDB", command: []string{node, script}}, os.WriteFile(script, duckDBScript, 0o644)
}

// measure runs a contestant once.
func (c contestant) measure(ctx context.Context, arguments ...string) (a answer, err error) {
	command := exec.CommandContext(ctx, c.command[0], append(slices.Clone(c.command[1:]), arguments...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return a, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fmt.Errorf("%s printed %.200q: %w", c.name, out, err)
	}
	a.peak = peak(command.ProcessState)
	return a, nil
}

// comparison is one table, and the answers of both in the order of the rounds.
type comparison struct {
	form         string
	written      written
	ours, theirs []answer
}

// compare lets both at the table in turn, so that what else the machine does hits both.
func compare(ctx context.Context, path, form string, w written, ours, theirs contestant) (comparison, error) {
	c := comparison{form: form, written: w}
	for range rounds {
		a, err := ours.measure(ctx, path)
		if err != nil {
			return c, err
		}
		b, err := theirs.measure(ctx, form, path)
		if err != nil {
			return c, err
		}
		c.ours, c.theirs = append(c.ours, a), append(c.theirs, b)
	}
	return c, c.check()
}

// check holds the answers against what was written: a fast answer that is wrong is no answer.
func (c comparison) check() error {
	for _, a := range slices.Concat(c.ours, c.theirs) {
		if a.Rows != c.written.rows {
			return fmt.Errorf("%s: %d rows were counted, %d written", c.form, a.Rows, c.written.rows)
		}
	}
	for _, a := range c.ours {
		if a.Compared == a.Rows && a.Repeated != c.written.repeated {
			return fmt.Errorf("%s: %d repeated rows were found, %d written", c.form, a.Repeated, c.written.repeated)
		}
	}
	return nil
}
