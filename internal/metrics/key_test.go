package metrics

import (
	"encoding/json"
	"math"
	"testing"
)

func TestParseKey(t *testing.T) {
	for given, want := range map[string]string{
		"val_loss": "val/loss", "val/loss": "val/loss", "acc": "accuracy", "test/rmse": "test/rmse", "eval_loss": "val/loss",
		"validation_accuracy": "val/accuracy", "train-loss": "train/loss", "loss": "loss", "Loss/train": "train/loss",
		"test accuracy": "test/accuracy", "valid.f1_score": "val/f1", "dev:MAE": "val/mae", "std_dev": "std_dev",
		"val/acc@1": "val/accuracy", "Root Mean Squared Error": "rmse", "test_mean-absolute-error": "test/mae",
		"macro F1": "f1_macro", "val_macro_f1": "val/f1_macro", "R²": "r2", "val": "val", "val_": "val", "": "",
		"holdout/auc": "test/auc", "train_loss_epoch": "train/loss_epoch", "loss/kl": "loss/kl", "val/loss/kl": "val/loss/kl",
		"train/val_loss": "train/val_loss", "acc_val": "val/accuracy", "test_time": "test/time", "training": "training",
		"validity": "validity", "value_loss": "value_loss", "  ACC  ": "accuracy",
	} {
		if got := ParseKey(given).String(); got != want {
			t.Errorf("ParseKey(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestRowKeyPutsTheRowsSplitFirst(t *testing.T) {
	for _, c := range [][3]string{
		{"val", "loss", "val/loss"}, {"validation", "val_loss", "val/loss"}, {"train", "val_loss", "train/val_loss"},
		{"", "val_loss", "val/loss"}, {"OOD", "acc", "ood/accuracy"},
	} {
		if got := rowKey(c[0], c[1]).String(); got != c[2] {
			t.Errorf("split %q name %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"val_loss", "test accuracy", "a/_b", "val val/x", ".\n.\r00", "R²", "train_val"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := ParseKey(s)
		if twice := ParseKey(once.String()); twice != once && once.Name != "" {
			t.Errorf("%q: %#v, then %#v", s, once, twice)
		}
	})
}

func TestAgrees(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		recomputed float64
		want       bool
	}{
		{"0.31", "", 0.3149, true},  // half of the last printed digit
		{"0.31", "", 0.315, true},   // exactly half
		{"0.31", "", 0.3152, false}, //
		{"0.310000", "", 0.3103, true},
		{"0.310000", "", 0.3104, false},
		{"1.5e-3", "", 0.00154, true}, {"1.5e-3", "", 0.00156, false},
		{"412", "", 412.4, true}, {"41", "", 41.4, true}, {"41", "", 41.6, false},
		{"1", "", 0.6, false}, {"0", "", 0.4, false}, {"1", "", 0.9995, true}, {"1e5", "", 120000, false},
		{"93.1", "%", 0.9312, true}, {"93.1", "%", 0.9412, false}, {"93", "percent", 0.934, true},
		{"-2.5", "", -2.54, true}, {"2.5", "", -2.5, false}, {"0", "", 0, true}, {"0.31", "", math.NaN(), false},
	} {
		row, bad := parseObject([]byte(`{"name":"m","value":`+c.text+`,"unit":"`+c.unit+`"}`), nil)
		if bad != nil {
			t.Fatal(bad)
		}
		points, _, _ := rowPoints(line{}, row, keyCache{})
		if got := Agrees(points[0], c.recomputed); got != c.want {
			t.Errorf("Agrees(%s%s, %v) = %v", c.text, c.unit, c.recomputed, got)
		}
	}
	if Agrees(Point{NonFinite: "nan", Value: math.NaN(), Text: "NaN"}, 0.5) {
		t.Error("NaN agrees with a number")
	}
}

func TestPointJSONHasNullForNaN(t *testing.T) {
	step := int64(7)
	data, err := json.Marshal(Point{Step: &step, Split: "val", Name: "loss", Value: math.NaN(), NonFinite: "nan", Line: 3, Start: 10, End: 30, Text: "NaN"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"step":7,"split":"val","name":"loss","nonfinite":"nan","line":3,"start":10,"end":30,"digits":0,"text":"NaN","value":null}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	var back Point
	if err := json.Unmarshal(data, &back); err != nil || !math.IsNaN(back.Value) || *back.Step != 7 {
		t.Errorf("%+v %v", back, err)
	}
	data, _ = json.Marshal(Point{Name: "a", Value: 0.5, Text: "0.5", Digits: 1})
	if err := json.Unmarshal(data, &back); err != nil || back.Value != 0.5 {
		t.Errorf("%+v %v", back, err)
	}
}
