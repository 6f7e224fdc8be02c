package diagnose

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The lanes and their borders lose no literal and report none twice.
func TestSearchFindsWhatIndexFinds(t *testing.T) {
	literals := []string{"abc", "bc", "cab", "aaaa", "x", "bcabca"}
	a := newAutomaton(literals)
	random := rand.New(rand.NewPCG(1, 2))
	for length := range 200 {
		text := make([]byte, length)
		for i := range text {
			text[i] = "abcx."[random.IntN(5)]
		}
		var got, want []string
		a.search(text, func(literal, end int) { got = append(got, fmt.Sprint(literal, end)) })
		for id, literal := range literals {
			for end := len(literal); end <= len(text); end++ {
				if bytes.HasSuffix(text[:end], []byte(literal)) {
					want = append(want, fmt.Sprint(id, end))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n%s", text, diff)
		}
	}
}

func TestSignsFitTheAutomaton(t *testing.T) {
	found := map[string]bool{}
	for _, s := range signs {
		seeker().search([]byte(s.literal), func(literal, end int) { found[signs[literal].literal] = true })
		if !found[s.literal] {
			t.Errorf("%q is not found in itself", s.literal)
		}
		if strings.ContainsAny(s.literal, "\n\r") {
			t.Errorf("%q holds a line end", s.literal)
		}
	}
}
