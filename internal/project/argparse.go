package project

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// arguments reads every X.add_argument(…) of the file, on any receiver, and what set_defaults changes of them. A
// declaration whose names are no literals can't be told and is a finding.
func (s *script) arguments() ([]Argument, []finding.Finding) {
	reader := argumentReader{script: s, subcommands: map[string]string{}, aliases: map[string]string{}}
	reader.arguments = []Argument{}
	for _, st := range s.statements {
		reader.statement(st)
	}
	assignRoles(reader.arguments)
	return reader.arguments, reader.findings
}

// argumentReader walks the statements in their order. subcommands names the subparser behind a receiver; aliases hold
// `add = parser.add_argument`.
type argumentReader struct {
	*script
	subcommands map[string]string
	aliases     map[string]string
	arguments   []Argument
	findings    []finding.Finding
}

func (r *argumentReader) statement(st statement) {
	r.alias(st)
	if r.is(st.tokens, 0, "def") || r.is(st.tokens, 1, "def") {
		for _, parameter := range r.bindings(st.tokens) { // another parser under a known name
			delete(r.subcommands, parameter)
		}
	}
	wanted := func(name string) bool {
		switch name {
		case "add_argument", "add_argument_group", "add_mutually_exclusive_group", "add_parser", "set_defaults", "ArgumentParser":
			return true
		}
		_, alias := r.aliases[name]
		return alias
	}
	for _, c := range r.calls(st, wanted) {
		switch c.name {
		case "ArgumentParser":
			delete(r.subcommands, c.target)
		case "add_argument_group", "add_mutually_exclusive_group":
			if c.target != "" {
				r.subcommands[c.target] = r.subcommand(c.receiver)
			}
		case "add_parser":
			if name, ok := r.firstText(c); ok && c.target != "" {
				r.subcommands[c.target] = name
			}
		case "set_defaults":
			r.setDefaults(c)
		case "add_argument":
			if c.receiver != "" {
				r.add(c, c.receiver)
			}
		default:
			if c.receiver == "" {
				r.add(c, r.aliases[c.name])
			}
		}
	}
}

// subcommand looks a receiver up; p.add_argument_group("x") belongs where p does.
func (r *argumentReader) subcommand(receiver string) string {
	name, _, _ := strings.Cut(receiver, ".add_")
	return r.subcommands[name]
}

// alias notes `add = parser.add_argument`.
func (r *argumentReader) alias(st statement) {
	n := len(st.tokens)
	if n >= 5 && r.is(st.tokens, n-1, "add_argument") && r.is(st.tokens, n-2, ".") && r.is(st.tokens, 1, "=") && r.isName(st.tokens, 0) {
		r.aliases[r.text(st.tokens[0])] = r.src[st.tokens[2].start:st.tokens[n-3].end]
	}
}

func (r *argumentReader) firstText(c call) (string, bool) {
	if len(c.positional) == 0 {
		return r.literalText(c.keywords["name"])
	}
	value, ok := evaluate(r.src, c.positional[0])
	text, isText := value.(string)
	return text, ok && isText
}

func (r *argumentReader) add(c call, receiver string) {
	place := r.place(c.start, c.end)
	argument := Argument{Place: place, Quote: r.quote(place), Subcommand: r.subcommand(receiver), Flags: []string{}}
	for _, tokens := range c.positional {
		value, ok := evaluate(r.src, tokens)
		name, isText := value.(string)
		if !ok || !isText || name == "" {
			r.unreadable(place)
			return
		}
		argument.Flags = append(argument.Flags, name)
	}
	if len(argument.Flags) == 0 {
		if tokens, ok := c.keywords["dest"]; !ok || c.spread {
			r.unreadable(place)
			return
		} else if name, ok := r.literalText(tokens); ok { // argparse takes dest= as the name of a positional
			argument.Flags = []string{name}
		} else {
			r.unreadable(place)
			return
		}
	}
	argument.named()
	r.keywords(&argument, c)
	r.arguments = append(r.arguments, argument)
}

func (r *argumentReader) unreadable(place Place) {
	r.findings = append(r.findings, finding.Finding{Code: "argument_unreadable", Severity: finding.Note,
		What:     "the names of this argument are computed, so it can't be read without running the script: " + shorten(strings.Join(strings.Fields(r.quote(place)), " "), 120),
		Where:    &finding.Where{Path: place.Path, Line: place.Line, Byte: int64(place.Start)},
		Expected: "names written as literals", Remedy: "state the value for this argument yourself if the run needs it"})
}

