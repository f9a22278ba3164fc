package nacos

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
	"github.com/nacos-naming/nacos/internal/wire"
)

const (
	// firstQueryWorkers bounds the first queries of services under way at once. They have workers of their
	// own, so that a caller who waits for one does not wait for the polls of other services.
	firstQueryWorkers = 16

	// fullDecodeEvery is after how many polls that brought nothing new a list is decoded all the same (H7).
	fullDecodeEvery = 30

	maxFailShift = 6
)

// serviceKey is what a list is kept by. clusters is sorted and comma-joined, "" for all (H1).
type serviceKey struct{ group, name, clusters string }

// String returns the grouped name and the clusters.
func (k serviceKey) String() string {
	if k.clusters == "" {
		return groupedName(k.group, k.name)
	}
	return groupedName(k.group, k.name) + " clusters " + k.clusters
}

func (k serviceKey) serviceName() ServiceName {
	return ServiceName{Group: k.group, Service: k.name, Clusters: splitClusters(k.clusters)}
}

// hostTransport asks a server for a list. It is declared here because hostReactor needs no more.
type hostTransport interface {
	list(ctx context.Context, k serviceKey, known wire.Fingerprint) (listReply, error)
}

// listReply is an answer to list: info is nil when it is the known list but for its time.
type listReply struct {
	info    *wire.ServiceInfo
	refTime int64 // ms, 0: not given
	print   wire.Fingerprint
}

// hostEntry is a service that is kept. The first query and the polls of an entry never overlap, so what
// only they touch needs no lock.
type hostEntry struct {
	key   serviceKey
	topic topic

	snap      atomic.Pointer[snapshot] // nil until known, and again when the entry was freed
	used      atomic.Bool              // looked up since the last poll; written only when clear
	confirmed atomic.Int64             // when a server last gave this list, unix ns
	refTime   atomic.Int64             // that server's clock, ms
	failing   atomic.Bool              // the last query failed
	answered  chan struct{}            // closed when the first query is over

	mu   sync.Mutex // guards err, dead
	err  error      // of the last query
	dead bool

	// Of the queries alone.
	job         *timerpool.Job
	print       wire.Fingerprint
	sinceFull   int
	fails       int
	cacheMillis int64
	heldSince   time.Time // when the server's list became empty under WithEmptyProtection
	lastUsed    time.Time
	seq         uint64
}

