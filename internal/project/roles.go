package project

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The roles that RoleOf knows. A role is a field of the training request (contracts.md) where there is one, else a name of
// the same shape that the rest of trainwright uses.
const (
	RoleTrainSource   = "data.train_source"
	RoleValSource     = "data.val_source"
	RoleTestSource    = "data.test_source"
	RoleDataSource    = "data.source" // one file that the script splits by itself
	RoleDataDir       = "data.dir"
	RoleTarget        = "data.target"
	RoleID            = "data.id"
	RoleGroup         = "data.group"
	RoleTime          = "data.time"
	RoleFeatures      = "data.features"
	RoleSplitSeed     = "split.seed"
	RoleSplitFraction = "split.fractions" // several arguments may have it: one for each part
	RolePatience      = "training.extra.patience"
	RoleOptimizer     = "training.optimizer"
	RoleLearningRate  = "training.extra.learning_rate"
	RoleWeightDecay   = "training.extra.weight_decay"
	RoleMomentum      = "training.extra.momentum"
	RoleClipNorm      = "training.extra.clip_norm"
	RoleSeed          = "training.extra.seed"
	RoleLoss          = "training.extra.loss"
	RoleScheduler     = "training.scheduler"
	RoleBatchSize     = "training.batch_size"
	RoleEpochsOrSteps = "training.epochs_or_steps"
	RolePrecision     = "training.precision"
	RoleDistributed   = "training.distributed_mode"
	RoleResume        = "checkpoint.resume_checkpoint"
	RoleInit          = "checkpoint.init_checkpoint"
	RoleFinetune      = "checkpoint.finetune_checkpoint"
	RoleCheckpointDir = "checkpoint.dir"
	RoleEveryEpochs   = "checkpoint.every_epochs"
	RoleKeep          = "checkpoint.keep"
	RoleOutputDir     = "output.dir"
	RoleLogDir        = "output.log_dir"
	RoleMetrics       = "output.metrics"
	RolePredictions   = "output.predictions"
	RoleSummary       = "output.summary"
	RoleConfigPath    = "config.path"
	RoleDevice        = "runtime.device"
	RoleWorkers       = "runtime.workers"
)

