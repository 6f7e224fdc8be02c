package evidence

import (
	"encoding/json"
	"math"
	"testing"
)

func TestValueInQuote(t *testing.T) {
	tests := []struct {
		value any
		quote string
		want  bool
	}{
		{"adamw", "optimizer: AdamW, lr 3e-4", true},
		{"adam", "optimizer: AdamW", false},
		{"train", "train_source: x", false},
		{"configs/train.yaml", "see configs/train.yaml.", true},
		{"val/loss", "best by val/loss", true},
		{"mean squared error", "Mean  squared\nerror", true},
		{"optimizer", "the optimi-\nzer", true},
		{"海温", "预测海温的模型", true},
		{"fine", "ﬁne", true},
		{"", "anything", false},
		{"32", "batch size 32", true},
		{"3e-4", "lr 0.0003", true},
		{"C++", "in C++", true},
		{0.0003, "lr 3e-4", true},
		{0.0003, "lr = 3.0e-04,", true},
		{3e-4, "lr 0.0003", true},
		{0.0003, "lr 3e-5", false},
		{1000.0, "1,000 steps", true},
		{1000, "1_000 steps", true},
		{1.0, "[1,000]", true},
		{200.0, "[1,200]", true},
		{2, "[1,2,3]", true},
		{12, "[1,2]", false},
		{32, "batch_size=32.", true},
		{32.0, "batch 32.0", true},
		{0.5, "50%", false},
		{50, "50%", true},
		{50, "resnet50", false},
		{30, "30s", false},
		{1.2, "version 1.2.3", false},
		{3, "version 1.2.3", false},
		{0.5, "alpha .5", true},
		{0.5, "alpha=.5", true},
		{-1, "device: -1", true},
		{1, "device: -1", false},
		{-2.0, "lat in [-2, 5]", true},
		{-2, "x \u22122", true},
		{20, "10-20 epochs", true},
		{-20, "10-20 epochs", false},
		{10, "10^3", false},
		{0, "seed 0", true},
		{int64(7), "seed 7", true},
		{uint8(7), "seed 7", true},
		{float32(0.1), "dropout 0.1", true},
		{json.Number("0.1"), "dropout 0.10", true},
		{math.NaN(), "nan", false},
		{math.Inf(1), "inf", false},
		{true, "shuffle: True", true},
		{true, "amp = on", true},
		{true, "only", false},
		{false, "amp: no", true},
		{false, "amp: true", false},
		{true, "store_true", false},
		{nil, "null", false},
		{[]any{"sst", 12.0}, "sst with 12 steps", true},
		{[]any{"sst", "t2m"}, "sst with 12 steps", false},
		{[]string{"sst"}, "sst", true},
		{[]any{}, "features: []", true},
		{[]any{}, "features", false},
		{map[string]any{"name": "adamw", "lr": 3e-4}, "AdamW(lr=3e-4)", true},
		{map[string]any{"name": "sgd"}, "AdamW(lr=3e-4)", false},
		{struct{}{}, "{}", false},
	}
	for _, test := range tests {
		if got := ValueInQuote(test.value, test.quote); got != test.want {
			t.Errorf("ValueInQuote(%#v, %q) = %v", test.value, test.quote, got)
		}
	}
}
