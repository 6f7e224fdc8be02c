package diagnose

import "testing"

// Every pattern compiles, though the program compiles each only when it is asked for.
func TestPatternsCompile(t *testing.T) {
	for _, r := range rules {
		if r.message != nil {
			r.message()
		}
	}
	for _, s := range statements {
		s.says()
	}
}
