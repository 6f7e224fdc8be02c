// Command gen writes the tables of tools, prompts and resources into a README: go run ./gen [-check] README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/trainwright/trainwright/prompts"
	"github.com/trainwright/trainwright/resources"
	"github.com/trainwright/trainwright/tools"
)

func main() {
	check := flag.Bool("check", false, "fail when a table is stale, and write nothing")
	flag.Parse()
	if err := generate(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(path string, check bool) error {
	if path == "" {
		return errors.New("name the README")
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := tools.WithTable(string(old), tools.All(tools.Deps{}))
	if err == nil {
		text, err = resources.WithTable(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if text, err = prompts.WithTable(text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case text == string(old):
		return nil
	case check:
		return fmt.Errorf("%s is stale: run make generate", path)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
