package dataset

import (
	"fmt"
	"slices"
	"testing"
)

// Hints whose plain reading as a random split would leak, or that name a column by words of their own.
func TestSplitHintsThatAreEasilyMisread(t *testing.T) {
	for hint, want := range map[string]string{
		"stratified by outcome, grouped by patient 70/15/15 seed 1":                     "group by patient [split_classes_uneven]",
		"group by patient, stratified by outcome 70/15/15 seed 1":                       "group by patient [split_classes_uneven]",
		"stratified 70/15/15 grouped by donor seed 1":                                   "group by donor [split_classes_uneven]",
		"group by patient 70/15/15 time by date":                                        "split_strategy_unsupported",
		"80/20 train/test, no shuffle":                                                  "time by  []",
		"70/15/15 without shuffling":                                                    "time by  []",
		"train_test_split(test_size=0.2, shuffle=False)":                                "time by  [split_assumed]",
		"never random; group by patient 70/15/15 seed 1":                                "group by patient []",
		"not random, by patient 70/15/15 seed 1":                                        "group by patient [split_assumed]",
		"random 70/15/15 (not by time) seed 1":                                          "random by  []",
		"70/15/15 by time":                                                              "time by  []",
		"random 80/10/10 by date":                                                       "time by date []",
		"time by valid_time 70/15/15":                                                   "time by valid_time []",
		`time by "valid time" 70/15/15`:                                                 "time by valid time []",
		"group by `Airport Name` 70/15/15 seed 1":                                       "group by Airport Name []",
		"Stratified on 'test result', 70% Training, 15% Validation, 15% Holdout seed 1": "stratified by test result []",
		"stratified by batch_size 70/15/15 seed 1":                                      "stratified by batch_size []",
		"按patient_id分组 70/15/15 seed 1":                                                 "group by patient_id []",
		"按时间划分，训练70% 验证15% 测试15%":                                                       "time by  []",
		"随机 70/15/15 随机种子 3":                                                            "random by  []",
		"按 species 分层 8:1:1 seed 1":                                                     "stratified by species []",
	} {
		spec, found, err := ParseSplitHint(hint)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s by %s %v", spec.Strategy, spec.Group+spec.Time+spec.Target+spec.Sequence, codes(found))
		if i := slices.Index(codes(found), "split_strategy_unsupported"); i >= 0 {
			got = "split_strategy_unsupported"
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", hint, got, want)
		}
	}
}