// named derives name and dest from the flags, as argparse does.
func (a *Argument) named() {
	a.Positional = !strings.HasPrefix(a.Flags[0], "-")
	a.Name = a.Flags[0]
	for _, flag := range a.Flags {
		if strings.HasPrefix(flag, "--") {
			a.Name = flag
			break
		}
	}
	a.Dest = a.Name
	if !a.Positional {
		a.Dest = strings.ReplaceAll(strings.TrimLeft(a.Name, "-"), "-", "_")
	}
}

// keywords takes the keyword arguments of the call over.
func (r *argumentReader) keywords(a *Argument, c call) {
	if dest, ok := r.literalText(c.keywords["dest"]); ok {
		a.Dest = dest
	}
	a.Type = r.sourceText(c.keywords["type"])
	a.Nargs = r.plainText(c.keywords["nargs"])
	a.Help = r.plainText(c.keywords["help"])
	a.Action = r.plainText(c.keywords["action"])
	if required, ok := evaluate(r.src, c.keywords["required"]); ok {
		a.Required, _ = required.(bool)
	}
	if tokens := c.keywords["choices"]; tokens != nil {
		choices, _ := r.value(tokens)
		a.Choices, _ = choices.([]any)
	}
	r.action(a)
	if tokens := c.keywords["default"]; tokens != nil {
		r.setDefault(a, tokens)
	}
	if a.Positional {
		a.Required = a.Nargs != "?" && a.Nargs != "*"
	}
}

// action derives what an action says by itself: that no value follows, and the default it implies.
func (r *argumentReader) action(a *Argument) {
	switch name := a.Action[strings.LastIndex(a.Action, ".")+1:]; name {
	case "store_true", "store_false":
		a.IsFlag, a.HasDefault, a.Default = true, true, name == "store_false"
	case "store_const", "append_const", "count", "help", "version", "BooleanOptionalAction":
		a.IsFlag = true
		if name != "BooleanOptionalAction" {
			break
		}
		for _, flag := range slices.Clone(a.Flags) {
			if rest, long := strings.CutPrefix(flag, "--"); long {
				a.Flags = append(a.Flags, "--no-"+rest)
			}
		}
	}
}

// setDefault evaluates a default, through a constant where it names one.
func (r *argumentReader) setDefault(a *Argument, tokens []token) {
	a.HasDefault, a.DefaultText = true, r.sourceText(tokens)
	a.Default, a.DefaultPlace, a.DefaultQuote = nil, nil, ""
	value, constant := r.value(tokens)
	if constant != nil {
		a.DefaultPlace, a.DefaultQuote = constant, r.quote(*constant)
	}
	a.Default = converted(value, a.Type)
}

// value evaluates tokens as a literal or as the name of a constant, whose place is then returned too.
func (r *argumentReader) value(tokens []token) (any, *Place) {
	if len(tokens) == 1 && tokens[0].kind == tokenName {
		if c, ok := r.constants[r.text(tokens[0])]; ok {
			place := c.place
			return c.value, &place
		}
	}
	value, _ := evaluate(r.src, tokens)
	return value, nil
}

// setDefaults applies parser.set_defaults(lr=…) to the arguments declared before it on the same command.
func (r *argumentReader) setDefaults(c call) {
	place := r.place(c.start, c.end)
	for i := range r.arguments {
		a := &r.arguments[i]
		tokens, ok := c.keywords[a.Dest]
		if ok && a.Subcommand == r.subcommand(c.receiver) {
			r.setDefault(a, tokens)
			a.DefaultPlace, a.DefaultQuote = &place, r.quote(place)
		}
	}
}

func (r *argumentReader) literalText(tokens []token) (string, bool) {
	value, ok := evaluate(r.src, tokens)
	text, isText := value.(string)
	return text, ok && isText
}

// plainText renders a keyword's value: a string without its quotes, everything else as its source.
func (r *argumentReader) plainText(tokens []token) string {
	if text, ok := r.literalText(tokens); ok {
		return text
	}
	return r.sourceText(tokens)
}

// converted does what argparse does to a text default: it passes it through type=.
func converted(value any, kind string) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	switch kind {
	case "int":
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			return n
		}
	case "float":
		if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			return finite(f)
		}
	}
	return value
}

// finite keeps infinities and NaN as text, since JSON has no number for them.
func finite(f float64) any {
	if f-f != 0 {
		return fmt.Sprint(f)
	}
	return f
}

// shorten cuts text at max bytes, at a character's end.
func shorten(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "") + "…"
}
