package nacos

import (
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"
)

// Subscription is one function that is told of the changes of one service. Its callbacks come in order and
// never two at once. It is made by Subscribe (the zero value is not valid), safe for concurrent use, and
// ends by Unsubscribe or when the naming service is closed.
type Subscription struct {
	events *eventDispatcher
	topic  *topic
	fn     func(Event)         // nil: events are pulled by watch, which wake tells
	where  func(Instance) bool // nil: all
	wake   chan struct{}
	done   chan struct{}

	// released is closed when a callback of this subscription calls wait: other callbacks that do the
	// same must not wait for it, since it waits for them.
	released    chan struct{}
	releaseOnce sync.Once

	mu      sync.Mutex // guards the fields down to ended
	pending *snapshot  // the newest one that was not taken yet
	newest  uint64     // its seq, or that of the last one taken
	running bool       // a goroutine for callbacks exists
	runner  uint64     // its id, 0 before it has said so
	ended   bool

	// Of whoever takes snapshots alone: the goroutine of callbacks, or that of watch.
	seen bool       // the initial event was made
	last []Instance // the list of the event before
}

// Unsubscribe ends the subscription; further calls do nothing. It does not wait for a callback that is
// running or just starting (Done tells when it is over), so it may be called inside the callback itself. No
// other callback follows.
func (s *Subscription) Unsubscribe() {
	if !s.end() {
		return
	}
	s.topic.remove(s)
}

// Done returns a channel that is closed once the subscription has ended and no callback of it runs or will
// start.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// end makes the subscription ended and says whether it was not before.
func (s *Subscription) end() bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	s.ended, s.pending = true, nil
	idle := !s.running
	s.mu.Unlock()
	if idle {
		s.finish()
	}
	return true
}

// finish is called once: by end when no goroutine runs, else by that goroutine as its last act.
func (s *Subscription) finish() {
	s.events.forget(s)
	close(s.done)
}

// offer puts a snapshot into the mailbox, in place of one that was not taken yet. It never blocks.
func (s *Subscription) offer(snap *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || snap.seq <= s.newest {
		return
	}
	s.newest, s.pending = snap.seq, snap
	switch {
	case s.fn == nil:
		signal(s.wake)
	case !s.running:
		s.running = true
		go s.run() // finish tells wait that it ended
	}
}

// take empties the mailbox. It returns nil when there is nothing to deliver.
func (s *Subscription) take() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.pending
	s.pending = nil
	return snap
}

func (s *Subscription) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// run delivers until the mailbox is empty.
func (s *Subscription) run() {
	defer s.rest()
	id := goroutineID()
	s.mu.Lock()
	s.runner = id
	s.mu.Unlock()
	for snap := s.take(); snap != nil; snap = s.take() {
		s.deliver(snap)
	}
}

// rest ends a goroutine of callbacks. The mailbox has something in it when an offer came after the last
// look, and when the callback ended the goroutine by runtime.Goexit: another goroutine goes on then.
func (s *Subscription) rest() {
	s.mu.Lock()
	s.runner = 0
	if s.pending != nil {
		go s.run()
		s.mu.Unlock()
		return
	}
	s.running = false
	ended := s.ended
	s.mu.Unlock()
	if ended {
		s.finish()
	}
}

// deliver calls the callback if snap brings anything new to it. A panic costs that one event.
func (s *Subscription) deliver(snap *snapshot) {
	defer func() {
		if p := recover(); p != nil {
			s.events.log.Error("subscriber panicked", zap.String("service", s.topic.key.String()),
				zap.String("panic", fmt.Sprint(p)), zap.Stack("stack"))
		}
	}()
	if e, ok := s.next(snap); ok && !s.isEnded() {
		s.fn(e)
	}
}

// next makes the event that leads from what the subscription last saw to snap, and says whether there is
// anything to tell.
func (s *Subscription) next(snap *snapshot) (Event, bool) {
	hosts := filter(snap.hosts, s.where)
	c := diff(s.last, hosts)
	initial := !s.seen
	s.seen, s.last = true, hosts
	return Event{
		ServiceName: s.topic.name, Instances: hosts, Added: c.added, Removed: c.removed, Modified: c.modified,
		Initial: initial, Source: snap.source, Time: snap.at,
	}, initial || !c.none()
}

// filter returns those that pass; without a filter list itself, clipped so that appending to it copies.
func filter(list []Instance, pass func(Instance) bool) []Instance {
	if pass == nil {
		return slices.Clip(list)
	}
	var kept []Instance
	for _, in := range list {
		if pass(in) {
			kept = append(kept, in)
		}
	}
	return kept
}
