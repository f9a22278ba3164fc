package timerpool

import (
	"context"
	"runtime/pprof"
	"time"
)

// Kind is a group of jobs with workers of its own. It is made by [Pool.Kind], is safe
// for concurrent use and ends with its pool.
type Kind struct {
	pool    *Pool
	ctx     context.Context // the pool's, with the profiler label of this kind
	workers int

	// Guarded by pool.mu.
	ready queue // jobs that are due and wait for a worker; not empty only while busy == workers or a worker is about to look
	busy  int   // goroutines of work
}

// Kind returns a new kind of jobs, of which at most the given number (at least one)
// run at once. Profiles show its workers with the label "timerpool" and that name.
func (p *Pool) Kind(name string, workers int) *Kind {
	return &Kind{
		pool:    p,
		ctx:     pprof.WithLabels(p.ctx, pprof.Labels("timerpool", name)),
		workers: max(1, workers),
	}
}

// startLocked starts a worker unless all are there already.
func (k *Kind) startLocked() {
	if k.busy < k.workers {
		k.busy++
		k.pool.wg.Go(k.work)
	}
}

// work runs jobs that are due, earliest first, and ends when there is none.
func (k *Kind) work() {
	pprof.SetGoroutineLabels(k.ctx)
	for j := k.take(); j != nil; {
		next := j.run(k.ctx)
		j = k.takeAfter(j, next)
	}
}

// take marks the next job as running and returns it; nil ends the worker.
func (k *Kind) take() *Job {
	k.pool.mu.Lock()
	defer k.pool.mu.Unlock()
	return k.takeLocked()
}

// takeAfter plans the job that ended and takes the next one.
func (k *Kind) takeAfter(j *Job, next time.Time) *Job {
	k.pool.mu.Lock()
	defer k.pool.mu.Unlock()
	j.endLocked(k.pool.offset(next))
	return k.takeLocked()
}

func (k *Kind) takeLocked() *Job {
	if k.pool.closed {
		k.ready = queue{}
	}
	if len(k.ready.entries) == 0 {
		k.busy--
		return nil
	}
	j := k.ready.pop().job
	j.state = running
	j.due = never
	return j
}
