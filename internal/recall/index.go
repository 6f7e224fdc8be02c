package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
)

// The parameters of BM25 (Robertson & Zaragoza 2009, https://doi.org/10.1561/1500000019) at their usual values, and how much
// more a word counts in a short field than in the text.
const (
	saturation  = 1.2
	lengthShare = 0.75
	nameTimes   = 5
	tagTimes    = 3
	aboutTimes  = 2

	domainBonus = 1.2 // for cards of the domain that the request names
	weakShare   = 0.35
)

// posting is a card that has a word, and how often (weighted by field).
type posting struct {
	card  uint32
	times float32
}

// index is what is known of a library: its cards and where each word stands.
type index struct {
	cards    []card
	findings []finding.Finding
	words    map[string][]posting
	lengths  []float32
	mean     float32
}

// built keeps the index of the last library that was asked, since reading all cards takes longer than searching them.
var built struct {
	sync.Mutex
	key [sha256.Size]byte
	of  *index
}

// indexOf gives the library's index, made anew when a file of a resource skill has changed.
func indexOf(ctx context.Context, library *skill.Library) (*index, error) {
	sum := sha256.New()
	dynamic := false
	for _, s := range library.List(skill.TypeResource) {
		dynamic = dynamic || s.Dynamic // not all of its files have a digest
		fmt.Fprintf(sum, "%s\x00%s\x00", s.Name, s.Dir)
		for _, f := range s.Files {
			fmt.Fprintf(sum, "%s %s\x00", f.Path, f.SHA256)
		}
	}
	key := [sha256.Size]byte(sum.Sum(nil))
	built.Lock()
	defer built.Unlock()
	if built.of != nil && built.key == key && !dynamic {
		return built.of, nil
	}
	made, err := newIndex(ctx, library)
	if err != nil {
		return nil, err
	}
	built.key, built.of = key, made
	return made, nil
}

func newIndex(ctx context.Context, library *skill.Library) (*index, error) {
	cards, findings, err := readCards(ctx, library)
	if err != nil {
		return nil, err
	}
	x := &index{cards: cards, findings: findings, words: map[string][]posting{}, lengths: make([]float32, len(cards))}
	times, total := map[string]float32{}, float32(0)
	for i := range cards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := &cards[i]
		clear(times)
		take := func(text string, weight float32) {
			terms(text, func(term string) {
				times[term] += weight
				x.lengths[i]++
			})
		}
		for _, name := range c.names {
			take(name, nameTimes)
		}
		for _, tag := range c.tags {
			take(tag, tagTimes)
		}
		take(c.description, aboutTimes)
		for _, aspect := range aspects {
			if data, err := readFile(c.skill.FS, path.Join(c.dir, aspect.file)); err == nil {
				take(string(data), 1)
			}
		}
		for term, n := range times {
			x.words[term] = append(x.words[term], posting{uint32(i), n})
		}
		total += x.lengths[i]
	}
	x.mean = max(total/float32(max(len(cards), 1)), 1)
	return x, nil
}

// hit is a card with its score. solid: a word of the request is one of its name, tags or description, or several stand in its text.
type hit struct {
	score float64
	solid bool
	terms []string // best first
}

// rare is the share of cards above which a word says nothing.
const rare = 0.5

// search scores the cards that share words with the request.
func (x *index) search(request string) map[uint32]hit {
	found := map[uint32]*hit{}
	weights := map[string]float64{}
	for _, term := range distinctTerms(request) {
		postings := x.words[term]
		if len(postings) == 0 || stopWords[term] || strings.Trim(term, "0123456789") == "" { // a bare number has no subject
			continue
		}
		n, df := float64(len(x.cards)), float64(len(postings))
		weights[term] = math.Log(1 + (n-df+0.5)/(df+0.5))
		telling := df <= max(rare*n, 3)
		for _, p := range postings {
			h := found[p.card]
			if h == nil {
				h = &hit{}
				found[p.card] = h
			}
			tf := float64(p.times)
			h.score += weights[term] * tf * (saturation + 1) / (tf + saturation*(1-lengthShare+lengthShare*float64(x.lengths[p.card]/x.mean)))
			h.terms = append(h.terms, term)
			h.solid = h.solid || telling && p.times >= aboutTimes
		}
	}
	out := make(map[uint32]hit, len(found))
	for at, h := range found {
		slices.SortFunc(h.terms, func(a, b string) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b)) })
		h.solid = h.solid || len(h.terms) >= 3
		out[at] = *h
	}
	return out
}

func distinctTerms(text string) []string {
	seen := map[string]bool{}
	var out []string
	terms(text, func(term string) {
		if !seen[term] {
			seen[term] = true
			out = append(out, term)
		}
	})
	return out
}

// terms cuts a text into what is compared: words of other scripts in lower case and without plural endings, Han text as pairs of
// neighbouring characters (a lone one by itself).
func terms(text string, visit func(string)) {
	runes := []rune(strings.ToLower(norm.NFKC.String(text)))
	for i := 0; i < len(runes); {
		j := i
		switch c := runes[i]; {
		case unicode.Is(unicode.Han, c):
			for j < len(runes) && unicode.Is(unicode.Han, runes[j]) {
				j++
			}
			if j-i == 1 {
				visit(string(runes[i:j]))
			}
			for k := i; k+1 < j; k++ {
				visit(string(runes[k : k+2]))
			}
		case unicode.IsLetter(c) || unicode.IsDigit(c):
			for j < len(runes) && (unicode.IsLetter(runes[j]) || unicode.IsDigit(runes[j])) && !unicode.Is(unicode.Han, runes[j]) {
				j++
			}
			visit(stem(string(runes[i:j])))
		default:
			j++
		}
		i = j
	}
}

// stem takes the commonest English endings off, so that "splitting", "splits" and "split" meet. It need not be right, only the same
// on both sides.
func stem(word string) string {
	if len(word) < 4 || word[0] >= 0x80 {
		return word
	}
	for _, ending := range []struct{ from, to string }{{"ies", "y"}, {"sses", "ss"}, {"ss", "ss"}, {"us", "us"}, {"s", ""}} {
		if rest, ok := strings.CutSuffix(word, ending.from); ok {
			word = rest + ending.to
			break
		}
	}
	for _, ending := range []string{"ing", "ed"} {
		rest, ok := strings.CutSuffix(word, ending)
		if !ok || len(rest) < 3 || !strings.ContainsAny(rest, "aeiouy") {
			continue
		}
		if n := len(rest); rest[n-1] == rest[n-2] && !strings.ContainsRune("lsz", rune(rest[n-1])) {
			rest = rest[:n-1]
		}
		return rest
	}
	return strings.TrimSuffix(word, "e")
}

// stopWords carry no subject, in the form that stem gives.
var stopWords = func() map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(`a an and are as at be before between by can do does for from get go has have how i if in is it its many me
		my no not of on one or our should so than that the their them then there they this to use used using want was we what when where which while who
		why will with without work you your need needed please make made good best new old data model train training result
		only most least below above under over plan predict prediction
		怎么 什么 需要 应该 如何 可以 哪里 用什 么样`) {
		out[stem(word)] = true
	}
	return out
}()
