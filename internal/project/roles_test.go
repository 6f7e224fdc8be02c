package project

import (
	"strings"
	"testing"
)

func TestRoleOf(t *testing.T) {
	tests := []struct{ name, want string }{
		{"--train", RoleTrainSource}, {"train-file", RoleTrainSource}, {"train_csv", RoleTrainSource}, {"trainPath", RoleTrainSource},
		{"--val", RoleValSource}, {"valid_file", RoleValSource}, {"test_data", RoleTestSource},
		{"data", RoleDataSource}, {"dataset", RoleDataSource}, {"csv", RoleDataSource}, {"input", RoleDataSource}, {"data-dir", RoleDataDir},
		{"target", RoleTarget}, {"label_column", RoleTarget}, {"id_column", RoleID}, {"group_col", RoleGroup}, {"date_column", RoleTime}, {"features", RoleFeatures},
		{"split_seed", RoleSplitSeed}, {"test_size", RoleSplitFraction}, {"val_fraction", RoleSplitFraction},
		{"optimizer", RoleOptimizer}, {"optim", RoleOptimizer}, {"--LR", RoleLearningRate}, {"learningRate", RoleLearningRate}, {"weight-decay", RoleWeightDecay}, {"momentum", RoleMomentum}, {"max_grad_norm", RoleClipNorm},
		{"seed", RoleSeed}, {"loss", RoleLoss}, {"scheduler", RoleScheduler}, {"batch_size", RoleBatchSize}, {"epochs", RoleEpochsOrSteps}, {"max_steps", RoleEpochsOrSteps}, {"iterations", RoleEpochsOrSteps},
		{"precision", RolePrecision}, {"amp", RolePrecision}, {"distributed", RoleDistributed},
		{"resume", RoleResume}, {"resume-from", RoleResume}, {"pretrained", RoleInit}, {"weights", RoleInit}, {"init", RoleInit}, {"finetune_from", RoleFinetune},
		{"checkpoint_dir", RoleCheckpointDir}, {"save_every", RoleEveryEpochs}, {"save_total_limit", RoleKeep},
		{"out", RoleOutputDir}, {"save_dir", RoleOutputDir}, {"log_dir", RoleLogDir}, {"metrics_file", RoleMetrics}, {"predictions", RolePredictions}, {"summary", RoleSummary},
		{"config", RoleConfigPath}, {"cfg", RoleConfigPath}, {"device", RoleDevice}, {"num_workers", RoleWorkers},
		{"optimizer.name", RoleOptimizer}, {"training.optimizer.lr", RoleLearningRate}, {"data.train", RoleTrainSource}, {"split.val", RoleSplitFraction}, {"lr_scheduler.type", RoleScheduler},
		{"model", ""}, {"name", ""}, {"mode", ""}, {"split", ""}, {"checkpoint", ""}, {"checkpoint_path", ""}, {"", ""}, {"-", ""}, {".", ""},
	}
	for _, test := range tests {
		if got := RoleOf(test.name); got != test.want {
			t.Errorf("RoleOf(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

func TestEachNameHasOneRole(t *testing.T) {
	seen := map[string]string{}
	for _, row := range roleNames {
		if _, ok := misfits[row.role]; !ok {
			t.Errorf("%s: no rule for the values it can't have", row.role)
		}
		for _, name := range strings.Fields(row.names) {
			if other, twice := seen[name]; twice {
				t.Errorf("%q means %s and %s", name, other, row.role)
			}
			if seen[name] = row.role; normalName(name) != name {
				t.Errorf("%q is not in its normal form", name)
			}
		}
	}
}

func TestRolesOfArguments(t *testing.T) {
	tests := []struct {
		name, src string
		want      map[string]string // argument to "role" or "reason contains"
	}{
		{"the more specific name wins", `p.add_argument("--lr"); p.add_argument("--learning-rate")`,
			map[string]string{"--lr": "? is taken by --learning-rate, whose name is more specific", "--learning-rate": RoleLearningRate}},
		{"of equal names the first", `p.add_argument("--seed"); q.add_argument("--seed")`, map[string]string{"--seed": "? is taken by --seed, which has the same name"}},
		{"each part has its fraction", `p.add_argument("--val-size", type=float); p.add_argument("--test-size", type=float)`, map[string]string{"--val-size": RoleSplitFraction, "--test-size": RoleSplitFraction}},
		{"dest tells more than the flag", `p.add_argument("--x", dest="epochs")`, map[string]string{"--x": RoleEpochsOrSteps}},
		{"any of the flags may tell", `p.add_argument("--b", "--batch-size")`, map[string]string{"--b": RoleBatchSize}},
		{"a switch is no file", `p.add_argument("--train", action="store_true")`, map[string]string{"--train": "?but it takes no value"}},
		{"a number is no file", `p.add_argument("--val", type=float, default=0.1)`, map[string]string{"--val": "?but it takes a number"}},
		{"a list is no checkpoint", `p.add_argument("--weights", nargs="+")`, map[string]string{"--weights": "?but it takes a list"}},
		{"a text is no fraction", `p.add_argument("--test-split", default="test")`, map[string]string{"--test-split": "?but it takes a text"}},
		{"resume may be a switch", `p.add_argument("--resume", action="store_true")`, map[string]string{"--resume": RoleResume}},
	}
	for _, test := range tests {
		s, _ := newScript("x.py", test.src)
		arguments, _ := s.arguments()
		for _, a := range arguments {
			want := test.want[a.Name]
			if part, ok := strings.CutPrefix(want, "?"); ok {
				if a.Role == "" && !strings.Contains(a.RoleReason, strings.TrimSpace(part)) || a.Role != "" && len(arguments) == 1 {
					t.Errorf("%s: %s has role %q because %q", test.name, a.Name, a.Role, a.RoleReason)
				}
			} else if a.Role != want {
				t.Errorf("%s: %s has role %q (%s), want %q", test.name, a.Name, a.Role, a.RoleReason, want)
			}
		}
	}
}
