package recall

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/trainwright/trainwright/internal/contract"
)

// domainSpellings lists how each domain is written (contracts.md), in the form that fold gives. The first column is the
// name used in every result.
var domainSpellings = []struct {
	domain    string
	spellings []string
}{
	{contract.DomainEarth, []string{"earth", "climate", "weather", "meteorology", "气象", "earth science", "earth sciences"}},
	{contract.DomainBiology, []string{"biology", "bio", "biosciences", "bioscience", "生信", "bioinformatics"}},
	{contract.DomainMaterials, []string{"materials", "matchem", "chemistry", "材料", "materials science"}},
	{contract.DomainCFD, []string{"cfd", "fluid", "流体", "fluid dynamics", "computational fluid dynamics"}},
	{contract.DomainGeneralScience, []string{"general science", "general"}},
}

// NormalizeDomain returns the one name of a domain under any of its spellings, or "" for one that is not known. Case,
// dashes, underscores and full-width letters do not matter.
func NormalizeDomain(name string) string {
	folded := fold(name)
	for _, row := range domainSpellings {
		for _, spelling := range row.spellings {
			if spelling == folded {
				return row.domain
			}
		}
	}
	return ""
}

// domainKey is what domains are compared by: a library may have one of its own. "unknown" is none.
func domainKey(name string) string {
	if fold(name) == contract.DomainUnknown {
		return ""
	}
	if domain := NormalizeDomain(name); domain != "" {
		return domain
	}
	return fold(name)
}

// detectDomain finds the domain that a request's words name: one, or none. "general" alone is an ordinary word.
func detectDomain(folded string) string {
	found := ""
	for _, row := range domainSpellings {
		for _, spelling := range row.spellings {
			if spelling == "general" || !containsWord(folded, spelling) {
				continue
			}
			if found != "" && found != row.domain {
				return ""
			}
			found = row.domain
		}
	}
	return found
}

// fold makes texts comparable: NFKC, lower case, and one space for any run of white space, dashes and underscores.
func fold(text string) string {
	separators := func(c rune) rune {
		if c == '-' || c == '_' || c == '‐' || c == '–' {
			return ' '
		}
		return c
	}
	return strings.Join(strings.Fields(strings.Map(separators, strings.ToLower(norm.NFKC.String(text)))), " ")
}
