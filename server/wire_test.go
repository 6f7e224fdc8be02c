package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/tools"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// Each transcript sends its lines one after another over a real pipe and compares what comes back. A line of "want" is
// the answer to the line of "send" at the same place; notifications have none.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(archive.Files[0].Data))
			if *update {
				archive.Files = []txtar.File{archive.Files[0], {Name: "want", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(archive.Files) != 2 {
				t.Fatal("the transcript has no want; run the test with -update and review it")
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", archive.Comment, diff)
			}
		})
	}
}

var echo = tools.Tool{
	Name: "echo", Title: "Echo", Description: "Gives back what it got.", InputSchema: schema(`"x":{"type":"string"}`), OutputSchema: schema(`"x":{"type":"string"}`),
	Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	Call: func(_ context.Context, _ engine.Caller, arguments json.RawMessage) (tools.Result, error) {
		return tools.Result{Structured: arguments, Text: "echoed", Links: []tools.Link{{URI: "run://r-1/x.md", Name: "x.md", MIME: "text/markdown"}}}, nil
	},
}

func play(t *testing.T, send string) string {
	p := connect(t, echo)
	var got strings.Builder
	for line := range strings.Lines(send) {
		var e envelope
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("transcript: %v", err)
		}
		p.send(strings.TrimSpace(line))
		if !e.isRequest() {
			continue
		}
		answer, err := p.out.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		got.Write(pretty(t, answer))
	}
	return got.String()
}

// pretty writes an answer as transcripts have it.
func pretty(t *testing.T, answer []byte) []byte {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, answer, "", " "); err != nil {
		t.Fatalf("%v in %q", err, answer)
	}
	return bytes.ReplaceAll(indented.Bytes(), []byte(quoted(Instructions)), []byte(`"(the instructions)"`))
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestInstructionsFitWhatClientsShow(t *testing.T) {
	if len(Instructions) >= 2048 {
		t.Errorf("instructions have %d bytes, clients cut at 2048", len(Instructions))
	}
	for _, word := range []string{`"trainer"`, "step_handoff", "request", "run.next_call", "run_id", `execution_result.status is "success"`, "job_status", "run://<run_id>/", "Jobs outlive"} {
		if !strings.Contains(Instructions, word) {
			t.Errorf("instructions do not speak of %s", word)
		}
	}
}
