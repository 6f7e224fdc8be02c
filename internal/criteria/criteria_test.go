package criteria

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Criterion{
		"accuracy >= 0.9":                          {Key: "accuracy", Name: "accuracy", Op: ">=", Value: 0.9},
		"val/rmse <= 0.5 K":                        {Key: "val/rmse", Split: "val", Name: "rmse", Op: "<=", Value: 0.5, Unit: "K"},
		"val_loss < 0.35":                          {Key: "val_loss", Name: "val_loss", Op: "<", Value: 0.35},
		"test accuracy >= 90%":                     {Key: "test/accuracy", Split: "test", Name: "accuracy", Op: ">=", Value: 0.9, Percent: true},
		"accuracy of at least 0.9":                 {Key: "accuracy", Name: "accuracy", Op: ">=", Value: 0.9},
		"Accuracy ≥ 57 %":                          {Key: "Accuracy", Name: "Accuracy", Op: ">=", Value: 0.57, Percent: true},
		"accuracy => 0.9":                          {Key: "accuracy", Name: "accuracy", Op: ">=", Value: 0.9},
		"rmse below 0.5.":                          {Key: "rmse", Name: "rmse", Op: "<", Value: 0.5},
		"rmse＜＝０．５。":                               {Key: "rmse", Name: "rmse", Op: "<=", Value: 0.5},
		"accuracy≥９０％":                             {Key: "accuracy", Name: "accuracy", Op: ">=", Value: 0.9, Percent: true},
		"The validation loss must be at most 1e-3": {Key: "validation/loss", Split: "validation", Name: "loss", Op: "<=", Value: 0.001},
		"test set accuracy should be above .8":     {Key: "test/accuracy", Split: "test", Name: "accuracy", Op: ">", Value: 0.8},
		"accuracy on the test set >= 0.9":          {Key: "test/accuracy", Split: "test", Name: "accuracy", Op: ">=", Value: 0.9},
		"achieve test macro F1 of at least 0.8":    {Key: "test/macro_f1", Split: "test", Name: "macro_f1", Op: ">=", Value: 0.8},
		"mean absolute error not above 2.5 mm/day": {Key: "mean_absolute_error", Name: "mean_absolute_error", Op: "<=", Value: 2.5, Unit: "mm/day"},
		"rmse is no more than 0.5degC":             {Key: "rmse", Name: "rmse", Op: "<=", Value: 0.5, Unit: "degC"},
		"gap < 0.5eV":                              {Key: "gap", Name: "gap", Op: "<", Value: 0.5, Unit: "eV"},
		"mae <= 3 °C":                              {Key: "mae", Name: "mae", Op: "<=", Value: 3, Unit: "°C"},
		"flux_mae <= 12 W/m^2":                     {Key: "flux_mae", Name: "flux_mae", Op: "<=", Value: 12, Unit: "W/m^2"},
		"R² > 0.5":                                 {Key: "R²", Name: "R²", Op: ">", Value: 0.5},
		"bias == 0":                                {Key: "bias", Name: "bias", Op: "==", Value: 0},
		"log_likelihood > -3.5e2":                  {Key: "log_likelihood", Name: "log_likelihood", Op: ">", Value: -350},
		"val/acc@1 = 0.75":                         {Key: "val/acc@1", Split: "val", Name: "acc@1", Op: "==", Value: 0.75},
		"val/acc == 0.75 ± 0.02":                   {Key: "val/acc", Split: "val", Name: "acc", Op: "==", Value: 0.75, Tolerance: 0.02},
		"accuracy equals 90% +/- 1%":               {Key: "accuracy", Name: "accuracy", Op: "==", Value: 0.9, Percent: true, Tolerance: 0.01},
		"accuracy = 90% ± 1":                       {Key: "accuracy", Name: "accuracy", Op: "==", Value: 0.9, Percent: true, Tolerance: 0.01},
		"bias == 0 ± 0.1 K":                        {Key: "bias", Name: "bias", Op: "==", Value: 0, Unit: "K", Tolerance: 0.1},
		"energy == -13.5 eV plus or minus 0.25 eV": {Key: "energy", Name: "energy", Op: "==", Value: -13.5, Unit: "eV", Tolerance: 0.25},
		"mass == 200 kg ± 5%":                      {Key: "mass", Name: "mass", Op: "==", Value: 200, Unit: "kg", Tolerance: 10},
		" top5  not less than\t0.99 ":              {Key: "top5", Name: "top5", Op: ">=", Value: 0.99},
	} {
		want.Text = text
		got, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		again, err := Parse(got.String())
		if err != nil || again.Op != got.Op || again.Value != got.Value || again.Unit != got.Unit || again.Percent != got.Percent || again.Tolerance != got.Tolerance {
			t.Errorf("%q is written as %q, which reads as %+v (%v)", text, got.String(), again, err)
		}
	}
}

