package project

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	existsCalls   = map[string]bool{"exists": true, "isfile": true, "is_file": true}
	checkpointing = map[string]bool{"load_state_dict": true, "load_checkpoint": true, "load_ckpt": true, "load_weights": true, "load_model": true, "restore": true, "restore_checkpoint": true}
	plainLoads    = map[string]bool{"load": true, "loads": true}
	savedState    = regexp.MustCompile(`(?i)check_?point|ckpt|latest|\.pth?\b|weights`)
	trainingWords = []string{"backward(", "optimizer", ".fit(", "epoch", "partial_fit"}
	missingFile   = regexp.MustCompile(`^except\s*(:|.*\b(FileNotFoundError|OSError|IOError|EnvironmentError|Exception|BaseException)\b)`)
)

// traps finds the two habits of training scripts that make a run something else than its command says: resuming because a
// file happens to exist, and making data up because one does not. It reads shapes of code, so it can miss one; what it
// reports stands there.
func (s *script) traps(arguments []Argument) []Trap {
	var found []Trap
	trains := slices.ContainsFunc(trainingWords, func(word string) bool { return strings.Contains(s.src, word) })
	for i, st := range s.statements {
		place := s.place(st.tokens[0].start, st.tokens[len(st.tokens)-1].end)
		if trains && s.resumesSilently(i, arguments) {
			found = append(found, Trap{TrapSilentResume, fmt.Sprintf("a checkpoint is loaded whenever the file exists, asked for or not: %s", shorten(s.sourceText(st.tokens), 100)), place})
		}
		if s.inventsData(i) {
			found = append(found, Trap{TrapInventedData, fmt.Sprintf("random values take the place of a file that is missing: %s", shorten(s.sourceText(st.tokens), 100)), place})
		}
	}
	return found
}

func (s *script) resumesSilently(i int, arguments []Argument) bool {
	st := s.statements[i]
	switch {
	case s.is(st.tokens, 0, "if") || s.is(st.tokens, 0, "elif"):
		return s.testsExistence(st, true) && s.loadsState(append([]statement{st}, s.block(i)...)) && !s.askedFor(i, arguments)
	case s.is(st.tokens, 0, "try"):
		handler, ok := s.following(i, "except")
		return ok && missingFile.MatchString(s.sourceText(s.statements[handler].tokens)) && !s.raises(s.block(handler)) && s.loadsState(s.block(i)) && !s.askedFor(i, arguments)
	}
	conditional := slices.ContainsFunc(st.tokens, func(t token) bool { return t.kind == tokenName && s.text(t) == "if" })
	return conditional && s.testsExistence(st, true) && s.loadsState([]statement{st}) && !s.askedFor(i, arguments)
}

// testsExistence reports whether a statement asks if a file is there (or, not wanted, if it is not).
func (s *script) testsExistence(st statement, wanted bool) bool {
	for i := range st.tokens {
		if s.isName(st.tokens, i) && existsCalls[s.text(st.tokens[i])] && s.is(st.tokens, i+1, "(") {
			return s.is(st.tokens, s.receiverStart(st.tokens, i)-1, "not") != wanted
		}
	}
	return false
}

// askedFor reports whether the statement at i or one around it depends on an option that asks for a checkpoint and is off
// by default.
func (s *script) askedFor(i int, arguments []Argument) bool {
	indent := s.statements[i].indent + 1
	for ; i >= 0; i-- {
		st := s.statements[i]
		if st.indent >= indent {
			continue
		}
		indent = st.indent
		for at := range st.tokens {
			if s.isName(st.tokens, at) && asks(s.text(st.tokens[at]), arguments) {
				return true
			}
		}
		if indent == 0 {
			break
		}
	}
	return false
}

// asks reports whether a name is that of an option for resuming or loading which is off unless given. A name that no
// argument declares (a configuration's) counts as off.
func asks(name string, arguments []Argument) bool {
	role := RoleOf(name)
	if strings.Contains(strings.ToLower(name), "resum") { // resumed_step, is_resuming
		role = RoleResume
	}
	if role != RoleResume && role != RoleInit && role != RoleFinetune && name != "checkpoint" && name != "ckpt" && name != "checkpoint_path" {
		return false
	}
	for _, a := range arguments {
		if a.Dest == name {
			on := a.HasDefault && a.Default != nil && a.Default != false && a.Default != "" || a.HasDefault && a.Default == nil && a.DefaultText != "None"
			return !on
		}
	}
	return role != ""
}

// loadsState reports whether statements load a saved state: by a call that says so, or by a plain load that speaks of a
// checkpoint.
func (s *script) loadsState(statements []statement) bool {
	plain, about := false, false
	for _, st := range statements {
		about = about || savedState.MatchString(s.sourceText(st.tokens))
		for i := range st.tokens {
			if !s.isName(st.tokens, i) || !s.is(st.tokens, i+1, "(") {
				continue
			}
			if checkpointing[s.text(st.tokens[i])] {
				return true
			}
			plain = plain || plainLoads[s.text(st.tokens[i])]
		}
	}
	return plain && about
}

// inventsData reports whether the statement at i, because a file is missing, goes on with random values.
func (s *script) inventsData(i int) bool {
	st := s.statements[i]
	if !s.is(st.tokens, 0, "if") && !s.is(st.tokens, 0, "elif") {
		return false
	}
	if s.testsExistence(st, false) {
		return s.drawsValues(s.block(i))
	}
	if otherwise, ok := s.following(i, "else"); ok && s.testsExistence(st, true) {
		return s.drawsValues(s.block(otherwise))
	}
	return false
}

// drawsValues looks for random arrays: np.random.normal(…), torch.randn(…), rng.random(…). Setting a seed is none.
func (s *script) drawsValues(statements []statement) bool {
	drawing := map[string]bool{"rand": true, "randn": true, "randint": true, "normal": true, "uniform": true, "standard_normal": true, "random": true, "random_sample": true, "gauss": true}
	for _, st := range statements {
		for i := range st.tokens {
			if s.isName(st.tokens, i) && drawing[s.text(st.tokens[i])] && s.is(st.tokens, i+1, "(") && s.is(st.tokens, i-1, ".") {
				return true
			}
		}
	}
	return false
}

// following returns the clause (else, except) that belongs to the compound statement at i.
func (s *script) following(i int, word string) (int, bool) {
	next := i + 1 + len(s.block(i))
	if next < len(s.statements) && s.statements[next].indent == s.statements[i].indent && s.is(s.statements[next].tokens, 0, word) {
		return next, true
	}
	return 0, false
}

func (s *script) raises(block []statement) bool {
	for _, st := range block {
		if text := s.sourceText(st.tokens); strings.HasPrefix(text, "raise") || strings.Contains(text, "exit(") {
			return true
		}
	}
	return false
}
