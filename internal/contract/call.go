package contract

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Waiting, in seconds (root argument wait_seconds).
const (
	DefaultWaitSeconds = 20
	MaxWaitSeconds     = 600
)

// Call is what stands at the root of a call of a skill tool. Handoff is nil where none was sent; a plain request without
// a run is normalised into one. A request beside a run_id without a handoff stays in Request alone, for the run to take
// as one more source. WaitSeconds is nil where it was not given, else 0 to MaxWaitSeconds. Section holds the tool's own
// arguments for Decode, numbers as json.Number.
type Call struct {
	Handoff     *StepHandoff
	RunID       string
	Request     string
	WaitSeconds *int
	Section     map[string]any
}

// callRoot is what every skill tool takes beside its own section.
type callRoot struct {
	RunID       string `json:"run_id"`
	Request     string `json:"request"`
	WaitSeconds *int   `json:"wait_seconds"`
}

const handoffName = "step_handoff"

// DecodeCall reads the root of a call of a skill tool; section names the tool's own root arguments. A field of the
// handoff or of its inputs that stands at the root is lifted into step_handoff, unless it is a name of the section.
// Another unknown name is refused, or kept in the handoff with a warning where a handoff stands at the root.
func DecodeCall(raw []byte, section []string) (Call, []finding.Finding, error) {
	out := &findings{}
	tree, err := parse(raw, out)
	if err != nil {
		if !out.take(err, "") {
			return Call{}, nil, err
		}
		found, err := out.result()
		return Call{}, found, err
	}
	r := callReader{section: section, out: out, own: map[string]any{}, lifted: map[string]any{}, inputs: map[string]any{}, strange: map[string]any{}}
	r.byFold = map[string]string{}
	for _, name := range slices.Concat(inputFields(), handoffFields(), r.ownNames()) {
		r.byFold[foldName(name)] = name
	}
	call := r.read(tree)
	found, err := out.result()
	return call, found, err
}

// callReader sorts the names at the root of a call.
type callReader struct {
	section []string
	byFold  map[string]string // folded name → name of everything a root may hold, the tool's own names first
	out     *findings
	own     map[string]any // step_handoff, run_id, request, wait_seconds and the section
	lifted  map[string]any // fields of the handoff
	inputs  map[string]any // fields of its inputs
	strange map[string]any // names nobody knows
}

func (r *callReader) read(tree any) Call {
	d := decoder{out: r.out}
	root, ok := r.objectAt(&d, "", tree, fieldsOf(reflect.TypeFor[callRoot]()))
	if !ok {
		return Call{}
	}
	for _, key := range slices.Sorted(maps.Keys(root)) {
		if root[key] != nil {
			r.sort(key, root[key], root)
		}
	}
	r.settleStrange()
	call := Call{Section: map[string]any{}}
	var known callRoot
	d.value("", r.known(), reflect.ValueOf(&known).Elem(), field{})
	call.RunID, call.Request = strings.TrimSpace(known.RunID), strings.TrimSpace(known.Request)
	for _, name := range r.section {
		if value, sent := r.own[name]; sent {
			call.Section[name] = withoutSpelling(value)
		}
	}
	call.WaitSeconds = r.wait(known.WaitSeconds)
	call.Handoff = r.handoff(&d)
	r.placeRequest(&call)
	return call
}

// sort puts one root name where it belongs.
func (r *callReader) sort(key string, value any, root map[string]any) {
	own := r.ownNames()
	name := key
	if !slices.Contains(own, key) && len(key) <= maxShort {
		if known, ok := r.byFold[foldName(key)]; ok {
			if _, exact := root[known]; !exact {
				name = known
			}
		}
	}
	if name != key {
		r.out.add(finding.Finding{
			Code: "field_name_folded", Severity: finding.Note, Where: &finding.Where{Field: key},
			What: fmt.Sprintf("%s was read as %s", short(key), name), Remedy: "send it as " + name,
		})
	}
	switch {
	case slices.Contains(own, name):
		r.own[name] = value
	case slices.Contains(handoffFields(), name):
		r.lifted[name] = value
	case slices.Contains(inputFields(), name):
		r.inputs[name] = value
	default:
		r.strange[key] = value
	}
}

// ownNames are the arguments of the tool itself, its section first.
func (r *callReader) ownNames() []string {
	return slices.Concat(r.section, []string{handoffName, "run_id", "request", "wait_seconds"})
}

func handoffFields() []string { return fieldsOf(reflect.TypeFor[StepHandoff]()).names }
func inputFields() []string   { return fieldsOf(reflect.TypeFor[Inputs]()).names }

// known returns the root arguments that callRoot holds.
func (r *callReader) known() map[string]any {
	known := map[string]any{}
	for _, name := range fieldsOf(reflect.TypeFor[callRoot]()).names {
		if value, sent := r.own[name]; sent {
			known[name] = value
		}
	}
	return known
}

// settleStrange refuses unknown root names, or keeps them where a handoff stands at the root.
func (r *callReader) settleStrange() {
	valid := r.ownNames()
	for _, key := range slices.Sorted(maps.Keys(r.strange)) {
		ranked := valid
		if len(r.strange) <= maxSuggested {
			ranked = nearest(foldName(cut(key)), valid)
		}
		f := finding.Finding{
			Code: "unknown_argument", Severity: finding.Error, Where: &finding.Where{Field: cut(key)},
			What:     fmt.Sprintf("%s is no argument of this tool", short(key)),
			Expected: "one of " + strings.Join(ranked, ", ") + "; or the fields of a step_handoff",
			Remedy:   "send it under one of these names, or leave it out",
		}
		if len(r.lifted) > 0 {
			f.Severity = finding.Warning
			f.What = fmt.Sprintf("%s is no field of step_handoff; it was kept and not used", short(key))
			f.Remedy = "send the handoff under step_handoff, so that the tool's own arguments stand apart"
			r.lifted[key] = r.strange[key]
		}
		r.out.add(f)
	}
}

