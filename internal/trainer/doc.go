// Package trainer is the skill onescience-trainer: the seven phases from a step_handoff to a validated training run.
//
// Each phase_N_name.go holds a phase's inputs, its gate and the order of its calls; the work itself is done in the rooms
// below (project, dataset, jobs, metrics, …). Phases speak to each other only through files of the run.
package trainer
