package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	gopsutil "github.com/shirou/gopsutil/v4/process"
	"gopkg.in/yaml.v3"
)

// starting measures the time from the start of a process to its first answer, and what it holds when idle.
func starting(ctx context.Context, all []contestant, measured []figures) error {
	times := make([][]time.Duration, len(all))
	for range starts {
		for i, c := range all {
			began := time.Now()
			p, err := start(ctx, c.stdio)
			if err != nil {
				return err
			}
			_, err = p.ask(hello)
			times[i] = append(times[i], time.Since(began))
			p.end()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for i, c := range all {
		measured[i].start = spreadOf(times[i]).p50
		p, err := connected(ctx, c.stdio)
		if err != nil {
			return err
		}
		_, err = p.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if err == nil {
			time.Sleep(settledAfter) // idle is what is measured
			measured[i].memory, err = resident(p.cmd.Process.Pid)
		}
		p.end()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func resident(pid int) (float64, error) {
	p, err := gopsutil.NewProcess(int32(pid))
	if err != nil {
		return 0, err
	}
	held, err := p.MemoryInfo()
	if err != nil {
		return 0, err
	}
	return float64(held.RSS) / 1e6, nil
}

// fast is a call that has nothing to wait for.
func (c contestant) fast(id int) string {
	if c.tools == 3 {
		return call(id, "echo", map[string]any{"text": "a short text, as tools get it"})
	}
	return call(id, "run_list", map[string]any{})
}

// talking measures calls and lists over stdio, one after another, in rounds that go around.
func talking(ctx context.Context, all []contestant, measured []figures) error {
	calls, lists, servers := make([][]time.Duration, len(all)), make([][]time.Duration, len(all)), make([]*process, len(all))
	defer func() {
		for _, p := range servers {
			if p != nil {
				p.end()
			}
		}
	}()
	for round := range rounds + 1 { // the first one warms up
		for i, c := range all {
			var err error
			if servers[i] == nil {
				if servers[i], err = connected(ctx, c.stdio); err != nil {
					return err
				}
			}
			timed := func(into *[]time.Duration, line string) error {
				began := time.Now()
				_, err := servers[i].ask(line)
				if round > 0 {
					*into = append(*into, time.Since(began))
				}
				return err
			}
			for n := 0; n < callsARound && err == nil; n++ {
				err = timed(&calls[i], c.fast(n))
			}
			for n := 0; n < listsARound && err == nil; n++ {
				err = timed(&lists[i], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, n))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for i := range all {
		measured[i].call, measured[i].list = spreadOf(calls[i]), spreadOf(lists[i])
	}
	return nil
}

// crowding measures 50 clients that all call at once.
func crowding(ctx context.Context, all []contestant, measured []figures) error {
	for i, c := range all {
		err := with(ctx, c, func(s *site) error {
			times := make([][]time.Duration, webClients)
			err := together(webClients, func(n int) error {
				one, err := s.connect(ctx)
				for k := 0; k < callsOfEach && err == nil; k++ {
					began := time.Now()
					_, err = one.post(ctx, c.fast(k))
					times[n] = append(times[n], time.Since(began))
				}
				return err
			})
			var joined []time.Duration
			for _, t := range times {
				joined = append(joined, t...)
			}
			if err == nil {
				measured[i].web = spreadOf(joined)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// waiting measures one client's fast calls while 50 others wait in a call that only waits.
func waiting(ctx context.Context, all []contestant, measured []figures) error {
	for i, c := range all {
		if c.tools != 3 {
			continue
		}
		err := with(ctx, c, func(s *site) (err error) {
			measured[i].behindWaiting, err = behind(ctx, s, c, call(1, "hold", map[string]any{"seconds": 600}))
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// behind measures fast calls while 50 clients wait in the given one.
func behind(ctx context.Context, s *site, c contestant, wait string) (spread, error) {
	fast, err := s.connect(ctx)
	if err != nil {
		return spread{}, err
	}
	ctx, leave := context.WithCancel(ctx)
	var waiters sync.WaitGroup
	defer waiters.Wait()
	defer leave()
	for range webClients {
		one, err := s.connect(ctx)
		if err != nil {
			return spread{}, err
		}
		waiters.Go(func() { _, _ = one.post(ctx, wait) }) // it ends when they leave
	}
	var times []time.Duration
	for n := range fastCalls {
		began := time.Now()
		if _, err := fast.post(ctx, c.fast(n)); err != nil {
			return spread{}, err
		}
		times = append(times, time.Since(began))
		time.Sleep(5 * time.Millisecond) // spread over some time, for what waits is looked at now and then
	}
	return spreadOf(times), nil
}

// behindJobs measures the same on the shipped server with a real job: the example's training, for many epochs.
func behindJobs(ctx context.Context, c contestant, dir string) (result spread, err error) {
	handoff, err := longTraining(filepath.Join(dir, "workspace"))
	if err != nil {
		return spread{}, err
	}
	err = with(ctx, c, func(s *site) error {
		one, err := s.connect(ctx)
		if err != nil {
			return err
		}
		answer, err := one.post(ctx, call(1, "trainer", map[string]any{"step_handoff": handoff, "wait_seconds": 20}))
		if err != nil {
			return err
		}
		run, job := between(answer, `"run_id":"`), between(answer, `"job_id":"`)
		if run == "" || job == "" {
			return fmt.Errorf("no job was started: %.2000s", answer)
		}
		result, err = behind(ctx, s, c, call(2, "trainer", map[string]any{"run_id": run, "wait_seconds": 300}))
		_, ended := one.post(ctx, call(3, "job_cancel", map[string]any{"job_id": job}))
		return errors.Join(err, ended)
	})
	return result, err
}

// longTraining is the example's handoff with more epochs than anybody waits for.
func longTraining(workspace string) (map[string]any, error) {
	text, err := os.ReadFile(filepath.Join(workspace, "step_handoff.yaml"))
	if err != nil {
		return nil, err
	}
	text = []byte(strings.Replace(string(text), "epochs_or_steps: 40", "epochs_or_steps: 100000", 1))
	var file struct {
		Handoff map[string]any `yaml:"step_handoff"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read the example's handoff: %w", err)
	}
	return file.Handoff, nil
}

func between(text, before string) string {
	_, rest, _ := strings.Cut(text, before)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// with runs do on a fresh server over HTTP.
func with(ctx context.Context, c contestant, do func(*site) error) error {
	s, err := open(ctx, c.http)
	if err != nil {
		return err
	}
	defer s.end()
	return do(s)
}

// together runs n of them at once and joins their errors.
func together(n int, do func(int) error) error {
	failed := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { failed[i] = do(i) })
	}
	all.Wait()
	return errors.Join(failed...)
}
