package finding

import (
	"fmt"
	"strings"
)

// Few names the first most of a list, with commas, and counts the rest: "a, b and 3 more".
func Few(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