// wait returns the seconds to wait, from the root or from launch, within their bounds.
func (r *callReader) wait(root *int) *int {
	seconds := root
	if seconds == nil && slices.Contains(r.section, "launch") {
		var launch struct {
			WaitSeconds *int `json:"wait_seconds"`
		}
		object, _ := r.own["launch"].(map[string]any)
		if text, ok := r.own["launch"].(string); ok {
			object, _ = objectIn(text)
		}
		(&decoder{out: r.out}).value("launch", map[string]any{"wait_seconds": object["wait_seconds"]}, reflect.ValueOf(&launch).Elem(), field{})
		seconds = launch.WaitSeconds
	}
	if seconds == nil {
		return nil
	}
	bounded := min(max(*seconds, 0), MaxWaitSeconds)
	if bounded != *seconds {
		r.out.add(finding.Finding{
			Code: "out_of_range", Severity: finding.Warning, Where: &finding.Where{Field: "wait_seconds"},
			What:     fmt.Sprintf("wait_seconds is %d; %d is used", *seconds, bounded),
			Expected: fmt.Sprintf("0 to %d", MaxWaitSeconds),
			Remedy:   "call again to wait longer; the work goes on meanwhile",
		})
	}
	return &bounded
}

// handoff puts the handoff together from step_handoff and what was lifted; nil where neither says anything.
func (r *callReader) handoff(d *decoder) *StepHandoff {
	handoffTable, inputsTable := fieldsOf(reflect.TypeFor[StepHandoff]()), fieldsOf(reflect.TypeFor[Inputs]())
	sent, ok := r.objectAt(d, handoffName, unwrap(map[string]any{handoffName: r.own[handoffName]}, handoffName), handoffTable)
	if !ok {
		return nil
	}
	if len(r.inputs) > 0 {
		inputs, ok := r.objectAt(d, "inputs", r.lifted["inputs"], inputsTable)
		if !ok {
			return nil
		}
		r.lifted["inputs"] = r.overlay("inputs", inputs, r.inputs)
	}
	var handoff StepHandoff
	d.value("", r.overlay("", sent, r.lifted), reflect.ValueOf(&handoff).Elem(), field{})
	r.misplaced(handoff)
	if data, err := encode(handoff, false); err == nil && string(data) == "{}" {
		return nil
	}
	return &handoff
}

// objectAt is objectOf for something that need not be there.
func (r *callReader) objectAt(d *decoder, path string, tree any, table *fieldTable) (map[string]any, bool) {
	if tree == nil {
		return nil, true
	}
	return d.objectOf(path, tree, table)
}

// overlay fills an object with what was lifted from the root; what the object says itself stands.
func (r *callReader) overlay(path string, object, lifted map[string]any) map[string]any {
	merged := make(map[string]any, len(object)+len(lifted))
	maps.Copy(merged, object)
	for _, key := range slices.Sorted(maps.Keys(lifted)) {
		at := join(path, key)
		inner, innerIsObject := merged[key].(map[string]any)
		outer, outerIsObject := lifted[key].(map[string]any)
		switch {
		case merged[key] == nil:
			merged[key] = lifted[key]
		case innerIsObject && outerIsObject:
			merged[key] = r.overlay(at, inner, outer)
		case lifted[key] != nil && !same(merged[key], lifted[key]):
			r.out.add(finding.Finding{
				Code: "conflicting_argument", Severity: finding.Warning, Where: &finding.Where{Field: at},
				What:   fmt.Sprintf("%s was sent twice: %s inside, %s outside; the inner one counts", at, short(merged[key]), short(lifted[key])),
				Remedy: "send it once, inside step_handoff",
			})
		}
	}
	return merged
}

// misplaced tells of fields of the inputs that stand beside them: they are kept, but no phase reads them there.
func (r *callReader) misplaced(handoff StepHandoff) {
	for _, name := range inputFields() {
		if _, there := handoff.Unknown[name]; there {
			r.out.add(finding.Finding{
				Code: "misplaced_field", Severity: finding.Warning, Where: &finding.Where{Field: name},
				What:   fmt.Sprintf("%s stands beside inputs; it was kept and not used", name),
				Remedy: "send it as inputs." + name,
			})
		}
	}
}

// placeRequest brings the plain words into the handoff, and says so where a call holds nothing at all.
func (r *callReader) placeRequest(call *Call) {
	switch {
	case call.Handoff != nil && call.Request != "":
		addRequest(call.Handoff, call.Request)
	case call.Request != "" && call.RunID == "":
		handoff := FromRequest(call.Request)
		call.Handoff = &handoff
	case call.Handoff == nil && call.RunID == "" && len(r.out.errors) == 0:
		r.out.add(finding.Finding{
			Code: "nothing_to_do", Severity: finding.Error,
			What:     "neither a step_handoff nor a run_id nor a request was sent",
			Expected: "step_handoff or request on the first call, run_id afterwards",
			Remedy:   `send e.g. {"request": "train … on … until …"} or {"run_id": "r-…"}`,
		})
	}
}
