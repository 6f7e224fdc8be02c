package criteria

import "testing"

func TestParseStatement(t *testing.T) {
	for text, want := range map[string][2]string{
		"test/accuracy >= 0.9":                   {"test/accuracy >= 0.9", ""},
		"test accuracy reached 0.93":             {"test/accuracy == 0.93", ""},
		"test accuracy is 93%":                   {"test/accuracy == 93%", ""},
		"The final val/loss was 0.31.":           {"val/loss == 0.31", "last"},
		"best val/rmse is 0.5 K":                 {"val/rmse == 0.5 K", "best"},
		"lowest validation loss was 0.2":         {"validation/loss == 0.2", "min"},
		"it reached an accuracy of at least 0.9": {"", ""},
		"reached 0.93 accuracy":                  {"accuracy == 0.93", ""},
		"test accuracy of at least 90%":          {"test/accuracy >= 90%", ""},
		"loss went from 2.3 to 0.4":              {"", ""},
		"trained well":                           {"", ""},
		"the run was 5":                          {"run == 5", ""}, // a name that no file has: it can't be checked
		"":                                       {"", ""},
	} {
		c, statistic, err := ParseStatement(text)
		got := ""
		if err == nil {
			got = c.String()
		}
		if got != want[0] || err == nil && statistic != want[1] {
			t.Errorf("%q: %q, %q, %v; want %q", text, got, statistic, err, want)
		}
	}
}
