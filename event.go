package nacos

import (
	"bytes"
	"context"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Event tells a subscriber that the list of instances of a service changed, or what it is at first. Its
// slices are shared with the client and with other subscribers: they may be kept, and must not be changed.
type Event struct {
	ServiceName
	Instances []Instance // the whole list as it is now, also unhealthy ones, after the subscription's filter

	// What is different from the list that this subscription was told last; at first, from an empty one.
	// Several changes that came while a callback was running arrive as one event.
	Added    []Instance
	Removed  []Instance // as they last were
	Modified []Instance // as they are now; weight, health, enabled or metadata changed

	Initial bool      // the first event of this subscription; there is exactly one, also for an empty list
	Source  Source    // where the list is from
	Time    time.Time // when the client got it
}

// topic is the subscriptions of one service. It is made by newTopic and not copied after its first use.
type topic struct {
	key     serviceKey
	name    ServiceName
	current func() *snapshot
	queued  bool // guarded by eventDispatcher.mu

	mu   sync.Mutex // guards subs
	subs []*Subscription
}

// newTopic returns a topic without subscriptions. current returns the list as it is now, nil while nothing
// is known; it must not block.
func newTopic(key serviceKey, current func() *snapshot) topic {
	return topic{key: key, name: key.serviceName(), current: current}
}

// listeners counts the subscriptions.
func (t *topic) listeners() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subs)
}

func (t *topic) append(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs = append(t.subs, s)
}

func (t *topic) remove(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.subs, s); i >= 0 {
		t.subs = slices.Delete(t.subs, i, i+1)
	}
}

// copyTo appends the subscriptions to list.
func (t *topic) copyTo(list []*Subscription) []*Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(list, t.subs...)
}

// eventDispatcher hands changes of services to their subscriptions. One goroutine drains a queue in which
// each service stands at most once, and fills the one-slot mailbox of each subscription (E1). So whoever
// reports a change never waits, memory is bounded, and the latest list always arrives. Safe for concurrent
// use; made by newEventDispatcher, started by start, ended by end.
type eventDispatcher struct {
	log  *zap.Logger
	wake chan struct{}
	stop chan struct{}
	loop sync.WaitGroup

	mu      sync.Mutex // guards the fields below; taken before topic.mu, never with Subscription.mu
	queue   []*topic
	live    map[*Subscription]struct{} // those that have not ended or whose last callback still runs
	started bool
	closed  bool
}

func newEventDispatcher(log *zap.Logger) *eventDispatcher {
	return &eventDispatcher{
		log: log, wake: make(chan struct{}, 1), stop: make(chan struct{}),
		live: make(map[*Subscription]struct{}),
	}
}

// start starts the goroutine that delivers, unless it runs already or the dispatcher is closed.
func (d *eventDispatcher) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.started && !d.closed {
		d.started = true
		d.loop.Go(d.drain)
	}
}

// changed says that the list of a topic may be another than before. It never blocks.
func (d *eventDispatcher) changed(t *topic) {
	d.mu.Lock()
	if d.closed || t.queued {
		d.mu.Unlock()
		return
	}
	t.queued = true
	d.queue = append(d.queue, t)
	d.mu.Unlock()
	signal(d.wake)
}

// drain works the queue off until end.
func (d *eventDispatcher) drain() {
	var topics []*topic
	var subs []*Subscription
	for {
		select {
		case <-d.stop:
			return
		case <-d.wake:
		}
		topics = d.swapQueue(topics)
		for _, t := range topics {
			snap := t.current()
			if snap == nil {
				continue
			}
			subs = t.copyTo(subs[:0])
			for _, s := range subs {
				s.offer(snap)
			}
			clear(subs)
		}
		clear(topics)
	}
}

// swapQueue returns the queue and puts the emptied one from before in its place. The topics count as not
// queued from here on, before their lists are read: a change after the reading queues them again.
func (d *eventDispatcher) swapQueue(empty []*topic) []*topic {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := d.queue
	d.queue = empty[:0]
	for _, t := range full {
		t.queued = false
	}
	return full
}

// add subscribes fn to a topic. where, unless nil, filters the instances. It calls neither, so that locks may
// be held. After end the subscription has ended already.
func (d *eventDispatcher) add(t *topic, fn func(Event), where func(Instance) bool) *Subscription {
	s := &Subscription{
		events: d, topic: t, fn: fn, where: where,
		wake: make(chan struct{}, 1), done: make(chan struct{}), released: make(chan struct{}),
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		s.end()
		return s
	}
	d.live[s] = struct{}{}
	t.append(s)
	d.mu.Unlock()
	d.changed(t)
	return s
}

func (d *eventDispatcher) forget(s *Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live, s)
}

// watch subscribes to a topic at once and returns the events as a sequence, which must be ranged over and
// only once: a second range is empty. The events are made in the goroutine that ranges, so what changes
// while the loop's body runs arrives as one event. The sequence ends without an error when ctx ends, and
// with one that wraps ErrClosed after end. Leaving the loop unsubscribes. where is that of add.
func (d *eventDispatcher) watch(ctx context.Context, t *topic, where func(Instance) bool) iter.Seq2[Event, error] {
	s := d.add(t, nil, where)
	var ranged atomic.Bool
	return func(yield func(Event, error) bool) {
		if ranged.Swap(true) {
			return
		}
		defer s.Unsubscribe()
		for ctx.Err() == nil {
			if s.isEnded() {
				yield(Event{}, callError("watch", t.key.String(), ErrClosed))
				return
			}
			if snap := s.take(); snap != nil {
				if e, ok := s.next(snap); ok && !yield(e, nil) {
					return
				}
				continue
			}
			select {
			case <-ctx.Done():
			case <-s.done:
			case <-s.wake:
			}
		}
	}
}

// end ends every subscription, so that no callback starts any more, and the goroutine that delivers. It does
// not wait for callbacks that run: wait does.
func (d *eventDispatcher) end() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		d.queue = nil
		close(d.stop)
	}
	d.mu.Unlock()
	for _, s := range d.subscriptions() {
		s.end()
		s.topic.remove(s)
	}
	d.loop.Wait() // it never blocks for long
}

func (d *eventDispatcher) subscriptions() []*Subscription {
	d.mu.Lock()
	defer d.mu.Unlock()
	live := make([]*Subscription, 0, len(d.live))
	for s := range d.live {
		live = append(live, s)
	}
	return live
}

// wait returns when no callback runs, or when ctx ends, with its error. Called inside a callback it does not
// wait for that one, nor for others that are in wait themselves. It follows end.
func (d *eventDispatcher) wait(ctx context.Context) error {
	live := d.subscriptions()
	var released <-chan struct{}
	own := callbackOf(live, goroutineID())
	if own != nil {
		own.releaseOnce.Do(func() { close(own.released) })
	}
	for _, s := range live {
		if own != nil {
			released = s.released // own's among them
		}
		select {
		case <-s.done:
		case <-released:
		case <-ctx.Done():
			select {
			case <-s.done: // both: what is over is not late
			case <-released:
			default:
				return ended(ctx)
			}
		}
	}
	return nil
}

// callbackOf returns the subscription whose callbacks the goroutine with this id runs, nil if there is none.
func callbackOf(live []*Subscription, id uint64) *Subscription {
	for _, s := range live {
		s.mu.Lock()
		runner := s.runner
		s.mu.Unlock()
		if runner == id && id != 0 {
			return s
		}
	}
	return nil
}

// goroutineID returns the number of the calling goroutine, 0 if it cannot be told. Nothing but the text of
// a stack has it: "goroutine 7 [running]: ...".
func goroutineID() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// signal fills a channel of size 1 unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
