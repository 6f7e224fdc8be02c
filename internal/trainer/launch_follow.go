package trainer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
)

// firstPause is how long after its start a job is looked at first.
const firstPause = 40 * time.Millisecond

// wait follows the job to its end or to the end of the call's patience, telling the caller of every new metric.
func (w *launchWork) wait(ctx context.Context, job *jobs.Entry) error {
	deadline := time.Now().Add(w.step.Wait)
	follower := metrics.NewFollower(filepath.Join(w.step.Run.CodeSaveDir, "outputs", "metrics.jsonl"))
	pause := firstPause
	for {
		status, err := w.p.t.Runtime.Status(ctx, []string{job.Folder})
		if err != nil {
			return err
		}
		w.tell(follower)
		state := status[0].State
		if jobs.Over(state) {
			next, err := w.retry(ctx, job, status[0])
			if err != nil {
				return err
			}
			if next == nil {
				return w.finish(job, status[0])
			}
			job, pause = next, firstPause
			continue
		}
		if !time.Now().Before(deadline) {
			w.out.Job = &engine.JobHandle{JobID: job.JobID, State: state}
			w.out.Summary = fmt.Sprintf("job %s is %s after %.0f s", job.JobID, state, status[0].Seconds)
			w.out.Next = &engine.NextCall{Tool: w.step.Run.Skill.Walker, Arguments: map[string]any{"run_id": w.step.Run.ID, "wait_seconds": 300}}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, time.Until(deadline)+time.Millisecond)):
		}
		pause = min(pause*5/4, 500*time.Millisecond)
	}
}

// tell passes the newest values on as progress.
func (w *launchWork) tell(follower *metrics.Follower) {
	points, err := follower.Poll()
	if err != nil || len(points) == 0 {
		return
	}
	last := map[string]metrics.Point{}
	var order []string
	for _, p := range points {
		if key := p.Key().String(); !slices.Contains(order, key) {
			order = append(order, key)
		}
		last[p.Key().String()] = p
	}
	var epoch float64
	parts := []string{}
	for _, key := range order {
		p := last[key]
		if p.Epoch != nil {
			epoch = *p.Epoch
		}
		parts = append(parts, key+" "+pointText(p))
	}
	total, _ := asFloat(w.plan.Leaves["epochs"].Value)
	w.step.Caller.Progress(engine.Progress{Phase: w.p.Name(), Done: epoch, Total: total, Message: fmt.Sprintf("epoch %g/%g: %s", epoch, total, strings.Join(parts[:min(4, len(parts))], ", "))})
}
