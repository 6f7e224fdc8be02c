// Package recall answers a resource_retrieval_request from the skills of type resource: by the exact name of a card, or by
// the words of the request (BM25 over names, tags, descriptions and texts, Chinese by pairs of characters). A matched card brings the cards it depends on, and every
// match says why it is one and what its content leaves out.
package recall

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
)

// Budgets of one result, in bytes of content: an agent reads all of it.
const (
	MaxMatches      = 8 // dependencies not counted
	maxDependencies = 8
	contentBudget   = 16_000
	cardBudget      = 8_000
)

// The codes of findings that callers look at.
const (
	CodeNoMatch = "recall_no_match" // Where.Field is the field of the request that found nothing
	CodeCut     = "recall_cut"
)

// Retrieve searches the library. Finding nothing is no error: the status is failed, the summary says what the library holds,
// and a recall_no_match note names the query. An error is a library that can't be listed, or ctx.
func Retrieve(ctx context.Context, library *skill.Library, req contract.RetrievalRequest) (contract.RetrievalResult, []finding.Finding, error) {
	known, err := indexOf(ctx, library)
	if err != nil {
		return contract.RetrievalResult{}, nil, err
	}
	s := search{request: req, index: known, cards: known.cards, findings: slices.Clone(known.findings), text: fold(req.UserRequest + "\n" + req.ContentRequest)}
	s.domain = domainKey(req.Filters.Domain)
	s.find()
	s.addDependencies()
	return s.result(), s.findings, nil
}

// Missing returns the queries that found nothing, as they stand in the request (a dependency by its name), for the record of
// what recall was asked and could not tell.
func Missing(req contract.RetrievalRequest, findings []finding.Finding) []string {
	var missing []string
	for _, f := range findings {
		if f.Code != CodeNoMatch || f.Where == nil {
			continue
		}
		switch field := f.Where.Field; field {
		case "filters.keyword":
			missing = append(missing, req.Filters.Keyword)
		case "user_request":
			missing = append(missing, req.UserRequest)
		default:
			missing = append(missing, strings.TrimPrefix(field, "key_dependencies."))
		}
	}
	return missing
}

// match is a card with the reason it is one. weight orders the matches of one kind.
type match struct {
	*card
	why    string
	weight float64
}

type search struct {
	request  contract.RetrievalRequest
	text     string // what the request says, folded
	domain   string // the filter, "" for all
	index    *index
	cards    []card
	matches  []match
	findings []finding.Finding
}

func (s *search) note(code, field, what, expected, remedy string) {
	s.findings = append(s.findings, finding.Finding{Code: code, Severity: finding.Note, What: what, Where: &finding.Where{Field: field}, Expected: expected, Remedy: remedy})
}

// find looks the keyword up, and where there is none or it names no card, the words of the request.
func (s *search) find() {
	keyword := fold(s.request.Filters.Keyword)
	if keyword != "" {
		elsewhere := s.named(keyword)
		if len(s.matches) > 0 {
			return
		}
		s.note(CodeNoMatch, "filters.keyword", fmt.Sprintf("no card is named %q%s%s", s.request.Filters.Keyword, s.within(), elsewhere), "the exact name of a card", "leave the keyword out to search by the words of the request")
	}
	elsewhere := s.words()
	if len(s.matches) == 0 {
		s.note(CodeNoMatch, "user_request", fmt.Sprintf("no card answers the words of the request%s%s", s.within(), elsewhere), "a request that names a model, component, dataset or question of the library", "name it in user_request or filters.keyword")
	}
}

// named takes the cards of a name; those under another domain are told.
func (s *search) named(keyword string) (elsewhere string) {
	for i := range s.cards {
		c := &s.cards[i]
		if !c.called(keyword) {
			continue
		}
		if s.admits(c) {
			s.matches = append(s.matches, match{c, contract.WhyNamedLookup, 0})
		} else {
			elsewhere = fmt.Sprintf("; there is one under %s", c.domain)
		}
	}
	return elsewhere
}

// nameWeight puts a card that the request names before all others.
const nameWeight = 1e6