func (e *hostEntry) setErr(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

// hostReactor keeps the lists of the services in use. Lookups of a known service take no lock. Safe for
// concurrent use; close ends it.
type hostReactor struct {
	cfg       *config
	transport hostTransport
	events    *eventDispatcher
	rnd       *random
	log       *zap.Logger
	first     *timerpool.Kind
	polls     *timerpool.Kind
	onList    func(group, service string, hosts []Instance, sent time.Time) // B11

	entries sync.Map // serviceKey -> *hostEntry

	mu     sync.Mutex // guards changes of entries, count and closed
	count  int
	closed bool

	queries, failures, unchanged atomic.Uint64
}

func newHostReactor(c *config, t hostTransport, events *eventDispatcher, pool *timerpool.Pool, rnd *random, log *zap.Logger) *hostReactor {
	return &hostReactor{
		cfg: c, transport: t, events: events, rnd: rnd, log: log,
		first: pool.Kind("first query", firstQueryWorkers), polls: pool.Kind("poll", c.pollWorkers),
	}
}

// close refuses new services. The contexts of those who wait for a first query, and the pool that runs the
// queries, are ended apart.
func (r *hostReactor) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// known returns the list of k if there is one; it is the hot path.
func (r *hostReactor) known(k serviceKey) *snapshot {
	v, ok := r.entries.Load(k)
	if !ok {
		return nil
	}
	return v.(*hostEntry).current()
}

// touch marks the entry as used.
func (e *hostEntry) touch() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// current returns the list, nil when it is not known, and marks the entry as used.
func (e *hostEntry) current() *snapshot {
	e.touch()
	return e.snap.Load()
}

// entry returns the entry of k, whose names are checked, made if needed; its first query is then due at once.
// It is nil if lookups, which are limited, keep too many already.
func (r *hostReactor) entry(k serviceKey, limited bool) (*hostEntry, error) {
	if v, ok := r.entries.Load(k); ok {
		return v.(*hostEntry), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if v, ok := r.entries.Load(k); ok {
		return v.(*hostEntry), nil
	}
	if limited && r.count >= r.cfg.maxServices {
		return nil, nil
	}
	e := &hostEntry{key: k, answered: make(chan struct{}), lastUsed: time.Now()}
	e.topic = newTopic(k, e.snap.Load)
	e.job = r.polls.NewJob(func(ctx context.Context) time.Time { return r.poll(ctx, e) })
	r.entries.Store(k, e)
	r.count++
	r.first.NewJob(func(ctx context.Context) time.Time { return r.firstQuery(ctx, e) }).Schedule(time.Now())
	return e, nil
}

// get returns the list of k, waiting for the first query if need be: until ctx ends, which closing must end.
func (r *hostReactor) get(ctx context.Context, k serviceKey) (*hostEntry, *snapshot, error) {
	for {
		e, err := r.entry(k, true)
		if err != nil {
			return nil, nil, callError("list", k.String(), err)
		}
		if e == nil { // too many services to keep another
			s, err := r.query(ctx, k)
			return nil, s, err
		}
		e.touch()
		select {
		case <-e.answered:
		case <-ctx.Done():
			return nil, nil, callError("list", k.String(), ended(ctx))
		}
		if s := e.snap.Load(); s != nil {
			return e, s, nil
		}
		e.mu.Lock()
		err, dead := e.err, e.dead
		e.mu.Unlock()
		if !dead && err != nil {
			return nil, nil, err
		}
		// Freed, then a new entry is made; or the list came after it was looked for here, then it is there now.
	}
}

// query asks a server for the list and keeps nothing (H10).
func (r *hostReactor) query(ctx context.Context, k serviceKey) (*snapshot, error) {
	r.queries.Add(1)
	reply, err := r.transport.list(ctx, k, wire.Fingerprint{})
	if err != nil {
		r.failures.Add(1)
		return nil, err
	}
	return newSnapshot(k, reply.info, SourcePoll, time.Now()), nil
}

// firstQuery runs once an entry; the update task follows it (H3).
func (r *hostReactor) firstQuery(ctx context.Context, e *hostEntry) time.Time {
	sent := time.Now()
	err := r.ask(ctx, e, sent)
	close(e.answered)
	next := sent.Add(r.cfg.firstPollDelay)
	if err != nil {
		next = time.Now().Add(r.cfg.firstPollDelay)
	}
	e.job.Schedule(next)
	return time.Time{}
}

// poll is the update task: it asks again, or frees the entry when nobody needs it (H9).
func (r *hostReactor) poll(ctx context.Context, e *hostEntry) time.Time {
	sent := time.Now()
	if r.expire(e, sent) {
		return time.Time{}
	}
	err := r.ask(ctx, e, sent)
	interval := pollInterval(r.cfg, e.cacheMillis)
	if err != nil {
		if e.snap.Load() == nil {
			interval = r.cfg.firstPollDelay // a service that was never seen is tried sooner
		}
		return time.Now().Add(backoff(interval, min(e.fails, maxFailShift), max(interval, r.cfg.maxPollBackoff), r.rnd))
	}
	next := sent.Add(interval)
	if held := e.heldSince; !held.IsZero() && r.cfg.emptyProtection < Forever/2 {
		if end := held.Add(r.cfg.emptyProtection); end.Before(next) {
			return end
		}
	}
	return next
}

// pollInterval is the time from one poll to the next: what the server asks for, else the default (H3).
func pollInterval(c *config, cacheMillis int64) time.Duration {
	if cacheMillis <= 0 {
		return c.pollInterval
	}
	return max(c.minPollInterval, time.Duration(min(cacheMillis, time.Hour.Milliseconds()))*time.Millisecond)
}

// expire frees an entry that nobody subscribes to and nobody has looked up for long.
func (r *hostReactor) expire(e *hostEntry, now time.Time) bool {
	if e.used.Swap(false) || e.topic.listeners() > 0 {
		e.lastUsed = now
		return false
	}
	if now.Sub(e.lastUsed) < r.cfg.idleExpiry {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.topic.listeners() > 0 || e.used.Load() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead {
		return true // hurry came when it was being freed
	}
	e.dead = true
	r.entries.Delete(e.key)
	r.count--
	e.snap.Store(nil)
	return true
}

// hurry brings polls that wait because others failed forward to within a second: a server is back.
func (r *hostReactor) hurry() {
	now := time.Now()
	r.each(func(e *hostEntry) {
		if !e.failing.Load() {
			return
		}
		soon := now.Add(timerpool.Spread(r.cfg.firstPollDelay, 0, 1, r.rnd.float()))
		// Without a due time a poll is under way; it may wait for a connection that died long ago, and fail.
		if due := e.job.Due(); due.IsZero() || due.After(soon) {
			e.job.Schedule(soon)
		}
	})
}

// ask queries a server and applies the answer.
func (r *hostReactor) ask(ctx context.Context, e *hostEntry, sent time.Time) error {
	known := e.print
	if e.sinceFull++; e.sinceFull >= fullDecodeEvery || !e.heldSince.IsZero() {
		known = wire.Fingerprint{}
	}
	r.queries.Add(1)
	reply, err := r.transport.list(ctx, e.key, known)
	if err != nil {
		r.failures.Add(1)
		e.fails++
		var bad *wire.DecodeError
		if e.fails == 1 && errors.As(err, &bad) {
			r.log.Warn("list cannot be read", zap.String("service", e.key.String()), zap.Error(err))
		}
		e.setErr(err)
		e.failing.Store(true)
		return err
	}
	e.fails = 0
	e.failing.Store(false)
	r.apply(e, reply, sent)
	e.setErr(nil) // after the list is there: get returns one of the two
	return nil
}

// apply takes a list over: publishes it when it differs from the one before and tells the subscribers.
func (r *hostReactor) apply(e *hostEntry, reply listReply, sent time.Time) {
	now := time.Now()
	before := e.snap.Load()
	if reply.info == nil {
		e.confirm(reply.refTime, now)
		r.unchanged.Add(1)
		if before != nil {
			r.onList(e.key.group, e.key.name, before.hosts, sent)
		}
		return
	}
	e.print, e.sinceFull = reply.print, 0
	e.cacheMillis = reply.info.CacheMillis
	after := newSnapshot(e.key, reply.info, SourcePoll, now)
	r.onList(e.key.group, e.key.name, after.hosts, sent)
	if r.held(e, before, after, now) {
		return
	}
	e.confirm(reply.refTime, now) // before the list is seen: who sees it may ask for its age
	r.publish(e, before, after)
}

// confirm notes that a server, by its clock at refTime, gave the list that counts. It did not when that list
// is held back.
func (e *hostEntry) confirm(refTime int64, now time.Time) {
	e.confirmed.Store(now.UnixNano())
	e.refTime.Store(refTime)
}

// held decides whether an empty list is held back (H5): before is the list so far, nil at first.
func (r *hostReactor) held(e *hostEntry, before, after *snapshot, now time.Time) bool {
	if r.cfg.emptyProtection == 0 || before == nil || before.up == 0 || after.up > 0 {
		e.heldSince = time.Time{}
		return false
	}
	if e.heldSince.IsZero() {
		e.heldSince = now
		kept := *before
		kept.protected = true
		r.store(e, &kept)
		r.log.Warn("empty list held back", zap.String("service", e.key.String()), zap.Duration("grace", r.cfg.emptyProtection))
		return true
	}
	if now.Sub(e.heldSince) < r.cfg.emptyProtection {
		return true
	}
	e.heldSince = time.Time{}
	return false
}

// publish replaces the list if the new one differs, and tells the subscribers.
func (r *hostReactor) publish(e *hostEntry, before, after *snapshot) {
	if before == nil {
		r.store(e, after)
		r.events.changed(&e.topic)
		return
	}
	c := diff(before.hosts, after.hosts)
	if c.none() && !c.details && before.protected == after.protected && before.reached == after.reached {
		return
	}
	r.store(e, after)
	if c.none() {
		return
	}
	r.log.Info("instances changed", zap.String("service", e.key.String()), zap.Int("total", len(after.hosts)),
		zap.Int("new", len(c.added)), zap.Int("removed", len(c.removed)), zap.Int("modified", len(c.modified)))
	if r.log.Core().Enabled(zap.DebugLevel) {
		r.log.Debug("changed instances", zap.String("service", e.key.String()),
			zap.Stringers("new", c.added), zap.Stringers("removed", c.removed), zap.Stringers("modified", c.modified))
	}
	r.events.changed(&e.topic)
}

func (r *hostReactor) store(e *hostEntry, s *snapshot) {
	e.seq++
	s.seq = e.seq
	e.snap.Store(s)
}

// subscribable calls add with the topic of k, at a moment when its entry is not being freed.
func (r *hostReactor) subscribable(k serviceKey, add func(t *topic)) error {
	e, err := r.entry(k, false)
	for err == nil {
		r.mu.Lock()
		e.mu.Lock()
		dead, closed := e.dead, r.closed
		e.mu.Unlock()
		if !dead && !closed {
			e.touch()
			add(&e.topic)
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock()
		if closed {
			return ErrClosed
		}
		e, err = r.entry(k, false)
	}
	return err
}

// each calls f for every entry.
func (r *hostReactor) each(f func(*hostEntry)) {
	r.entries.Range(func(_, v any) bool {
		f(v.(*hostEntry))
		return true
	})
}
