package launch

import (
	"fmt"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

// channelOfMode is the channel that an execution_mode means.
var channelOfMode = map[string]string{contract.ModeLocal: contract.ChannelLocalDirect, contract.ModeLocalSlurm: contract.ChannelLocalSlurm,
	contract.ModeRemoteSlurm: contract.ChannelSSHSlurm, contract.ModeRemoteDirect: contract.ChannelSSHDirect}

// Channel is where a job is wanted: what the launch says, else the handoff's execution_mode, else its intent.
func Channel(in contract.Runtime, l Launch) string {
	switch mode := channelOfMode[in.ExecutionMode]; {
	case l.Channel != "":
		return l.Channel
	case in.ExecutionIntent == contract.IntentRunRemote && (mode == "" || mode == contract.ChannelLocalDirect):
		return contract.ChannelSSHDirect
	case mode != "":
		return mode
	}
	return contract.ChannelLocalDirect
}

// Unserved tells that this build can't run the job where it is wanted (channel_unavailable); nil where it can. A remote
// intent never falls back to a local run.
func Unserved(in contract.Runtime, l Launch) *finding.Finding {
	channel := Channel(in, l)
	remote := in.ExecutionIntent == contract.IntentRunRemote
	if channel == contract.ChannelLocalDirect && !remote {
		return nil
	}
	f := finding.Finding{Code: "channel_unavailable", Severity: finding.Error,
		What:     fmt.Sprintf("the job is wanted on channel %s, which this trainwright does not serve; it was not started anywhere", channel),
		Where:    &finding.Where{Field: "step_handoff.inputs.runtime.execution_mode"},
		Expected: contract.ChannelLocalDirect, Remedy: "runtime_request.json is complete: run it there by hand, or ask the user whether a local run will do and start a run with execution_intent run_local"}
	if l.Channel != "" {
		f.Where.Field = "launch.channel"
	}
	if channel == contract.ChannelLocalDirect {
		f.What = "the handoff's execution_intent is run_remote, which never falls back to a local run; the job was not started anywhere"
		f.Where.Field = "step_handoff.inputs.runtime.execution_intent"
	}
	return &f
}

// Unenforced says which limits of a launch this machine does not hold the job to: nil for none.
func Unenforced(l Launch) *finding.Finding {
	if l.Resources.MemoryMB == 0 && l.Resources.CPUs == 0 {
		return nil
	}
	return &finding.Finding{Code: "limit_not_enforced", Severity: finding.Note, What: "on this machine cpus and memory_mb are compared with what is there before the start; nothing stops a job that takes more",
		Where: &finding.Where{Field: "launch.resources"}, Expected: "a scheduler, where they must hold", Remedy: "nothing has to be done; its peak memory is told when it has ended"}
}

// Unsupported tells of what a launch asks for and this build would silently leave out on local_direct
// (launch_unsupported), one finding for each field.
func Unsupported(l Launch) []finding.Finding {
	var found []finding.Finding
	for _, part := range []struct {
		field string
		asked bool
	}{{"launch.environment.conda", l.Environment.Conda != ""}, {"launch.environment.container", l.Environment.Container != ""},
		{"launch.environment.modules", len(l.Environment.Modules) > 0}, {"launch.site", l.Site != "" && l.Site != "local"}} {
		if part.asked {
			found = append(found, finding.Finding{Code: "launch_unsupported", Severity: finding.Error, What: part.field + " is not served on channel local_direct; the job was not started",
				Where: &finding.Where{Field: part.field}, Expected: "an interpreter in launch.environment.python", Remedy: "name the environment's own python there and leave this out"})
		}
	}
	return found
}
