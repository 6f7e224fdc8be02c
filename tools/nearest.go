package tools

import "strings"

// Nearest gives the name that a misspelt one most likely means, "" when none is close. Names that contain one another
// count as close (`job_id` for `job_ids`), else at most a third of the letters may differ.
func Nearest(name string, names []string) string {
	best, least := "", len(name)/3+1
	name = strings.ToLower(name)
	for _, candidate := range names {
		d := distance(name, candidate)
		if len(name) > 2 && (strings.Contains(candidate, name) || strings.Contains(name, candidate)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes: names here are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
