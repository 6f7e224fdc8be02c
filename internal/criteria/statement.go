package criteria

import "strings"

var (
	stated      = pattern(`(?i)^\s*(?:the\s+)?(?:(best|last|final|lowest|highest|minimum|maximum)\s+)?(.+?)\s+(?:reached|reaches|was|is|of|hit|came to|ended at|got to)\s+(?:about\s+)?(` + amount + `(?:\s*[^\s\d]{1,12})?)\s*\.?\s*$`)
	statedFirst = pattern(`(?i)^\s*(?:it\s+)?(?:reached|reaches|got|has|achieved|achieves)\s+(?:an?\s+)?(` + amount + `)\s+(?:of\s+)?(` + measures + `)\s*\.?\s*$`)
)

// statistics are the words before a metric that say which of its values is meant.
var statistics = map[string]string{"best": "best", "last": "last", "final": "last", "lowest": "min", "minimum": "min", "highest": "max", "maximum": "max"}

// ParseStatement reads what somebody says of a run as one comparison: a criterion ("test/rmse <= 0.5"), or a value
// ("test accuracy reached 93%", "the final val/loss was 0.31"), which is an equality. Statistic is best, last, min, max, or
// "" where the words do not say which value of the metric is meant. What it can't read for certain is a *finding.Refused
// with code criterion_unparsable.
func ParseStatement(text string) (c Criterion, statistic string, err error) {
	plain := normalise(text)
	if m := statedFirst().FindStringSubmatch(plain); m != nil {
		c, err = Parse(m[2] + " == " + m[1])
		return c, "", err
	}
	if c, err = Parse(plain); err == nil {
		return c, "", nil
	}
	m := stated().FindStringSubmatch(plain)
	if m == nil {
		return c, "", err
	}
	read, failed := Parse(m[2] + " == " + m[3])
	if failed != nil {
		return c, "", err
	}
	return read, statistics[strings.ToLower(m[1])], nil
}
