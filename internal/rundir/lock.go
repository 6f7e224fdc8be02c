package rundir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/trainwright/trainwright/internal/finding"
)

// lockPoll is how often a lock that another process holds is tried again. What a lock covers takes milliseconds.
const lockPoll = 20 * time.Millisecond

// Lock takes the exclusive lock at path, against goroutines of this process and against other processes on this host.
// It waits until ctx ends; a deadline that passes is refused with locked, a cancellation is ctx's error. The file stays
// when the lock is released, since a lock on a file that was deleted and made anew would hold for nobody.
//
// A lock covers read, check and commit, never a phase's work.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := MayWrite(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := makeDir(filepath.Dir(abs)); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	leave, err := inProcess.enter(ctx, abs)
	if err != nil {
		return nil, lockError(path, err)
	}
	file := flock.New(abs, flock.SetPermissions(0o644))
	if _, err := file.TryLockContext(ctx, lockPoll); err != nil {
		leave()
		return nil, lockError(path, errors.Join(err, file.Close()))
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			_ = file.Unlock() // closing the descriptor releases the lock whatever Unlock says
			leave()
		})
	}, nil
}

func lockError(path string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return finding.Refuse(finding.Finding{Code: "locked", Severity: finding.Error, What: "another call holds the lock and did not release it in time",
		Where: &finding.Where{Path: path}, Remedy: "call again; if it stays locked, end the process that holds the file open"})
}

// keyed is a mutex for each key that can be waited for with a context.
type keyed struct {
	mu    sync.Mutex
	gates map[string]*gate
}

type gate struct {
	open  chan struct{} // holds one token while nobody is inside
	users int           // who is inside or waits
}

// inProcess keeps goroutines of this process from polling against each other, and gives them the lock without a wait.
var inProcess = keyed{gates: map[string]*gate{}}

func (k *keyed) enter(ctx context.Context, key string) (leave func(), err error) {
	k.mu.Lock()
	g := k.gates[key]
	if g == nil {
		g = &gate{open: make(chan struct{}, 1)}
		g.open <- struct{}{}
		k.gates[key] = g
	}
	g.users++
	k.mu.Unlock()

	forget := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(k.gates, key)
		}
	}
	select {
	case <-g.open:
		return func() { g.open <- struct{}{}; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
