package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"gopkg.in/yaml.v3"
)

// exception is a scenario that does not pass, and why that is right or not ours.
type exception struct{ upstream, reason string }

// noTasks is why the scenarios of the tasks extension fail. The suite runs them for every server and scores none.
var noTasks = exception{"mark3labs/mcp-go#897", "mcp-go ends a task's context with the answer that names the task; training is a durable job with tools of its own, and the tasks extension is not declared"}

// exceptions are the scenarios that may fail, by set of requirements. One that begins to pass has to leave the table.
var exceptions = map[string]map[string]exception{
	"2025-11-25": {},
	"2026-07-28": {
		"tasks-lifecycle":              noTasks,
		"tasks-capability-negotiation": noTasks,
		"tasks-wire-fields":            noTasks,
		"tasks-request-state-removal":  noTasks,
		"tasks-mrtr-input":             noTasks,
		"tasks-request-headers":        noTasks,
		"tasks-dispatch-and-envelope":  noTasks,
		"tasks-required-task-error":    noTasks,
		"tasks-mrtr-composition":       noTasks,
	},
}

// bin is where .ci/install puts the suite, and the Node that it needs.
func bin(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../.cache/npm/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "conformance")); err != nil {
		t.Fatalf("%v: run .ci/install, as make test does", err)
	}
	return dir
}

// check is one finding of the suite.
type check struct{ ID, Status, ErrorMessage string }

// run lets the suite at a fresh server and gives what it found, by scenario.
func run(t *testing.T, arguments ...string) map[string][]check {
	t.Helper()
	log := &bytes.Buffer{}
	web, listener, err := open(t.TempDir(), zerolog.New(zerolog.SyncWriter(log)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	out, dir := t.TempDir(), bin(t)
	command := exec.CommandContext(t.Context(), filepath.Join(dir, "conformance"), append([]string{"server", "--url", "http://" + listener.Addr().String() + "/mcp", "-o", out}, arguments...)...)
	command.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	printed, err := command.CombinedOutput() // the exit code counts what is not scored too
	found := results(t, out)
	if len(found) == 0 {
		t.Fatalf("the suite ran nothing: %v\n%s", err, printed)
	}
	return found
}

var scenarioFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

func results(t *testing.T, out string) map[string][]check {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]check{}
	for _, file := range files {
		name := scenarioFolder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if name == nil {
			t.Fatalf("%s is named in a new way", file)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatal(err)
		}
		found[name[1]] = checks
	}
	return found
}

// judge tells how a scenario ended: whether anything was found good, and what was found wrong.
func judge(checks []check) (good bool, wrong []string) {
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			good = true
		case "FAILURE":
			wrong = append(wrong, c.ID+": "+c.ErrorMessage)
		}
	}
	return good, wrong
}

// required reads the names of the scenarios that a revision requires from the suite itself.
func required(t *testing.T, revision string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(bin(t), "../@modelcontextprotocol/conformance/requirements", revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Server []string }
	if err := yaml.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	return set.Server
}

// Every scenario that a revision requires passes, and every other one that the suite runs for it, but for the
// exceptions.
func TestRequirements(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			found := run(t, "--requirements", revision)
			for _, name := range required(t, revision) {
				if good, _ := judge(found[name]); !good {
					t.Errorf("%s is required and was not passed", name)
				}
			}
			for name := range exceptions[revision] {
				if _, ran := found[name]; !ran {
					t.Errorf("%s is excepted and was not run", name)
				}
			}
			for name, checks := range found {
				_, wrong := judge(checks)
				allowed, excepted := exceptions[revision][name]
				switch {
				case excepted && len(wrong) == 0:
					t.Errorf("%s passes now: take it out of the exceptions (%s)", name, allowed.upstream)
				case !excepted && len(wrong) > 0:
					t.Errorf("%s fails:\n%s", name, strings.Join(wrong, "\n"))
				}
			}
		})
	}
}

// The three scenarios of the skills extension pass without a warning.
func TestSkills(t *testing.T) {
	for _, name := range []string{"sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"} {
		t.Run(name, func(t *testing.T) {
			for _, c := range run(t, "--scenario", name)[name] {
				if c.Status != "SUCCESS" {
					t.Errorf("%s %s: %s", c.Status, c.ID, c.ErrorMessage)
				}
			}
		})
	}
}

// The table of exceptions is looked at by name: one without a reason would be a hole.
func TestExceptionsHaveAReason(t *testing.T) {
	for revision, table := range exceptions {
		for name, e := range table {
			if e.upstream == "" || e.reason == "" {
				t.Errorf("%s %s has no upstream number or no reason", revision, name)
			}
		}
	}
}
