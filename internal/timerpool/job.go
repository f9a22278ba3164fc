package timerpool

import (
	"context"
	"time"
)

// state says where a job is.
type state uint8

const (
	idle    state = iota // not planned
	planned              // in Pool.planned, at Job.index
	ready                // due, in Kind.ready, at Job.index
	running              // taken by a worker
)

// Job is a function that runs at due times, never twice at once. It is made by
// [Kind.NewJob], is safe for concurrent use, and holds nothing that needs closing: a
// job that is not planned is only memory.
type Job struct {
	kind *Kind
	run  func(ctx context.Context) (next time.Time)

	// Guarded by kind.pool.mu.
	due     time.Duration // of the next run; never when there is none
	index   int32         // place in the queue that state names
	state   state
	moved   bool // Schedule was called during the run
	stopped bool
}

// NewJob returns a job that is not planned yet; [Job.Schedule] plans its first run.
//
// The context of a run ends when the pool closes. What run returns is when the job is
// due next; the zero time means not again, unless Schedule was called meanwhile. A
// due time in the past means now, behind the jobs that wait for a worker already.
//
// run must not panic, which would end the process as any panic in a goroutine does,
// nor call runtime.Goexit, and it must not close the pool.
func (k *Kind) NewJob(run func(ctx context.Context) (next time.Time)) *Job {
	return &Job{kind: k, run: run, due: never}
}

// Schedule sets when the job is due next, in place of any former due time, earlier or
// later. The zero time takes it off the plan. During a run it wins over what the run
// will return. After [Job.Stop] or [Pool.Close] it does nothing.
func (j *Job) Schedule(at time.Time) {
	p := j.kind.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || j.stopped:
	case j.state == running:
		j.due = p.offset(at)
		j.moved = true
	default:
		j.planLocked(p.offset(at))
	}
}

// Stop takes the job off the plan for good: no run begins after Stop has returned. One
// that a worker has begun is neither waited for nor interrupted, and what it returns
// is ignored.
func (j *Job) Stop() {
	p := j.kind.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	j.stopped = true
	if p.closed {
		return
	}
	j.due = never
	if j.state != running {
		j.planLocked(never)
	}
}

// Due returns when the next run is due. It is the zero time when none is planned: before
// the first Schedule, during a run until Schedule is called, after a run that
// returned the zero time, after Stop and after Close.
func (j *Job) Due() time.Time {
	p := j.kind.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return time.Time{}
	}
	return p.time(j.due)
}

// planLocked moves a job that is not running to its place for the due time. One that is
// past counts as now: a job that is always late does not go before all others for ever.
func (j *Job) planLocked(due time.Duration) {
	p := j.kind.pool
	p.seq++
	e := entry{due: max(due, time.Since(p.start)), seq: p.seq, job: j}
	j.due = due
	if j.state == planned && due != never {
		p.planned.set(j.index, e)
	} else {
		switch j.state {
		case planned:
			p.planned.remove(j.index)
		case ready:
			j.kind.ready.remove(j.index)
		}
		j.state = idle
		if due != never {
			j.state = planned
			p.planned.push(e)
		}
	}
	p.wakeLocked()
}

// endLocked ends a run that returned next.
func (j *Job) endLocked(next time.Duration) {
	if j.moved || j.stopped {
		next = j.due
	}
	j.moved = false
	j.state = idle
	if next != never && !j.kind.pool.closed {
		j.planLocked(next)
	}
}
