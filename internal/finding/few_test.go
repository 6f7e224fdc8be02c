package finding

import "testing"

func TestFew(t *testing.T) {
	for most, want := range map[int]string{1: "a and 2 more", 2: "a, b and 1 more", 3: "a, b, c", 9: "a, b, c"} {
		if got := Few([]string{"a", "b", "c"}, most); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
	if got := Few(nil, 3); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
