package project

import "fmt"

// shape is what kind of value an argument or a configuration key takes, as far as its declaration tells.
type shape string

const (
	shapeUnknown shape = ""
	shapeFlag    shape = "no value, it is a switch"
	shapeNumber  shape = "a number"
	shapeText    shape = "a text"
	shapeList    shape = "a list"
)

func shapeOf(value any) shape {
	switch value.(type) {
	case bool:
		return shapeFlag
	case int64, float64:
		return shapeNumber
	case string:
		return shapeText
	case []any:
		return shapeList
	}
	return shapeUnknown
}

// shape of an argument: the switch, the declared type, then the default.
func (a *Argument) shape() shape {
	switch {
	case a.IsFlag || a.Type == "bool":
		return shapeFlag
	case a.Nargs != "" && a.Nargs != "?" && a.Nargs != "1":
		return shapeList
	case a.Type == "int" || a.Type == "float":
		return shapeNumber
	}
	return shapeOf(a.Default)
}

// misfits lists for each role the shapes that contradict its meaning: `--train` as a switch is no data file, `weights: [1, 2]`
// no checkpoint, `metrics: [rmse]` no output file.
var misfits = func() map[string][]shape {
	table := map[string][]shape{RoleSplitFraction: {shapeFlag, shapeText}, RoleDevice: {shapeFlag, shapeList},
		RolePrecision: {shapeList}, RoleDistributed: {shapeNumber, shapeList}}
	for _, role := range []string{RoleLearningRate, RoleWeightDecay, RoleMomentum, RoleClipNorm, RoleSeed, RoleSplitSeed, RoleBatchSize,
		RoleEpochsOrSteps, RoleEveryEpochs, RoleKeep, RoleWorkers, RolePatience} {
		table[role] = []shape{shapeFlag, shapeList}
	}
	for _, role := range []string{RoleTrainSource, RoleValSource, RoleTestSource, RoleDataSource, RoleDataDir, RoleFeatures} {
		table[role] = []shape{shapeFlag, shapeNumber}
	}
	for _, role := range []string{RoleTarget, RoleID, RoleGroup, RoleTime, RoleOptimizer, RoleLoss, RoleScheduler, RoleCheckpointDir,
		RoleOutputDir, RoleLogDir, RoleMetrics, RolePredictions, RoleSummary, RoleConfigPath} {
		table[role] = []shape{shapeFlag, shapeNumber, shapeList}
	}
	for _, role := range []string{RoleResume, RoleInit, RoleFinetune} { // as switches they say that it happens
		table[role] = []shape{shapeNumber, shapeList}
	}
	return table
}()

// fits reports whether a value of this shape can have the role; where it can't, reason says so.
func (r namedRole) fits(s shape, reason *string) bool {
	if r.role == "" {
		return false
	}
	for _, bad := range misfits[r.role] {
		if bad == s {
			*reason = fmt.Sprintf("the name %q means %s, but it takes %s", r.name, r.role, s)
			return false
		}
	}
	return true
}