// roleNames is the table: for each role the normalised names that mean it, the most specific first. Names that mean
// different things in different scripts (model, name, type, split, mode, size) are left out on purpose: no role is better
// than a wrong one.
var roleNames = []struct{ role, names string }{
	{RoleTrainSource, "train_source train_data_path train_dataset_path train_csv train_file train_path train_data train_dataset train_set trainset data_train training_data training_file train_json train_jsonl train_parquet train"},
	{RoleValSource, "val_source val_data_path valid_data_path validation_data_path val_csv dev_csv valid_csv validation_csv val_file valid_file validation_file dev_file eval_file val_path valid_path validation_path val_data valid_data validation_data dev_data eval_data val_dataset valid_dataset validation_dataset eval_dataset val_set valset data_val data_valid validation valid val dev"},
	{RoleTestSource, "test_source test_data_path test_csv holdout_csv holdout_file holdout_data test_file test_path test_data test_dataset test_set testset data_test test"},
	{RoleDataSource, "data_source data_file data_path data_csv dataset_path dataset_file csv_path csv_file input_csv input_file input_path input_data csv dataset data input"},
	{RoleDataDir, "data_dir data_directory dataset_dir data_folder data_root dataset_root input_dir datadir"},
	{RoleTarget, "target_column target_col target_name label_column label_col label_name target_variable target label"},
	{RoleID, "id_column id_col sample_id_column id_field sample_id"},
	{RoleGroup, "group_column group_col group_by group_field group"},
	{RoleTime, "time_column time_col date_column date_col timestamp_column time_field timestamp"},
	{RoleFeatures, "feature_columns feature_cols feature_names input_columns input_features features"},
	{RoleSplitSeed, "split_seed split_random_state split_random_seed"},
	{RoleSplitFraction, "val_fraction valid_fraction validation_fraction test_fraction train_fraction val_ratio valid_ratio validation_ratio test_ratio train_ratio val_split valid_split validation_split test_split train_split val_size valid_size validation_size test_size train_size val_frac test_frac train_frac split_ratio split_fractions split_ratios fractions_train fractions_val fractions_test split_train split_val split_test"},
	{RolePatience, "early_stopping_patience early_stop_patience es_patience patience"},
	{RoleOptimizer, "optimizer_name optimizer_type optim_name optim_type optimizer optimiser optim opt"},
	{RoleLearningRate, "learning_rate learningrate base_learning_rate base_lr initial_lr init_lr max_lr lr"},
	{RoleWeightDecay, "weight_decay weightdecay l2_regularization wd"},
	{RoleMomentum, "momentum sgd_momentum"},
	{RoleClipNorm, "clip_grad_norm max_grad_norm grad_clip_norm gradient_clip_val gradient_clip_norm clip_norm grad_norm_clip max_norm grad_clip gradient_clip clip_grad gradient_clipping clip"},
	{RoleSeed, "random_seed manual_seed global_seed rng_seed random_state seed"},
	{RoleLoss, "loss_function loss_fn loss_name loss_type criterion loss objective"},
	{RoleScheduler, "lr_scheduler_type lr_scheduler scheduler_name scheduler_type learning_rate_scheduler lr_schedule scheduler schedule sched"},
	{RoleBatchSize, "train_batch_size per_device_train_batch_size batch_size_train micro_batch_size batch_size batchsize batch bs"},
	{RoleEpochsOrSteps, "num_train_epochs num_epochs n_epochs max_epochs nepochs training_epochs train_epochs epochs max_train_steps num_train_steps max_steps num_steps n_steps train_steps total_steps steps max_iterations max_iter num_iterations n_iterations max_iters iterations iters"},
	{RolePrecision, "mixed_precision train_precision precision amp_dtype dtype amp fp16 bf16"},
	{RoleDistributed, "distributed_mode distributed_strategy distributed_backend distributed ddp"},
	{RoleResume, "resume_from_checkpoint resume_checkpoint resume_from resume_path resume_ckpt ckpt_resume auto_resume continue_from resume"},
	{RoleInit, "init_checkpoint init_from_checkpoint initial_checkpoint init_from init_weights pretrained_weights pretrained_checkpoint pretrained_path pretrained_model_path pretrained_ckpt pretrained load_weights weights init"},
	{RoleFinetune, "finetune_checkpoint finetune_from fine_tune_from fine_tune_checkpoint finetune_ckpt finetune fine_tune"},
	{RoleCheckpointDir, "checkpoint_dir checkpoints_dir ckpt_dir checkpoint_directory checkpoint_folder checkpoints"},
	{RoleEveryEpochs, "checkpoint_every_epochs save_every_epochs checkpoint_every save_every_n_epochs save_every save_freq save_interval checkpoint_interval checkpoint_freq"},
	{RoleKeep, "keep_checkpoints keep_last_checkpoints save_total_limit max_checkpoints keep_last save_top_k"},
	{RoleOutputDir, "output_dir output_directory out_dir outdir save_dir savedir results_dir result_dir work_dir workdir experiment_dir exp_dir run_dir output_path output_folder output out"},
	{RoleLogDir, "log_dir logdir logging_dir log_path tensorboard_dir logs"},
	{RoleMetrics, "metrics_file metrics_path metrics_out metrics_output metrics_jsonl metrics_json metrics"},
	{RolePredictions, "predictions_file predictions_path predictions_out prediction_file predictions_output predictions"},
	{RoleSummary, "summary_file summary_path summary_out summary_json summary"},
	{RoleConfigPath, "config_path config_file cfg_path cfg_file yaml_config config cfg"},
	{RoleDevice, "device accelerator"},
	{RoleWorkers, "num_workers n_workers dataloader_num_workers num_data_workers data_workers workers"},
}

// namedRole is a role and how specific the name that means it is: 0 is the most specific.
type namedRole struct {
	role string
	rank int
	name string
}

var rolesByName = indexRoles()

func indexRoles() map[string]namedRole {
	index := map[string]namedRole{}
	for _, row := range roleNames {
		for rank, name := range strings.Fields(row.names) {
			index[name] = namedRole{row.role, rank, name}
		}
	}
	// "optimizer: {name: adam}" and "scheduler: {type: cosine}" are keys of configurations.
	for _, role := range []string{RoleOptimizer, RoleScheduler, RoleLoss} {
		last := role[strings.LastIndex(role, ".")+1:]
		index[last+"_name"] = cmp.Or(index[last+"_name"], namedRole{role, 0, last + "_name"})
		index[last+"_type"] = cmp.Or(index[last+"_type"], namedRole{role, 0, last + "_type"})
	}
	return index
}

