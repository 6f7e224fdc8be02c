// Package prompts has the messages that a user picks by name in their client: what to do, with the very calls to make. It
// knows nothing of MCP.
package prompts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Prompt is one message with blanks.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	// Tools are those without which the prompt makes no sense.
	Tools []string

	text func(given map[string]string) string
}

// Argument is a blank of a prompt.
type Argument struct {
	Name, Description string
	Required          bool
}

// maxArgument bounds what is put into a blank, in bytes.
const maxArgument = 8 << 10

// All lists the prompts in their order.
func All() []Prompt {
	run := Argument{Name: "run_id", Description: "The run, such as r-20261130-7f3a; when left out, the newest that fits."}
	return []Prompt{
		{Name: "train", Title: "Train a model", Description: "Train a model from what is at hand to a validated result, step by step, on this machine.", text: train, Tools: []string{"trainer"},
			Arguments: []Argument{
				{Name: "goal", Description: "What to train and what for, in your words.", Required: true},
				{Name: "data", Description: "The training data: a path in the workspace or a URL."},
				{Name: "code", Description: "The folder or the script that trains, where there is one."},
				{Name: "done_when", Description: "When it is good enough, such as test/accuracy >= 0.9."},
			}},
		{Name: "continue_run", Title: "Go on with a run", Description: "Find out where a run stands after a break, and carry it to its end.", text: continueRun, Tools: []string{"trainer", "run_list", "run_status"}, Arguments: []Argument{run}},
		{Name: "debug_failed_run", Title: "Find out why a run failed", Description: "Find the cause of a failed run in its evidence, propose a repair, and try again once it is approved.", text: debugFailedRun, Tools: []string{"run_list", "run_status", "job_status", "job_logs"}, Arguments: []Argument{run}},
	}
}

// For gives the prompts for a server that serves these tools.
func For(served []string) []Prompt {
	return slices.DeleteFunc(All(), func(p Prompt) bool {
		return slices.ContainsFunc(p.Tools, func(tool string) bool { return !slices.Contains(served, tool) })
	})
}

// Find gives the prompt of that name.
func Find(name string) (Prompt, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return Prompt{}, false
}

// Render fills in the blanks. The error says what is missing or not known, and what to send.
func (p Prompt) Render(given map[string]string) (string, error) {
	var names []string
	for _, a := range p.Arguments {
		names = append(names, a.Name)
		if a.Required && strings.TrimSpace(given[a.Name]) == "" {
			return "", fmt.Errorf("prompt %s lacks its argument %s: %s", p.Name, a.Name, a.Description)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case !slices.Contains(names, name):
			return "", fmt.Errorf("prompt %s has no argument %q; it takes %s", p.Name, name, strings.Join(names, ", "))
		case len(given[name]) > maxArgument:
			return "", fmt.Errorf("argument %s of prompt %s has %d bytes, the most is %d; name a file that holds the rest", name, p.Name, len(given[name]), maxArgument)
		}
	}
	filled := map[string]string{}
	for name, value := range given {
		if value = strings.TrimSpace(value); value != "" {
			filled[name] = value
		}
	}
	return p.text(filled), nil
}

// call writes the call of a tool as an agent makes it.
func call(tool string, arguments map[string]any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(arguments) // texts always encode
	return tool + " " + strings.TrimSpace(b.String())
}

const closing = `End with the status, the numbers of validation_report.md with their level (logged, recomputed, reevaluated), and what stays open. Call nothing a success unless execution_result.status says so.`

func train(given map[string]string) string {
	inputs := map[string]any{"runtime": map[string]any{"execution_intent": "run_local"}}
	if given["data"] != "" {
		inputs["data"] = map[string]any{"train_source": given["data"]}
	}
	if given["code"] != "" {
		inputs["model"] = map[string]any{"code_path": given["code"]}
	}
	handoff := map[string]any{"step_goal": given["goal"], "inputs": inputs}
	if given["done_when"] != "" {
		handoff["completion_criteria"] = []string{given["done_when"]}
	}
	return `Carry out this training with trainwright, from its input to a validated result.

1. Start with this call, and add only what the user said or a file states; what is not known stays out:
   ` + call("trainer", map[string]any{"step_handoff": handoff}) + `
2. Then make the call that each answer names in run.next_call, with what "needs" asks for. Take values from the sources that the answer names, with a verbatim quote; ask the user for what no source states.
3. While a job runs, wait for it: trainer with run_id and wait_seconds 300. Do not start the training by hand.
4. Where the answer is blocked, tell the user exactly what it names, and stop.

` + closing
}

func continueRun(given map[string]string) string {
	which := "1. Find the run: " + call("run_list", map[string]any{}) + ". Take the newest that is not at its end; if several could be meant, ask the user.\n2. See what it waits for: run_status with its run_id.\n"
	id := "<run_id>"
	if given["run_id"] != "" {
		id = given["run_id"]
		which = "1. See where it stands: " + call("run_status", map[string]any{"run_id": id}) + "\n2. Read what is there already before you add to it: its artifacts are resources, run://" + id + "/<artifact>.\n"
	}
	return `Go on with a training run of trainwright where it stopped. Nothing that has passed is done again, and no second run is started.

` + which + `3. Go on: ` + call("trainer", map[string]any{"run_id": id, "wait_seconds": 300}) + `
   Then make the call that each answer names in run.next_call, with what "needs" asks for.
4. Where the answer is blocked, tell the user exactly what it names, and stop.

` + closing
}

func debugFailedRun(given map[string]string) string {
	which := "1. Find the run: " + call("run_list", map[string]any{"status": "failed"}) + ". Take the newest; then run_status with its run_id.\n"
	id := "<run_id>"
	if given["run_id"] != "" {
		id = given["run_id"]
		which = "1. See where it stands: " + call("run_status", map[string]any{"run_id": id}) + "\n"
	}
	return `Find out why a training run of trainwright failed. Evidence first: no repair before the cause is known, and no second try that changes nothing.

` + which + `2. Look at its job: job_status with the job's id gives the cause with the line that shows it; job_logs with job_id shows the errors first; read_metrics ` + `{"run_id": "` + id + `"} shows NaN, divergence and plateaus.
3. Say in two sentences what failed and which line of which file shows it. Say so too where the evidence does not tell.
4. Propose the smallest repair, and ask the user before you change code, data or the strategy. What a job left stays as it is: do not edit logs, outputs or records.
5. When it is approved, make the call that run.next_call names, with the repair; then wait for the job with ` + call("trainer", map[string]any{"run_id": id, "wait_seconds": 300}) + `

` + closing
}
