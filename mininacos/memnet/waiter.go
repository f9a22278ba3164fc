package memnet

import (
	"sync"
	"time"
)

// waiter is the place where one goroutine blocks until an instant comes, or
// until somebody wakes it. Whoever changes what the goroutine waits for moves
// the instant forward with soonerLocked, so that a delivery wakes its reader
// once, when it is due, and no goroutine is needed to carry it.
//
// The zero value is ready. At most one goroutine waits at a time (the callers
// hold a channel of size one for that). The network's mutex guards it.
type waiter struct {
	timer   *time.Timer
	woken   chan struct{} // size 1
	until   int64
	waiting bool
}

// waitLocked blocks until the instant until, a wake, or the end of done (nil:
// none). It gives mu up while it blocks; it may also return early.
func (w *waiter) waitLocked(mu *sync.Mutex, now, until int64, done <-chan struct{}) {
	if w.timer == nil {
		// Made here and not with the socket: sockets that never block stay small.
		w.timer = time.NewTimer(time.Hour)
		w.woken = make(chan struct{}, 1)
	}
	w.waiting, w.until = true, until
	w.armLocked(now)
	mu.Unlock()
	if done == nil {
		select {
		case <-w.timer.C:
		case <-w.woken:
		}
	} else {
		select {
		case <-w.timer.C:
		case <-w.woken:
		case <-done:
		}
	}
	mu.Lock()
	w.waiting = false
	select {
	case <-w.woken:
	default:
	}
}

// armLocked sets the timer for until. A stopped timer rather than a very late
// one stands for never: a bubble would otherwise jump to the end of time when
// everything in it waits, where it should report the deadlock.
func (w *waiter) armLocked(now int64) {
	if w.until == never {
		w.timer.Stop()
		return
	}
	// Never less than 1 ns: Go 1.25 loses such a reset in a bubble (go.dev/issue/76052).
	w.timer.Reset(time.Duration(max(w.until-now, 1)))
}

// soonerLocked lets the waiting goroutine, if there is one, look again at the
// instant at, unless it will have looked by then anyway.
func (w *waiter) soonerLocked(now, at int64) {
	if w.waiting && at < w.until {
		w.until = at
		w.armLocked(now)
	}
}

// wakeLocked lets the waiting goroutine, if there is one, look again at once.
// It does not go through the timer: a bubble fires timers only when all else
// is idle, and a Close must show before that.
func (w *waiter) wakeLocked() {
	if !w.waiting {
		return
	}
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// deadlineLocked tells the waiting goroutine, if there is one, of a new
// deadline. A later one needs nothing: the goroutine looks at the old one in
// vain and waits on.
func (w *waiter) deadlineLocked(now, at int64) {
	if at <= now {
		w.wakeLocked()
		return
	}
	w.soonerLocked(now, at)
}