// RoleOf returns the role that an argument's or a configuration key's name means, or "". Dashes, case and camelCase do not
// matter; of a dotted key the last two parts together are tried first ("data.train" is "data_train"), then the last one.
func RoleOf(name string) string { return roleOf(name).role }

func roleOf(name string) namedRole {
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = normalName(parts[i])
	}
	last := parts[len(parts)-1]
	if len(parts) > 1 {
		if role, ok := rolesByName[parts[len(parts)-2]+"_"+last]; ok {
			return role
		}
	}
	return rolesByName[last]
}

// normalName lowers a name, splits camelCase and turns dashes and spaces into underscores.
func normalName(name string) string {
	var out strings.Builder
	previous := rune(0)
	for _, c := range strings.TrimLeft(strings.TrimSpace(name), "-") {
		if unicode.IsUpper(c) && (unicode.IsLower(previous) || unicode.IsDigit(previous)) {
			out.WriteByte('_')
		}
		if c == '-' || c == ' ' {
			c = '_'
		}
		out.WriteRune(unicode.ToLower(c))
		previous = c
	}
	return out.String()
}

// role finds an argument's role by its dest, then by its flags.
func (a *Argument) role() namedRole {
	for _, name := range append([]string{a.Dest}, a.Flags...) {
		if found := roleOf(name); found.role != "" {
			return found
		}
	}
	return namedRole{}
}

// claim is one bearer of a name that means a role.
type claim struct {
	namedRole
	scope  string // a role is given once in each scope
	depth  int    // of a configuration key: the shallower one wins
	label  string
	role   *string
	reason *string
}

// assignRoles gives each role to the argument with the most specific name, once for each subcommand; of equal names the
// first one has it.
func assignRoles(arguments []Argument) {
	var claims []claim
	for i := range arguments {
		a := &arguments[i]
		if found := a.role(); found.fits(a.shape(), &a.RoleReason) {
			claims = append(claims, claim{found, a.Subcommand, 0, a.Name, &a.Role, &a.RoleReason})
		}
	}
	settle(claims, true)
}

// assignConfigRoles does the same for a configuration file; of equal names the one less deep has it, and of equally deep
// ones none.
func assignConfigRoles(values []ConfigValue) {
	var claims []claim
	for i := range values {
		v := &values[i]
		if strings.HasPrefix(v.Key, "defaults.") { // Hydra's list of what else is read
			continue
		}
		if found := roleOf(v.Key); found.fits(shapeOf(v.Value), &v.RoleReason) {
			claims = append(claims, claim{found, "", strings.Count(v.Key, "."), v.Key, &v.Role, &v.RoleReason})
		}
	}
	settle(claims, false)
}

func settle(claims []claim, firstWins bool) {
	groups := map[string][]claim{}
	var order []string
	for _, c := range claims {
		key := c.scope + "\x00" + c.namedRole.role
		if c.namedRole.role == RoleSplitFraction { // one for each part
			key += "\x00" + strconv.Itoa(len(order))
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	for _, key := range order {
		settleGroup(groups[key], firstWins)
	}
}

func settleGroup(group []claim, firstWins bool) {
	slices.SortStableFunc(group, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.depth, b.depth))
	})
	winner := group[0]
	tied := len(group) > 1 && group[1].rank == winner.rank && group[1].depth == winner.depth
	if tied && !firstWins {
		for _, c := range group {
			*c.reason = fmt.Sprintf("%d keys are named %q, so none of them is taken for %s", len(group), c.name, c.namedRole.role)
		}
		return
	}
	*winner.role = winner.namedRole.role
	*winner.reason = fmt.Sprintf("the name %q means %s", winner.name, winner.namedRole.role)
	for _, c := range group[1:] {
		why := "whose name is more specific"
		if c.rank == winner.rank {
			why = "which has the same name and comes first"
			if c.depth > winner.depth {
				why = "which has the same name and is less deep"
			}
		}
		*c.reason = fmt.Sprintf("%s is taken by %s, %s", c.namedRole.role, winner.label, why)
	}
}
