package jobs

import (
	"context"
	"fmt"
	"time"
)

// Await asks until the answer is yes, the limit is over (false) or ctx ends (its error).
func Await(ctx context.Context, limit time.Duration, ask func() (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if yes, err := ask(); yes || err != nil {
			return yes, err
		}
		select {
		case <-ctx.Done():
			if context.Cause(ctx) == errLimit {
				return false, nil
			}
			return false, ctx.Err()
		case <-time.After(pause):
		}
	}
}

var errLimit = fmt.Errorf("the wait is over")
