package criteria

import (
	"regexp"
	"strings"
	"sync"
)

// plainUnits are units written in letters only that are longer than what passes by its shortness (isUnit).
var plainUnits = map[string]bool{
	"celsius": true, "kelvin": true, "seconds": true, "minutes": true, "hours": true, "days": true, "epochs": true, "steps": true,
	"meters": true, "metres": true, "pixels": true, "degrees": true, "percent": true,
}

// smallWords are short English words that go on after a number and are no units.
var smallWords = map[string]bool{
	"on": true, "in": true, "at": true, "by": true, "for": true, "per": true, "and": true, "or": true, "with": true, "the": true,
	"each": true, "all": true, "both": true, "but": true, "if": true, "when": true, "so": true, "is": true, "as": true, "to": true,
	"ever": true, "only": true, "not": true, "of": true, "a": true, "an": true, "from": true, "then": true, "soon": true, "plus": true,
	"once": true, "best": true, "last": true, "mean": true, "avg": true, "top": true, "now": true, "here": true, "too": true, "well": true, "good": true,
}

var unitWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\p{L}°µΩÅ%][\p{L}\p{N}°µΩÅ%²³·*/^.-]*$`)
})

// isUnit says whether a word after a number is a unit: one word, with a sign that only units have (m/s, °C, W/m^2), or
// as short as symbols are (K, hPa, degC), or a unit's full name.
func isUnit(word string) bool {
	if !unitWord().MatchString(word) || len(word) > 24 {
		return false
	}
	lower := strings.ToLower(word)
	if smallWords[lower] || splitWords[lower] {
		return false
	}
	return strings.ContainsAny(word, "°µΩÅ%²³·*/^0123456789") || len(word) <= 4 || plainUnits[lower]
}

// unitAliases are spellings of one unit. Nothing is converted.
var unitAliases = map[string]string{
	"percent": "%", "pct": "%",
	"kelvin": "K", "celsius": "degC", "°C": "degC", "deg_C": "degC", "degreeC": "degC", "C": "degC", "℃": "degC",
	"seconds": "s", "sec": "s", "minutes": "min", "hours": "h", "hour": "h", "days": "d", "day": "d",
	"meters": "m", "metres": "m", "degrees": "deg", "°": "deg", "pixels": "px",
	"1": "", "none": "", "-": "", "dimensionless": "",
}

// canonicalUnit is one spelling for a unit; case counts (mW is not MW). m s-1, m*s^-1 and m/s are not settled here:
// they differ and are reported as a mismatch.
func canonicalUnit(unit string) string {
	unit = strings.ReplaceAll(strings.TrimSpace(unit), " ", "")
	unit = strings.NewReplacer("²", "^2", "³", "^3", "μ", "µ", "·", "*").Replace(unit)
	if known, ok := unitAliases[unit]; ok {
		return known
	}
	return unit
}
