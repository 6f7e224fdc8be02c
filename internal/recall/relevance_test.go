package recall

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/skills"
)

// The sixty requests of testdata/relevance.tsv against the cards that the binary carries. Half of them were not looked at
// while the weights were set; -v prints the figures of both halves.
func TestRelevance(t *testing.T) {
	lib, findings := skill.NewLibrary(skill.Root{Label: "embedded", FS: skills.FS, Dir: "."})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	data, err := os.ReadFile("testdata/relevance.tsv")
	if err != nil {
		t.Fatal(err)
	}
	type figures struct{ n, found, reciprocal float64 }
	by := map[string]*figures{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || len(cells) != 4 {
			continue
		}
		result, _, err := Retrieve(context.Background(), lib, contract.RetrievalRequest{UserRequest: cells[2], ContentRequest: "summary"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range result.MatchedResources {
			if !strings.HasPrefix(m.WhyMatched, "dependency_of") {
				names = append(names, m.Name)
			}
		}
		rank := slices.IndexFunc(names, func(name string) bool { return slices.Contains(strings.Split(cells[3], ","), name) })
		for _, key := range []string{cells[0], cells[0] + " " + cells[1]} {
			f := by[key]
			if f == nil {
				f = &figures{}
				by[key] = f
			}
			f.n++
			if rank >= 0 && rank < 5 {
				f.found++
			}
			if rank >= 0 {
				f.reciprocal += 1 / float64(rank+1)
			}
		}
		if cells[0] == "tune" && rank != 0 {
			t.Logf("%q: %s at %d of %v", cells[2], cells[3], rank+1, names)
		}
	}
	for _, key := range []string{"tune", "tune en", "tune zh", "final", "final en", "final zh"} {
		f := by[key]
		t.Logf("%-8s %2.0f requests: recall@5 %.3f, MRR %.3f", key, f.n, f.found/f.n, f.reciprocal/f.n)
	}
	if f := by["tune"]; f.n+by["final"].n != 60 || f.found/f.n < 0.9 || f.reciprocal/f.n < 0.8 {
		t.Errorf("the tuned half: recall@5 %.3f, MRR %.3f", f.found/f.n, f.reciprocal/f.n)
	}
}
