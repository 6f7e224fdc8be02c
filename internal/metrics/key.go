package metrics

import (
	"strings"
	"unicode"
)

// Key names a series. Split is train, val, test, another word the script used, or "" where the script gave none.
type Key struct {
	Split string `json:"split,omitempty"`
	Name  string `json:"name"`
}

// separators part a split from a name: val_loss, val/loss, val-loss, val.loss, val:loss, "val loss".
const separators = "/_-.: "

// splitAliases are the words that name a split at the front of a key or in a row's split field. eval is validation, as
// in the Hugging Face Trainer and Keras' evaluate during fit.
var splitAliases = map[string]string{
	"train": "train", "training": "train", "trn": "train",
	"val": "val", "valid": "val", "validation": "val", "vali": "val", "eval": "val", "evaluation": "val", "dev": "val",
	"test": "test", "testing": "test", "tst": "test", "holdout": "test",
}

// splitSuffixes are the words that name a split at the end of a key (TensorBoard's "Loss/train"). dev and eval are
// not among them: std_dev is not the deviation of a validation set.
var splitSuffixes = map[string]bool{
	"train": true, "training": true, "val": true, "valid": true, "validation": true, "test": true,
}

// nameAliases map the names of scikit-learn, Keras, PyTorch Lightning and common scripts to one. Right-hand sides are
// not keys themselves, so that a name is the same after one pass and two. A name that could mean two things (f1, cross_entropy, l2) stays what it is.
var nameAliases = map[string]string{
	"acc": "accuracy", "acc1": "accuracy", "acc@1": "accuracy", "top1": "accuracy", "top1_acc": "accuracy",
	"top1_accuracy": "accuracy", "top_1_accuracy": "accuracy", "accuracy_score": "accuracy", "categorical_accuracy": "accuracy",
	"sparse_categorical_accuracy": "accuracy", "binary_accuracy": "accuracy",
	"root_mean_squared_error": "rmse", "root_mean_square_error": "rmse",
	"mean_squared_error": "mse", "mean_square_error": "mse", "mean_absolute_error": "mae",
	"mean_absolute_percentage_error": "mape",
	"r2_score":                       "r2", "r_squared": "r2", "r^2": "r2", "r²": "r2", "rsquared": "r2", "coefficient_of_determination": "r2",
	"f1_score": "f1", "f1score": "f1", "macro_f1": "f1_macro", "f1macro": "f1_macro", "f1_score_macro": "f1_macro",
	"macro_f1_score": "f1_macro", "weighted_f1": "f1_weighted", "f1_score_weighted": "f1_weighted", "weighted_f1_score": "f1_weighted",
	"macro_precision": "precision_macro", "macro_recall": "recall_macro",
	"weighted_precision": "precision_weighted", "weighted_recall": "recall_weighted",
	"precision_score": "precision", "recall_score": "recall",
	"log_loss": "logloss", "learning_rate": "lr", "ppl": "perplexity",
}

// ParseKey reads a metric's name as scripts and people write it: val_loss, val/loss, "test accuracy", eval_loss,
// train-loss, Loss/train, acc. Case does not matter. One split word is taken, from the front else from the end.
func ParseKey(s string) Key {
	text := strings.Trim(folded(s), separators)
	if i := strings.IndexAny(text, separators); i > 0 {
		if split, ok := splitAliases[text[:i]]; ok {
			return Key{Split: split, Name: canonicalName(text[i:])}
		}
		if j := strings.LastIndexAny(text, separators); splitSuffixes[text[j+1:]] {
			return Key{Split: splitAliases[text[j+1:]], Name: canonicalName(text[:j])}
		}
	}
	return Key{Name: canonicalName(text)}
}

// rowKey is the key of a value whose row states a split: it goes before one in the name, which is only taken off when
// both say the same.
func rowKey(split, name string) Key {
	parsed := ParseKey(name)
	split = canonicalSplit(split)
	if split == "" || parsed.Split == split {
		return parsed
	}
	if parsed.Split == "" {
		return Key{Split: split, Name: parsed.Name}
	}
	return Key{Split: split, Name: canonicalName(folded(name))}
}

// folded is text in lower case with plain blanks for white space and control characters.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return unicode.ToLower(r)
	}, strings.ToValidUTF8(text, "_"))
}

// canonicalSplit is the one word for a split; a word that no table knows is kept in lower case.
func canonicalSplit(split string) string {
	word := strings.ToLower(strings.TrimSpace(split))
	if known, ok := splitAliases[word]; ok {
		return known
	}
	return word
}

// canonicalName folds separators to _ (a slash stays: "loss/kl") and replaces aliases.
func canonicalName(text string) string {
	text = strings.Trim(text, separators)
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("_-.: ", r) })
	name := strings.Join(parts, "_")
	if known, ok := nameAliases[name]; ok {
		return known
	}
	return name
}

// String writes the key as split/name, or the name alone.
func (k Key) String() string {
	if k.Split == "" {
		return k.Name
	}
	return k.Split + "/" + k.Name
}