// A sentence that could be read as something else than one comparison is refused, never guessed.
func TestUnparsable(t *testing.T) {
	for _, text := range []string{
		"", ".", "checkpoint exists", "training completes", "a checkpoint is written every epoch", "accuracy", "accuracy >= ", ">= 0.9",
		"accuracy is good", "accuracy is not >= 0.9", "accuracy no greater than or equal to 0.9", "accuracy >= 0.9 and loss < 0.3", "0.5 <= rmse <= 1",
		"0.9 <= accuracy", "accuracy != 0.9", "accuracy!=0.9", "accuracy -> 0.9", "accuracy->0.9", "accuracy >= 0,9", "steps >= 1,000", "accuracy >= ninety percent",
		"loss < 0.35 within 20 epochs", "accuracy >= 0.9 overall", "accuracy >= 0.9 on val", "accuracy at least as good as the baseline",
		"accuracy > baseline", "accuracy >= 0x1f", "steps >= 1_000", "steps >= 5e", "loss < 1e999", "at least 3 checkpoints", "it is at least 0.9", "test >= 0.9",
		"final loss < 0.3", "accuracy > > 0.9", "accuracy improves by at least 5%", "loss is lower than before", "accuracy >= 0.9 ± 0.1", "bias == 0 ± ", "bias == 0 ± -1", "bias == 0 K ± 1 m", "bias == ± 1", "bias == 0 ± 1 ± 2", "rmse <= 0.5 \x00", "rmse \xff<= 0.5",
	} {
		c, err := Parse(text)
		var refused *finding.Refused
		if !errors.As(err, &refused) {
			t.Errorf("%q was read as %+v", text, c)
			continue
		}
		f := refused.Findings[0]
		if f.Code != "criterion_unparsable" || f.Expected == "" || f.Remedy == "" || f.What == "" {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		text  string
		value float64
		unit  string
		met   bool
		code  string
	}{
		{"accuracy >= 0.9", 0.9, "", true, ""},
		{"accuracy >= 0.9", float64(float32(0.9)), "", true, ""}, // 0.8999999761581421
		{"accuracy >= 0.9", 0.8999, "", false, ""},
		{"accuracy > 0.9", 0.9, "", false, ""},
		{"accuracy > 0.9", 0.9001, "", true, ""},
		{"loss < 0.35", 0.35, "", false, ""}, {"loss <= 0.35", 0.35, "", true, ""}, {"loss < 0.35", 0.3499, "", true, ""},
		{"bias == 0", 0, "", true, ""}, {"bias == 0", 1e-6, "", false, ""}, {"acc == 0.75", 0.75000001, "", true, ""},
		{"loss < 0.35", math.NaN(), "", false, "criterion_value_nonfinite"},
		{"loss < 0.35", math.Inf(-1), "", false, "criterion_value_nonfinite"},
		{"loss > 0.35", math.Inf(1), "", false, "criterion_value_nonfinite"},
		{"rmse <= 0.5 K", 0.4, "K", true, ""}, {"rmse <= 0.5 K", 0.6, "kelvin", false, ""},
		{"rmse <= 0.5 °C", 0.4, "degC", true, ""},
		{"rmse <= 0.5 K", 0.4, "degC", false, "criterion_unit_mismatch"},
		{"latency <= 5 ms", 4, "s", false, "criterion_unit_mismatch"}, // one measured ms, the other wanted s
		{"power <= 5 MW", 4, "mW", false, "criterion_unit_mismatch"},
		{"rmse <= 0.5 K", 0.4, "", true, "criterion_unit_unstated"}, {"rmse <= 0.5 K", 0.6, "", false, "criterion_unit_unstated"},
		{"rmse <= 0.5", 0.4, "degC", true, ""},
		{"accuracy >= 90%", 0.91, "", true, ""}, {"accuracy >= 90%", 91, "%", true, ""}, {"accuracy >= 0.9", 91, "percent", true, ""}, {"accuracy >= 0.9", 89, "%", false, ""},
		{"accuracy >= 90%", 50, "", false, "criterion_unit_mismatch"}, // 50 is not above 0.9
		{"accuracy >= 0.9", 50, "", false, "criterion_unit_mismatch"},
		{"accuracy >= 90", 0.93, "", false, "criterion_unit_mismatch"},
		{"mape <= 5", 0.04, "%", false, "criterion_unit_mismatch"},
		{"mape <= 5%", 4.2, "", false, "criterion_unit_mismatch"},
		{"accuracy >= 90%", 0.95, "K", false, "criterion_unit_mismatch"},
		{"acceleration_rmse <= 5", 0.3, "", true, ""},
		{"accuracy >= 0.9", 0, "", false, ""},
		{"bias == 0 ± 0.1 K", 0.1, "K", true, ""}, {"bias == 0 ± 0.1 K", -0.1, "K", true, ""}, {"bias == 0 ± 0.1 K", 0.101, "K", false, ""},
		{"bias == 0 ± 0.1 K", 0.05, "m", false, "criterion_unit_mismatch"}, {"accuracy == 90% ± 1%", 91, "%", true, ""}, {"accuracy == 90% ± 1%", 0.889, "", false, ""},
	} {
		criterion, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		met, f := Judge(criterion, c.value, c.unit)
		code := ""
		if f != nil {
			code = f.Code
		}
		if met != c.met || code != c.code {
			t.Errorf("%q with %v %s: %v %q, want %v %q", c.text, c.value, c.unit, met, code, c.met, c.code)
		}
	}
}

func TestMismatchSaysBothSides(t *testing.T) {
	c, err := Parse("val/rmse <= 0.5 K")
	if err != nil {
		t.Fatal(err)
	}
	_, f := Judge(c, 0.4, "degC")
	if want := "val/rmse is 0.4 degC, the criterion asks for val/rmse <= 0.5 K; units are not converted"; f.What != want {
		t.Errorf("%q", f.What)
	}
}

// Whatever is read is finite, has a name and an operator, and is read the same again from its own form.
func FuzzParseCriterion(f *testing.F) {
	for _, seed := range []string{
		"accuracy >= 0.9", "val/rmse <= 0.5 K", "test set accuracy should be above .8", "rmse＜＝０．５。", "R² > 50 %", "İ at least 1", "bias == 0 ± 0.1 K", "acc = 9e1% +- 1e1", "mae on test < 3 W/m^2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			var refused *finding.Refused
			if !errors.As(err, &refused) || refused.Findings[0].Code != "criterion_unparsable" {
				t.Fatal(err)
			}
			return
		}
		if c.Name == "" || c.Op == "" || math.IsNaN(c.Value) || math.IsInf(c.Value, 0) {
			t.Errorf("%q: %+v", text, c)
		}
		again, err := Parse(c.String())
		if err != nil || again.Key != c.Key || again.Op != c.Op || math.Abs(again.Value-c.Value) > 1e-9*math.Abs(c.Value) || again.Unit != c.Unit || math.Abs(again.Tolerance-c.Tolerance) > 1e-9*c.Tolerance {
			t.Errorf("%q is written as %q, which reads as %+v (%v)", text, c.String(), again, err)
		}
		Judge(c, c.Value, c.Unit)
	})
}
