package trainer

import (
	"fmt"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// Launch says where and with what a job runs.
type Launch struct {
	Channel     string            `json:"channel,omitempty" jsonschema:"enum=local_direct,enum=local_slurm,enum=ssh_direct,enum=ssh_slurm"`
	Site        string            `json:"site,omitempty"`
	Resources   jobs.Resources    `json:"resources,omitzero"`
	Environment LaunchEnvironment `json:"environment,omitzero"`
	WaitSeconds *int              `json:"wait_seconds,omitempty"`
}

// LaunchEnvironment is what the job's software comes from.
type LaunchEnvironment struct {
	Python    string   `json:"python,omitempty" jsonschema_description:"Interpreter to run with."`
	Modules   []string `json:"modules,omitempty"`
	Conda     string   `json:"conda,omitempty"`
	Container string   `json:"container,omitempty"`
}

func (w *launchWork) launchInput() Launch {
	if w.given.Launch == nil {
		return Launch{}
	}
	return *w.given.Launch
}

// channelServes says whether this build can run the job where it is wanted. A remote intent never falls back to a local
// run.
func (w *launchWork) channelServes() bool {
	in := w.step.Run.Handoff.Inputs.Runtime
	channel := w.launchInput().Channel
	if channel == "" {
		channel = map[string]string{contract.ModeLocalSlurm: contract.ChannelLocalSlurm, contract.ModeRemoteSlurm: contract.ChannelSSHSlurm, contract.ModeRemoteDirect: contract.ChannelSSHDirect}[in.ExecutionMode]
	}
	if channel == "" && in.ExecutionIntent == contract.IntentRunRemote {
		channel = contract.ChannelSSHDirect
	}
	if channel == "" || (channel == contract.ChannelLocalDirect && in.ExecutionIntent != contract.IntentRunRemote) {
		return true
	}
	w.out.Category = jobs.CategoryPlatform
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "channel_unavailable", Severity: finding.Error,
		What:     fmt.Sprintf("the job is wanted on channel %s, which this trainwright does not serve; it was not started anywhere", channel),
		Where:    &finding.Where{Field: "step_handoff.inputs.runtime.execution_mode"},
		Expected: "local_direct", Remedy: "runtime_request.json is complete: run it there by hand, or ask the user whether a local run will do and start a run with execution_intent run_local"})
	w.out.Blockers = append(w.out.Blockers, "channel "+channel)
	w.out.Check("channel", false, "the channel is served")
	w.out.Summary = "not started: channel " + channel + " is not served"
	return false
}

// environmentServes refuses what a launch asks for and this build would silently leave out.
func (w *launchWork) environmentServes() bool {
	launch := w.launchInput()
	for field, asked := range map[string]bool{"launch.environment.conda": launch.Environment.Conda != "", "launch.environment.container": launch.Environment.Container != "",
		"launch.environment.modules": len(launch.Environment.Modules) > 0, "launch.site": launch.Site != "" && launch.Site != "local"} {
		if asked {
			w.out.Findings = append(w.out.Findings, finding.Finding{Code: "launch_unsupported", Severity: finding.Error, What: field + " is not served on channel local_direct; the job was not started",
				Where: &finding.Where{Field: field}, Expected: "an interpreter in launch.environment.python", Remedy: "name the environment's own python there and leave this out"})
			w.out.Blockers = append(w.out.Blockers, field)
			w.out.Summary = "not started: " + field + " is not served"
		}
	}
	return len(w.out.Blockers) == 0
}
