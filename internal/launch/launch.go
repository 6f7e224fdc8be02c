package launch

import (
	"github.com/trainwright/trainwright/internal/jobs"
)

// Launch says where and with what a job runs.
type Launch struct {
	Channel     string         `json:"channel,omitempty" jsonschema:"enum=local_direct,enum=local_slurm,enum=ssh_direct,enum=ssh_slurm"`
	Site        string         `json:"site,omitempty"`
	Resources   jobs.Resources `json:"resources,omitzero"`
	Environment Environment    `json:"environment,omitzero"`
	WaitSeconds *int           `json:"wait_seconds,omitempty"`
}

// Environment is what the job's software comes from.
type Environment struct {
	Python    string   `json:"python,omitempty" jsonschema_description:"Interpreter to run with."`
	Modules   []string `json:"modules,omitempty"`
	Conda     string   `json:"conda,omitempty"`
	Container string   `json:"container,omitempty"`
}
