package finding

import "strings"

// Nearest gives the name that a misspelt one most likely means, "" when none is close. Names that contain one another count
// as close (`job_id` for `job_ids`); else at most a third of the letters may differ. Case does not count.
func Nearest(name string, names []string) string {
	best, least := "", len(name)/3+1
	name = strings.ToLower(name)
	for _, candidate := range names {
		folded := strings.ToLower(candidate)
		d := Distance(name, folded)
		if len(name) > 2 && (strings.Contains(folded, name) || strings.Contains(name, folded)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Distance is the Levenshtein distance of two names in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
