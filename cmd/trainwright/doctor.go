package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	OK        bool              `json:"ok"`
	Version   string            `json:"version"`
	Machine   local.Survey      `json:"machine"`
	Workspace workspaceState    `json:"workspace"`
	Checks    []local.Check     `json:"checks"`
	Findings  []finding.Finding `json:"findings"`
}

// workspaceState is what the workspace holds.
type workspaceState struct {
	Path   string         `json:"path"`
	Runs   int            `json:"runs"`
	Jobs   map[string]int `json:"jobs"` // by state
	Skills int            `json:"skills"`
}

func doctorCommand(s *settings, t terminal) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Say what this machine and this workspace offer to a run", Args: cobra.NoArgs,
		Long: "Looks at processors, memory, GPUs, disk, Python environments, the workspace with its runs and jobs, and tells what each\n" +
			"answer rests on. It starts interpreters and vendors' tools to ask them, runs no code of the project and changes nothing but a\n" +
			"probe file that it removes.\n\n" +
			"Exit code: 0 a job can run here, 1 it can't, 2 the workspace can't be used.",
		Example: "  trainwright doctor\n  trainwright doctor --json | jq .machine.environments",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := interruptible(c.Context())
			defer stop()
			d, err := examine(ctx, s.open())
			if err != nil {
				return refused(t, err)
			}
			if asJSON {
				err = printJSON(t.out, d)
			} else {
				err = d.print(t.out)
			}
			if err == nil && !d.OK {
				err = exit(exitFailed)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	return c
}

// examine looks at machine and workspace.
func examine(ctx context.Context, w *workspace) (diagnosis, error) {
	d := diagnosis{Version: version(), Checks: []local.Check{}, Findings: []finding.Finding{}}
	t, err := w.trainer()
	if err != nil {
		return d, err
	}
	survey, found, err := t.Runtime.Survey(ctx)
	if err != nil {
		return d, err
	}
	d.Machine = survey
	d.take(found)
	folder := t.Engine.Roots.Workspace()
	d.Workspace = workspaceState{Path: folder, Jobs: map[string]int{}, Skills: len(t.Library.List(""))}
	d.take(w.skillFindings())
	report, found, err := t.Runtime.Preflight(ctx, local.PreflightSpec{WorkDir: folder, OutputDir: folder})
	if err != nil {
		return d, err
	}
	d.take(found)
	for _, check := range report.Checks {
		if check.Name == "output_dir" {
			check.Name = "workspace"
		}
		d.Checks = append(d.Checks, check)
	}
	d.checkSystem()
	return d, d.count(ctx, folder, t.Runtime, t.JobRoots)
}

// take adds findings, each once.
func (d *diagnosis) take(found []finding.Finding) {
	for _, f := range found {
		known := false
		for _, other := range d.Findings {
			known = known || other.Code == f.Code && other.What == f.What
		}
		if !known {
			d.Findings = append(d.Findings, f)
		}
	}
	d.OK = !finding.Has(d.Findings, finding.Error)
}

// checkSystem tells what jobs run with, and where they can't be run at all.
func (d *diagnosis) checkSystem() {
	if len(d.Machine.Pythons) == 0 {
		d.Checks = append(d.Checks, local.Check{Name: "python", Evidence: "no interpreter answered"})
		d.OK = false
	} else {
		p := d.Machine.Pythons[0]
		d.Checks = append(d.Checks, local.Check{Name: "python", OK: true, Evidence: fmt.Sprintf("%s, version %s, %s", p.Path, p.Version, p.Why)})
	}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		d.Checks = append(d.Checks, local.Check{Name: "supervisor", OK: true, Evidence: "jobs can be supervised on " + runtime.GOOS})
		return
	}
	d.Checks = append(d.Checks, local.Check{Name: "supervisor", Evidence: "jobs can't be supervised on " + runtime.GOOS + "; plans and code can be made here"})
	d.OK = false
}

// count looks at the runs and the jobs of the workspace.
func (d *diagnosis) count(ctx context.Context, folder string, r jobs.Runtime, roots func() ([]string, error)) error {
	runs, found, err := rundir.Index{Workspace: folder}.List()
	if err != nil {
		return err
	}
	d.Workspace.Runs = len(runs)
	d.take(found)
	where, err := roots()
	if err != nil {
		return err
	}
	entries, found := jobs.List(where)
	d.take(found)
	folders := make([]string, len(entries))
	for i, entry := range entries {
		folders[i] = entry.Folder
	}
	states, err := r.Status(ctx, folders)
	for _, status := range states {
		d.Workspace.Jobs[status.State]++
	}
	return err
}

// print writes the diagnosis for a person.
func (d *diagnosis) print(out io.Writer) error {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	m := d.Machine
	say("trainwright %s on %s (%s/%s)", d.Version, m.Host, m.OS, m.Arch)
	say("\nMachine")
	say("  processors   %d", m.CPUs)
	say("  memory       %d MiB, %d free", m.MemoryTotalMB, m.MemoryFreeMB)
	say("  disk         %d MiB free", m.DiskFreeMB)
	if len(m.GPUs) == 0 {
		say("  GPU          none")
	}
	for _, gpu := range m.GPUs {
		say("  GPU %-8d %s, %d MiB, %d free, driver %s", gpu.Index, gpu.Name, gpu.MemoryTotalMB, gpu.MemoryFreeMB, gpu.Driver)
	}
	say("\nPython, in the order of preference")
	for _, e := range m.Environments {
		mark := " "
		if e.Chosen {
			mark = "*"
		}
		line := fmt.Sprintf("%s %s %s (%s): %s", mark, e.Path, e.Version, e.Kind, e.Why)
		if e.Problem != "" {
			line += "; " + e.Problem
		}
		say("%s", line)
	}
	say("\nWorkspace %s", d.Workspace.Path)
	say("  %d runs, %s, %d skills", d.Workspace.Runs, jobCounts(d.Workspace.Jobs), d.Workspace.Skills)
	say("\nChecks")
	for _, check := range d.Checks {
		word := "ok"
		if !check.OK {
			word = "NO"
		}
		say("  %-3s %-12s %s", word, check.Name, check.Evidence)
	}
	if len(d.Findings) > 0 {
		say("\nFindings")
	}
	for _, f := range d.Findings {
		say("  %s: %s", f.Severity, f)
	}
	say("\nWhat this rests on")
	for _, e := range m.Evidence {
		say("  %s: %s", e.From, e.Says)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func jobCounts(counts map[string]int) string {
	total, parts := 0, []string{}
	for _, state := range []string{jobs.StateQueued, jobs.StateRunning, jobs.StateSucceeded, jobs.StateFailed, jobs.StateCancelled, jobs.StateTimeout, jobs.StateUnknown} {
		if n := counts[state]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if total == 0 {
		return "0 jobs"
	}
	return fmt.Sprintf("%d jobs (%s)", total, strings.Join(parts, ", "))
}
