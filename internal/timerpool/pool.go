// Package timerpool runs timed jobs: heartbeats, polls and every other periodic
// task of a client or a server.
//
// A job is a function and a due time. All jobs of a [Pool] share one heap and one
// timer; a job that is due is run by a worker of its [Kind], and each kind has its
// own bounded workers, so a kind whose workers all wait for the network delays no
// other (beats never queue behind polls: rules B7 and H14). A waiting job costs a
// few dozen bytes and no goroutine, and a pool with nothing to do has no goroutine
// at all.
//
// When a job should be due is arithmetic without a clock of its own: [Next], [Grid]
// and [Spread].
package timerpool

import (
	"context"
	"math"
	"sync"
	"time"
)

// dispatchBatch bounds how many due jobs are handed over in one hold of the lock: a
// hundred thousand jobs due in one instant must not make a caller of Schedule wait
// for all of them.
const dispatchBatch = 512

// never is the due time of a job that is not planned. It is also what a due time
// beyond the range of time.Duration becomes (292 years ahead).
const never = time.Duration(math.MaxInt64)

// Pool owns jobs and the goroutines that run them: one that waits for the next due
// time and the workers of each kind. They start on demand and end when there is
// nothing to do.
//
// A Pool is safe for concurrent use. The zero value is not valid: use [New]. Whoever
// made it closes it.
type Pool struct {
	start  time.Time       // due times are kept as the distance to it, on the monotonic clock
	ctx    context.Context // the life of the pool: what runs see, ended by Close
	cancel context.CancelFunc
	timer  *time.Timer   // set to armed while ticking
	wake   chan struct{} // size 1: tick looks at once
	wg     sync.WaitGroup

	mu      sync.Mutex    // guards all below, the ready queues of the kinds and the jobs
	planned queue         // jobs that are not due yet
	seq     uint64        // number of plans made: equal due times run in the order they were planned
	ticking bool          // the goroutine of tick exists
	armed   time.Duration // when it looks at the plan next; of no meaning if not ticking
	closed  bool
}

// New returns a pool without jobs. It starts nothing until a job is scheduled.
func New() *Pool {
	p := &Pool{start: time.Now(), timer: time.NewTimer(never), wake: make(chan struct{}, 1)}
	p.timer.Stop()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends the contexts of the running jobs, starts no further run, and returns
// when the running ones and all goroutines of the pool have ended. It may be called
// again and from several goroutines, each of which waits; it must not be called by a
// run of the pool, which would wait for itself.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.planned = queue{}
		p.wakeLocked()
	}
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}

// offset turns a due time into the distance to the start of the pool. Where both
// times have a monotonic reading a step of the wall clock moves nothing.
func (p *Pool) offset(at time.Time) time.Duration {
	if at.IsZero() {
		return never
	}
	return at.Sub(p.start)
}

// time is the opposite of offset.
func (p *Pool) time(due time.Duration) time.Time {
	if due == never {
		return time.Time{}
	}
	return p.start.Add(due)
}

// wakeLocked sees to it that tick looks at the plan when its first job is due, or at
// once when there is none, which ends tick. A first job that moved to a later time
// needs nothing: tick looks, finds nothing due and sets the timer anew.
func (p *Pool) wakeLocked() {
	first := p.planned.first()
	switch {
	case !p.ticking && first != never:
		p.ticking = true
		p.armLocked(first)
		p.wg.Go(p.tick)
	case p.ticking && first == never:
		p.armLocked(0)
	case p.ticking && first < p.armed:
		p.armLocked(first)
	}
}

// armLocked sets the timer; what is past already is due at once. Since Go 1.23 a timer
// that was reset delivers nothing of before, and an early look would do no harm either.
func (p *Pool) armLocked(at time.Duration) {
	p.armed = at
	wait := at - time.Since(p.start)
	if wait > 0 {
		p.timer.Reset(wait)
		return
	}
	// Not through the timer: Go 1.25 loses a Reset to the past in a synctest bubble while
	// tick waits for the channel (go.dev/issue/76052).
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// tick waits for due times until nothing is planned or the pool is closed.
func (p *Pool) tick() {
	for {
		select {
		case <-p.timer.C:
		case <-p.wake:
		}
		if !p.dispatch() {
			return
		}
	}
}

// dispatch hands jobs that are due to their kinds, and reports whether tick has to
// wait for more.
func (p *Pool) dispatch() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.start)
	for n := 0; n < dispatchBatch && len(p.planned.entries) > 0 && p.planned.first() <= now; n++ {
		e := p.planned.pop()
		e.job.state = ready
		e.job.kind.ready.push(e)
		e.job.kind.startLocked()
	}
	if len(p.planned.entries) == 0 {
		p.ticking = false
		return false
	}
	p.armLocked(p.planned.first())
	return true
}
