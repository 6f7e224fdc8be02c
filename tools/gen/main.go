// Command gen writes the tables of tools, prompts and resources into a README: go run ./gen [-check] README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

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
	text, err := withTables(string(old))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case text == string(old):
		return nil
	case check:
		return fmt.Errorf("%s is stale: run make generate", path)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// withTables puts each table between its marks: <!-- tools:begin --> and <!-- tools:end -->.
func withTables(text string) (string, error) {
	for _, t := range []struct{ name, table string }{{"tools", tools.Table(tools.All(tools.Deps{}))}, {"prompts", prompts.Table()}, {"resources", resources.Table()}} {
		begin, end := "<!-- "+t.name+":begin -->", "<!-- "+t.name+":end -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ends := strings.Cut(rest, end)
		if !ok || !ends {
			return "", fmt.Errorf("the text has no %s followed by %s", begin, end)
		}
		text = before + begin + "\n" + t.table + end + after
	}
	return text, nil
}
