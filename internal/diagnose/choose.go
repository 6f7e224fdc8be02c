package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// notesMost bounds the notes beside a cause.
const notesMost = 4

// Why says why the job failed. It reads each log once, and never fails: what can't be read is a note.
func Why(job Job) Cause {
	var claims []claim
	var unread []finding.Finding
	last := claim{}
	for i, path := range job.Logs {
		s, shut, err := scanFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			unread = append(unread, finding.Finding{Code: "log_unreadable", Severity: finding.Note, What: fmt.Sprintf("a log was not read: %v", err),
				Where: &finding.Where{Path: path}, Remedy: "check that it is a regular file that this user may read"})
			continue
		}
		claims = append(claims, s.claims(job, i)...)
		if r, ok := s.lastRow(); ok && last.line.Path == "" {
			last.line, last.log = s.line(r), i
			last.what = last.line.Text
		}
		_ = shut() // it was only read
	}
	return choose(job, claims, job.ending(last), unread)
}

// choose puts the root cause first and the other claims beside it.
func choose(job Job, claims []claim, ending claim, unread []finding.Finding) Cause {
	crash := job.crash()
	claims = slices.DeleteFunc(claims, func(c claim) bool { return implausible(c, job) || c.abort && crash == "" })
	slices.SortStableFunc(claims, order)
	all := claims
	at := slices.IndexFunc(claims, func(c claim) bool {
		return c.class.code == ending.class.code && (crash == "" || c.signal == "" || c.signal == crash)
	})
	switch {
	case len(claims) == 0 || ending.class.weight > claims[0].class.weight:
		if at >= 0 { // the line that says the same is the better evidence
			ending.line, ending.frame, ending.what = claims[at].line, claims[at].frame, claims[at].what
		}
		all = append([]claim{ending}, claims...)
	case at < 0 && (ending.class.code != commandFailed.code || claims[0].class.weight < weightException):
		all = append(slices.Clone(claims), ending)
		slices.SortStableFunc(all, order)
	}
	cause := all[0].naming(crash).cause(job)
	if all[0].line.Path == "" {
		cause.Evidence = nil
		cause.Where = nil
	}
	for i, c := range all[1:] {
		// A line says one thing, unless it was only the last before a crash; and what ranks say alike is said once.
		quoted := c.line.Path != "" && !(c.silent && crash != "")
		said := slices.ContainsFunc(all[:i+1], func(o claim) bool {
			return !o.silent && quoted && c.line.Path == o.line.Path && c.line.Byte == o.line.Byte ||
				c.class.code == o.class.code && (crash != "" && c.class.code == killed.code || c.what == o.what || c.frame != nil && o.frame != nil && *c.frame == *o.frame)
		})
		if !said && len(cause.Notes) < notesMost {
			cause.Notes = append(cause.Notes, c.note(job))
		}
	}
	cause.Notes = append(cause.Notes, unread...)
	return cause
}

// implausible reports claims that the exit code speaks against: after 126 a denied access was that to the command itself,
// and after a code of its own the script went on without what could not be executed.
func implausible(c claim, job Job) bool {
	if c.class.weight >= weightLine+7 || job.Code == nil {
		return false
	}
	switch c.class.code {
	case notExecutable.code:
		return *job.Code != 126 && *job.Code != 127 && *job.Code != 1
	case permission.code:
		return *job.Code == 126
	}
	return false
}

// claims is what the log says, in no order.
func (s *scanned) claims(job Job, log int) []claim {
	tracebacks := s.tracebacks(job)
	crash := job.crash()
	out := root(tracebacks)
	if crash != "" && s.survivedCrash(tracebacks) {
		for i := range out {
			out[i] = out[i].demoted()
		}
	}
	covered := func(offset int64) bool {
		return slices.ContainsFunc(tracebacks, func(t told) bool { return t.start <= offset && offset < t.end })
	}
	for id, places := range s.places {
		var at func(int64) *claim
		switch signs[id].kind {
		case kindStatement:
			at = s.statementAt
		case kindFatal:
			at = s.fatalAt
		case kindElastic:
			at = s.elasticAt
		default:
			continue
		}
		for _, offset := range places {
			if s.size-offset > windowBytes || covered(offset) {
				continue
			}
			if c := at(offset); c != nil && !s.wentOn(c.end, s.size, c.rank) {
				if crash != "" {
					*c = s.beforeCrash(*c, crash)
				}
				out = append(out, *c)
			}
		}
	}
	if s.nonFinite >= 0 && !covered(s.nonFinite) {
		rows := s.rows(s.nonFinite, s.nonFinite+lookBack)
		if len(rows) > 0 {
			out = append(out, claim{class: lossNotFinite.weighing(weightHint), what: "the loss is no finite number: " + strings.TrimSpace(rows[0].text), line: s.line(rows[0]), end: rows[0].end})
		}
	}
	for i := range out {
		out[i].log = log
	}
	return out
}

// told is a traceback with its claim.
type told struct {
	claim
	start int64
}

// tracebacks are those of the log's last failure, in the order of the log: each ended its process, as far as what follows it
// tells. One that the program survived is left out.
func (s *scanned) tracebacks(job Job) []told {
	var all []told
	for id, places := range s.places {
		for _, offset := range places {
			switch signs[id].kind {
			case kindTraceback:
				t := s.tracebackAt(offset)
				if c := s.claimOf(t, job); c != nil {
					all = append(all, told{*c, t.start})
				}
			case kindSyntax:
				if c := s.syntaxAt(offset); c != nil {
					all = append(all, told{*c, c.line.Byte})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return int(max(-1, min(1, a.start-b.start))) })
	all = distinct(all)
	next := s.size
	for i := len(all) - 1; i >= 0; i-- {
		if s.wentOn(all[i].end, max(next, all[i].end), all[i].rank) {
			return all[i+1:]
		}
		next = all[i].start
	}
	return all
}

// distinct drops what was parsed as a part of the traceback before it: the links of a chain, the sub-exceptions of a rank.
func distinct(all []told) []told {
	var out []told
	for _, t := range all {
		inside := slices.ContainsFunc(out, func(o told) bool { return o.rank == t.rank && o.start <= t.start && t.start < o.end })
		if !inside {
			out = append(out, t)
		}
	}
	return out
}

// root keeps what may be the cause among the tracebacks of one failure. A process ends with one exception, its last; of
// several processes the first that did not merely lose its peer.
func root(all []told) []claim {
	several := slices.ContainsFunc(all, func(t told) bool { return t.rank != "" || t.class.code == peerFailed.code })
	var own, rest []claim
	for _, t := range all {
		if t.class.weight > weightConsequence {
			own = append(own, t.claim)
		} else {
			rest = append(rest, t.claim)
		}
	}
	if !several && len(own) > 1 {
		for i := range own[:len(own)-1] {
			if own[i].class.weight < weightResource {
				own[i].class.weight = weightLine // it was survived, if not for long
			}
		}
	}
	own = append(own, rest...)
	for _, t := range all {
		own = append(own, t.also...)
	}
	return own
}
