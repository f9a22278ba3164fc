package mininacos

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/wire"
)

// The life of an ephemeral instance (S3).
const (
	beatCheckInterval    = 5 * time.Second
	defaultBeatInterval  = 5 * time.Second
	defaultBeatTimeout   = 15 * time.Second
	defaultDeleteTimeout = 30 * time.Second
)

// startBeatCheckLocked starts the task that ends instances nobody beats for: one per ephemeral service, every 5 s from its
// creation (S2, S3). 2.x has one per instance; one that registers with its service is looked at in the same instants.
func (s *service) startBeatCheckLocked() {
	if !s.ephemeral {
		return
	}
	due := time.Now().Add(beatCheckInterval)
	s.beatCheck = s.reg.kinds.beats.NewJob(func(context.Context) time.Time {
		s.reg.guard("beat check", s.key, s.checkBeats)
		due = nextRound(due, beatCheckInterval, time.Now())
		return due
	})
	s.beatCheck.Schedule(due)
}

// checkBeats marks and removes what has not beaten for too long. Nothing happens while no server is up.
func (s *service) checkBeats() {
	r := s.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.anyUpLocked() {
		return
	}
	now := time.Now()
	var gone []*instance
	for in := range s.all() {
		silent := now.Sub(in.lastBeat)
		if in.healthy && silent > in.beatTimeout {
			in.healthy = false
			s.changedLocked()
			r.logHealth(s, in, "no beat")
		}
		if silent > in.deleteTimeout {
			gone = append(gone, in)
		}
	}
	for _, in := range gone {
		s.removeLocked(in.endpoint)
	}
}

// timeoutsLocked works out when an instance turns unhealthy and when it goes: by the overlay's metadata, else by its own,
// else by default. The checks take what is no number as 0 (measured), where lists show the default.
func (s *service) timeoutsLocked(in *instance) {
	meta := in.metadata
	if o := s.reg.overlayLocked(s.key, in.overlayKey()); o != nil {
		meta = merge(meta, o.metadata)
	}
	in.beatTimeout, in.deleteTimeout = defaultBeatTimeout, defaultDeleteTimeout
	if v, ok := meta.Lookup(wire.MetaBeatTimeout); ok {
		in.beatTimeout = millis(toLong(v))
	}
	if v, ok := meta.Lookup(wire.MetaDeleteTimeout); ok {
		in.deleteTimeout = millis(toLong(v))
	}
}

// guard runs a check so that a panic in it ends this run of it and nothing else (S2).
func (r *registry) guard(check string, k serviceKey, run func()) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic in a check", zap.String("check", check), zap.String("service", k.grouped()), zap.String("panic", fmt.Sprint(p)), zap.Stack("stack"))
		}
	}()
	r.mu.Lock()
	hook := r.hook
	r.mu.Unlock()
	if hook != nil {
		hook(check, k)
	}
	run()
}

func (r *registry) logHealth(s *service, in *instance, why string) {
	if ce := r.log.Check(zap.InfoLevel, "health changed"); ce != nil {
		ce.Write(zap.String("namespace", s.key.namespace), zap.String("service", s.grouped), zap.Stringer("instance", in.endpoint), zap.Bool("healthy", in.healthy), zap.String("why", why))
	}
}

// toLong reads a number of ms as the server's checks do: anything else is 0.
func toLong(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// millis is ms as a duration, bounded where that would overflow.
func millis(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

// digitsOr is a number of ms in metadata as lists show it: only digits count, anything else is the default.
func digitsOr(m wire.Metadata, key string, def time.Duration) int64 {
	v, ok := m.Lookup(key)
	if !ok || v == "" {
		return def.Milliseconds()
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return def.Milliseconds()
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return def.Milliseconds()
	}
	return n
}
