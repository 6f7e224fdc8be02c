package jobs

import (
	"context"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Runtime runs jobs on one kind of machine. Every method may be called from several processes at once.
type Runtime interface {
	// Discover says what the machine offers.
	Discover(ctx context.Context) (Facilities, []finding.Finding, error)
	// Submit starts the job in folder, once however often it is called, and answers where it stands.
	Submit(ctx context.Context, folder string) (Status, error)
	// Status answers for each folder, in the order given; a folder it can't judge is unknown with a cause.
	Status(ctx context.Context, folders []string) ([]Status, error)
	// Cancel ends the job and everything it started. A finished job answers its state with a note.
	Cancel(ctx context.Context, folder string) (Status, error)
}

// Status is where a job stands, with what says so.
type Status struct {
	JobID    string     `json:"job_id"`
	RunID    string     `json:"run_id,omitempty"`
	State    string     `json:"state"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Cause    *Cause     `json:"cause,omitempty"`
	// PID and StartTicks name the command's process (see StateFile); 0 before it runs.
	PID        int        `json:"pid,omitempty"`
	StartTicks uint64     `json:"start_ticks,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	EndedAt    *time.Time `json:"ended_at,omitempty"`
	// Seconds is how long the command has run, or ran.
	Seconds      float64 `json:"seconds"`
	PeakRSSBytes int64   `json:"peak_rss_bytes,omitempty"`
	Exit         *Exit   `json:"exit,omitempty"`
	Folder       string  `json:"folder"`
	// Command is the argv with its secrets masked.
	Command  []string          `json:"command"`
	Findings []finding.Finding `json:"findings,omitempty"`
}

// Facilities is what a machine offers. Sizes are mebibytes; a size of 0 could not be found out, and a finding says why.
type Facilities struct {
	Host          string   `json:"host"`
	OS            string   `json:"os"`
	Arch          string   `json:"arch"`
	CPUs          int      `json:"cpus"`
	MemoryTotalMB int64    `json:"memory_total_mb"`
	MemoryFreeMB  int64    `json:"memory_free_mb"`
	DiskFreeMB    int64    `json:"disk_free_mb"`
	GPUs          []GPU    `json:"gpus"`
	Pythons       []Python `json:"pythons"`
}

// GPU is one accelerator as nvidia-smi lists it.
type GPU struct {
	Index         int    `json:"index"`
	Name          string `json:"name"`
	MemoryTotalMB int64  `json:"memory_total_mb"`
	MemoryFreeMB  int64  `json:"memory_free_mb"`
	Driver        string `json:"driver,omitempty"`
}

// Python is an interpreter that answered. Why says where it was found.
type Python struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Prefix  string `json:"prefix,omitempty"`
	Why     string `json:"why"`
}