// words takes the cards that the request names or whose tags it holds, and those that its words find; names come first, then the score
// decides. What the words alone find is left out where it scores little beside the best.
func (s *search) words() (elsewhere string) {
	domain := cmp.Or(s.domain, detectDomain(s.text))
	hits := s.index.search(s.request.UserRequest)
	best := 0.0
	for i := range s.cards {
		c, hit := &s.cards[i], hits[uint32(i)]
		m := match{card: c, weight: hit.score}
		if c.domain == domain {
			m.weight *= domainBonus
		}
		tags := mentioned(s.text, c.tags)
		switch named := mentioned(s.text, c.names); {
		case len(named) > 0:
			m.why, m.weight = "name_in_request", m.weight+nameWeight
		case len(tags) > 0:
			m.why = "tag_in_request: " + strings.Join(tags, ", ")
		case hit.solid:
			m.why = "words_in_card: " + strings.Join(hit.terms[:min(len(hit.terms), 5)], ", ")
		default:
			continue
		}
		if !s.admits(c) {
			elsewhere = fmt.Sprintf("; %s under %s would match", c.name, c.domain)
			continue
		}
		if s.matches = append(s.matches, m); m.weight < nameWeight {
			best = max(best, m.weight)
		}
	}
	s.matches = slices.DeleteFunc(s.matches, func(m match) bool { return m.weight < weakShare*best })
	slices.SortStableFunc(s.matches, func(a, b match) int { return cmp.Compare(b.weight, a.weight) })
	if n := len(s.matches); n > MaxMatches {
		s.note(CodeCut, "user_request", fmt.Sprintf("%d cards match, the best %d are given", n, MaxMatches), "a request that names fewer things", "narrow it with filters.domain or filters.keyword")
		s.matches = s.matches[:MaxMatches]
	}
	return elsewhere
}

// mentioned are the names that stand in a text as whole words.
func mentioned(text string, names []string) []string {
	var found []string
	for _, name := range names {
		if len([]rune(name)) > 1 && containsWord(text, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

func (s *search) admits(c *card) bool { return s.domain == "" || s.domain == c.domain }

func (s *search) within() string {
	if s.domain == "" {
		return ""
	}
	return " in the domain " + s.domain
}

// addDependencies brings the cards that the matched ones list under key_dependencies, of the same domain where several
// have the name.
func (s *search) addDependencies() {
	taken := map[*card]bool{}
	for _, m := range s.matches {
		taken[m.card] = true
	}
	missing := map[string]bool{}
	added := 0
	for _, m := range slices.Clone(s.matches) {
		for _, name := range m.dependencies() {
			found := s.dependency(fold(name), m.domain)
			switch {
			case found == nil && !missing[fold(name)]:
				missing[fold(name)] = true
				s.note(CodeNoMatch, "key_dependencies."+name, fmt.Sprintf("%s depends on %s, of which there is no card", m.name, name), "a card of that name", "add the card, or find out about it otherwise")
			case found == nil || taken[found]:
			case added == maxDependencies:
				s.note(CodeCut, "key_dependencies", fmt.Sprintf("only the first %d dependencies are given; %s is left out", maxDependencies, name), "", "ask for it by filters.keyword")
			default:
				taken[found] = true
				added++
				s.matches = append(s.matches, match{found, "dependency_of: " + m.name, 0})
			}
		}
	}
}

func (s *search) dependency(name, domain string) *card {
	var other *card
	for i := range s.cards {
		c := &s.cards[i]
		if !c.called(name) {
			continue
		}
		if c.domain == domain {
			return c
		}
		if other == nil {
			other = c
		}
	}
	return other
}

func (s *search) result() contract.RetrievalResult {
	result := contract.RetrievalResult{Status: contract.StatusSuccess, QuerySummary: s.summary(), DetectedDomain: s.detectedDomain(), TaskIntent: intentOf(s.text), MatchedResources: []contract.MatchedResource{}}
	files := wantedFiles(s.request.ContentRequest)
	left := contentBudget
	for i, m := range s.matches {
		// What earlier cards did not use goes to the later ones.
		content, notes := m.content(files, min(cardBudget, left/(len(s.matches)-i)))
		left -= len(content)
		if m.limitations != "" {
			notes = append([]string{m.limitations}, notes...)
		}
		result.MatchedResources = append(result.MatchedResources, contract.MatchedResource{Type: m.kind, Path: m.uri(), Name: m.name, WhyMatched: m.why, Limitations: strings.Join(notes, "; "), Content: content})
	}
	missed := slices.ContainsFunc(s.findings, func(f finding.Finding) bool { return f.Code == CodeNoMatch })
	switch {
	case len(s.matches) == 0:
		result.Status = contract.StatusFailed
	case missed:
		result.Status = contract.StatusPartial
	}
	return result
}

func (s *search) summary() string {
	switch {
	case len(s.cards) == 0:
		return "the library holds 0 cards: there is no resource skill with assets, so none matched"
	case len(s.matches) == 0:
		return fmt.Sprintf("the library holds %d cards and none matched%s", len(s.cards), s.within())
	}
	var names []string
	for _, m := range s.matches {
		names = append(names, fmt.Sprintf("%s (%s)", m.name, m.why))
	}
	return fmt.Sprintf("%d of %d cards matched%s: %s", len(s.matches), len(s.cards), s.within(), strings.Join(names, ", "))
}

// detectedDomain is the filter's, else what the words say, else the one all matches share.
func (s *search) detectedDomain() string {
	if s.domain != "" {
		return s.domain
	}
	if domain := detectDomain(s.text); domain != "" {
		return domain
	}
	domain := contract.DomainUnknown
	for i, m := range s.matches {
		if i > 0 && m.domain != domain {
			return contract.DomainUnknown
		}
		domain = m.domain
	}
	return domain
}
