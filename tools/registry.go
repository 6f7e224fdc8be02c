// Package tools is the list of what trainwright offers: one file per tool, with its name, its sentence for the agent,
// its annotations and the internal function it calls. The package knows nothing of MCP, so that the command line calls
// the very same functions in process.
package tools

import (
	"context"
	"encoding/json"

	"github.com/trainwright/trainwright/internal/engine"
)

// Annotations are the promises a tool makes about its effects. They are true for every call of it and tested.
type Annotations struct {
	ReadOnly    bool // changes nothing on disk, at a scheduler or anywhere else
	Destructive bool // may undo or remove what was there
	Idempotent  bool // a second identical call changes nothing more
	OpenWorld   bool // reaches beyond the workspace: a network, a scheduler, a program of the user's
}

// The toolsets by which a list can be narrowed.
const (
	SetTrainer   = "trainer"
	SetRuntime   = "runtime"
	SetWorkspace = "workspace"
	SetSkills    = "skills"
)

// Schema gives a JSON Schema with an object at the root. It is made when it is first asked for, since most calls need
// none; the same bytes come back every time.
type Schema func() json.RawMessage

// Tool is one registered tool. Call takes the arguments as they came; *finding.Refused is the error of arguments that
// can't be used, any other error is a fault of ours or of the machine.
type Tool struct {
	Name         string
	Title        string
	Description  string
	Annotations  Annotations
	InputSchema  Schema
	OutputSchema Schema
	Toolset      string
	Call         func(ctx context.Context, caller engine.Caller, arguments json.RawMessage) (Result, error)
}

// Result is what a tool answers. Structured is all an agent needs and marshals to a JSON object; Text is a short
// rendering for people; Images are pictures for both; Links name the resources that hold the rest.
type Result struct {
	Structured any
	Text       string
	Images     []Image
	Links      []Link
}

// Image is a picture, as the bytes of its file.
type Image struct {
	MIME string
	Data []byte
}

// Link points at a resource.
type Link struct{ URI, Name, MIME string }

// Names are the names of tools, in their order.
func Names(all []Tool) []string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	return names
}

// Find gives the tool of that name.
func Find(all []Tool, name string) (Tool, bool) {
	for _, t := range all {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}
