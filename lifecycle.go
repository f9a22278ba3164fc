package nacos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// lifecycle counts the calls that are under way, so that closing can end them and wait. Safe for
// concurrent use; made by newLifecycle, ended by end.
type lifecycle struct {
	ctx    context.Context // ends, with the cause ErrClosed, when closing begins
	cancel context.CancelCauseFunc
	over   atomic.Bool // closing has begun

	mu    sync.Mutex // makes begin and end exclude each other
	calls sync.WaitGroup
}

func newLifecycle() *lifecycle {
	l := &lifecycle{}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// begin counts a call in. The context it returns also ends when closing begins; done must be called when
// the call is over. It refuses a nil or ended context and calls after closing began: the error then says
// what was asked.
func (l *lifecycle) begin(ctx context.Context, api, subject string) (merged context.Context, done func(), err error) {
	if ctx == nil {
		return nil, nil, errNilContext()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() {
		return nil, nil, callError(api, subject, ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, nil, callError(api, subject, ended(ctx))
	}
	l.calls.Add(1)
	merged, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(ErrClosed) })
	return merged, func() {
		stop()
		cancel(nil)
		l.calls.Done()
	}, nil
}

func errNilContext() error {
	return &ArgumentError{Argument: "context", Value: "nil", Rule: "must not be nil; use context.Background() for none"}
}

// ended returns why ctx ended: ErrClosed when the client closed, else its error, with the cause that the caller
// gave if there is one. It is nil while ctx has not ended.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, ErrClosed) || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// end refuses new calls and ends those under way. It reports whether it was the first to do so.
func (l *lifecycle) end() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = !l.over.Swap(true)
	l.cancel(ErrClosed)
	return first
}

// wait returns when no call is under way any more; it follows end.
func (l *lifecycle) wait() { l.calls.Wait() }
