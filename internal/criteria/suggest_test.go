package criteria

import (
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	for text, want := range map[string]string{
		"A classifier with at least 0.9 accuracy on unseen samples.":     "accuracy >= 0.9",
		"test accuracy should be above 90 %; validation RMSE below 0.5":  "test/accuracy > 90%|validation/rmse < 0.5",
		"What counts is accuracy on samples the model has not seen.":     "",
		"Train for at least 20 epochs with a batch of more than 16.":     "",
		"MAE <= 1.5 and f1 ≥ 0.8, and again mae <= 1.5":                  "mae <= 1.5|f1 >= 0.8",
		"The loss is below 0.3 and the error under 2":                    "",
		"AUC of at least 95 percent":                                     "auc >= 95%",
		"accuracy above 0.9 but not too far":                             "accuracy > 0.9",
		"":                                                               "",
		"balanced accuracy must be at least 0.7 (accuracy means little)": "balanced_accuracy >= 0.7",
	} {
		got := Suggest(text)
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", text, strings.Join(got, "|"), want)
		}
		for _, criterion := range got {
			if _, err := Parse(criterion); err != nil {
				t.Errorf("%q can't be read back: %v", criterion, err)
			}
		}
	}
}
