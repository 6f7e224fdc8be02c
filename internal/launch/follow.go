package launch

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

// metricsName is the file in which a training script leaves its metrics (formats.md).
const metricsName = "metrics.jsonl"

// wait follows the job to its end or to the end of the call's patience, and judges it where it has ended.
func (e *errand) wait(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	told := e.teller()
	for pause := 40 * time.Millisecond; ; pause = min(pause*5/4, 500*time.Millisecond) {
		status, err := e.c.Runtime.Status(ctx, []string{e.folder})
		if err != nil {
			return err
		}
		told.tell(status[0])
		if jobs.Over(status[0].State) {
			return e.finish(status[0])
		}
		if !time.Now().Before(deadline) {
			e.underWay(status[0])
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, time.Until(deadline)+time.Millisecond)):
		}
	}
}

// teller passes on how far a job is: its newest metrics where it writes any, else the seconds it has run, of its limit.
type teller struct {
	caller   engine.Caller
	follower *metrics.Follower
	limit    float64
	second   int // the last one that was told
}

func (e *errand) teller() *teller {
	t := &teller{caller: e.caller, limit: float64(e.ask().WallTimeSeconds), second: -1}
	for _, pattern := range e.order.ExpectedOutputs {
		if filepath.Base(pattern) == metricsName {
			t.follower = metrics.NewFollower(e.file(pattern))
		}
	}
	return t
}

func (t *teller) tell(status jobs.Status) {
	news := t.news()
	if news == "" && int(status.Seconds) == t.second {
		return
	}
	t.second = int(status.Seconds)
	message := fmt.Sprintf("job %s %s, %d s", status.JobID, status.State, t.second)
	if news != "" {
		message += ": " + news
	}
	t.caller.Progress(engine.Progress{Phase: phaseName, Message: message, Done: status.Seconds, Total: t.limit})
}

// news are the newest values of the metrics that came since the last time, four at most.
func (t *teller) news() string {
	if t.follower == nil {
		return ""
	}
	points, err := t.follower.Poll()
	if err != nil {
		return ""
	}
	last := map[string]metrics.Point{}
	var order []string
	for _, p := range points {
		key := p.Key().String()
		if _, known := last[key]; !known {
			order = append(order, key)
		}
		last[key] = p
	}
	slices.Sort(order)
	parts := []string{}
	for _, key := range order[:min(4, len(order))] {
		parts = append(parts, fmt.Sprintf("%s %v", key, last[key].Plain()))
	}
	return strings.Join(parts, ", ")
}
