package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// resources compares what is asked for with what the machine has.
func (p *preflight) resources(ctx context.Context, r *Runtime) {
	need, limits := p.spec.Resources, readQuota("/")
	p.asked("nodes", "nodes_exceeded", "nodes", int64(need.Nodes), 1)
	p.asked("cpus", "cpus_exceeded", "processors", int64(need.CPUs), int64(processors(limits)))
	if need.GPUsPerNode > 0 {
		list, _, err := gpus(ctx, r.environ)
		if err != nil {
			p.unknown("gpus_per_node", err)
		} else {
			p.asked("gpus_per_node", "gpus_exceeded", "GPUs", int64(need.GPUsPerNode), int64(len(list)))
		}
	}
	if need.MemoryMB > 0 {
		total, free, _, err := memory(ctx, limits)
		switch {
		case err != nil:
			p.unknown("memory_mb", err)
		case need.MemoryMB <= total && need.MemoryMB > free:
			p.bad("memory_mb", finding.Finding{Code: "memory_low", Severity: finding.Warning,
				What:  fmt.Sprintf("the job asks for %d MiB, of which %d are free now", need.MemoryMB, free),
				Where: &finding.Where{Field: "resources.memory_mb"}, Expected: "free memory", Remedy: "end other work first, or ask for less"})
		default:
			p.asked("memory_mb", "memory_exceeded", "MiB of memory", need.MemoryMB, total)
		}
	}
	p.disk(ctx)
}

// asked compares one figure of the request with what there is.
func (p *preflight) asked(name, code, unit string, asked, has int64) {
	switch {
	case asked == 0:
	case asked > has:
		p.bad(name, finding.Finding{Code: code, What: fmt.Sprintf("the job asks for %d %s and this machine has %d", asked, unit, has),
			Where: &finding.Where{Field: "resources." + name}, Expected: fmt.Sprintf("at most %d", has), Remedy: "ask for less or run on another site"})
	default:
		p.good(name, "%d of %d %s", asked, has, unit)
	}
}

// disk compares what the job will write with what is free: its checkpoints and the rest.
func (p *preflight) disk(ctx context.Context) {
	need, made := p.spec.NeedDiskMB, fmt.Sprintf("%d MiB", p.spec.NeedDiskMB)
	if p.spec.CheckpointMB > 0 {
		kept := int64(max(1, p.spec.KeptCheckpoints)) + 1
		need += kept * p.spec.CheckpointMB
		made = fmt.Sprintf("%d MiB (%d checkpoints of %d MiB, one of them being written, and %d MiB more)", need, kept, p.spec.CheckpointMB, p.spec.NeedDiskMB)
	}
	if need == 0 {
		return
	}
	directory := existing(p.path(p.spec.OutputDir))
	free, err := diskFree(ctx, directory)
	switch {
	case err != nil:
		p.unknown("disk", err)
	case free < need:
		p.bad("disk", finding.Finding{Code: "disk_low", What: fmt.Sprintf("the job needs %s and %d are free", made, free),
			Where: &finding.Where{Path: directory}, Expected: fmt.Sprintf("%d MiB free", need), Remedy: "free space, keep fewer checkpoints or choose another directory"})
	default:
		p.good("disk", "%s of %d free in %s", made, free, directory)
	}
}

// estimates compares the plan's expectations with what is free.
func (p *preflight) estimates(ctx context.Context, r *Runtime) {
	if p.spec.MemoryEstimateMB > 0 {
		total, free, _, err := memory(ctx, readQuota("/"))
		if err != nil {
			p.unknown("memory_estimate", err)
		} else {
			p.estimate("memory_estimate", p.spec.MemoryEstimateMB, free, total, "of memory")
		}
	}
	if p.spec.GPUMemoryEstimateMB > 0 {
		list, _, err := gpus(ctx, r.environ)
		if err != nil {
			p.unknown("gpu_memory_estimate", err)
			return
		}
		var largest jobs.GPU
		for _, gpu := range list {
			if gpu.MemoryFreeMB > largest.MemoryFreeMB {
				largest = gpu
			}
		}
		p.estimate("gpu_memory_estimate", p.spec.GPUMemoryEstimateMB, largest.MemoryFreeMB, largest.MemoryTotalMB, "on the emptiest GPU")
	}
}

func (p *preflight) estimate(name string, expected, free, total int64, where string) {
	if expected <= free {
		p.good(name, "about %d MiB expected, %d free %s", expected, free, where)
		return
	}
	p.bad(name, finding.Finding{Code: "memory_estimate_exceeds", Severity: finding.Warning,
		What:  fmt.Sprintf("the job is expected to hold about %d MiB; %d of %d MiB %s are free", expected, free, total, where),
		Where: &finding.Where{Field: name}, Expected: fmt.Sprintf("at most %d MiB", free), Remedy: "use a smaller batch or model, end other work, or run on another site"})
}

// checkpoints looks at what the job starts from. What is in them is the checkpoint reader's matter.
func (p *preflight) checkpoints() {
	for _, checkpoint := range p.spec.Checkpoints {
		path := p.path(checkpoint)
		bytes, err := contentOf(path)
		switch {
		case err != nil:
			p.bad("checkpoint:"+checkpoint, finding.Finding{Code: "checkpoint_missing", What: "the checkpoint can't be read: " + err.Error(),
				Where: &finding.Where{Path: path}, Expected: "a readable checkpoint", Remedy: "bring it there or correct the path"})
		case bytes == 0:
			p.bad("checkpoint:"+checkpoint, finding.Finding{Code: "checkpoint_empty", What: "the checkpoint holds no byte",
				Where: &finding.Where{Path: path}, Expected: "a complete checkpoint", Remedy: "name an earlier one, or start from scratch"})
		default:
			p.good("checkpoint:"+checkpoint, "%s, %d bytes", path, bytes)
		}
	}
}

// contentOf opens a checkpoint and adds up its bytes: a sharded one is a folder of files.
func contentOf(path string) (bytes int64, err error) {
	if bytes, err = readable(path); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return bytes, err
	}
	bytes = 0
	err = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}

// unknown records what could not be compared: no reason to stop, and said all the same.
func (p *preflight) unknown(name string, err error) {
	p.bad(name, finding.Finding{Code: "facility_unknown", Severity: finding.Warning, What: name + " can't be compared: " + err.Error(),
		Where: &finding.Where{Field: "resources." + name}, Expected: "an answer of the system", Remedy: "go on; the job fails if there is not enough"})
}
