package nacos

import (
	"context"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
	"github.com/nacos-naming/nacos/internal/wire"
)

// This file holds what a Registration does in the background: heartbeats, and registering again.

// codeUnknownInstanceV3 is the code by which the v3 API says what wire.CodeResourceNotFound says in v1.
const codeUnknownInstanceV3 = 21003

// listLag is for how long lists may show what was before a change: half a second of a server's own, and what
// the servers of a cluster need to tell each other.
const listLag = 2 * time.Second

// beatFlight is a heartbeat under way.
type beatFlight struct {
	cancel context.CancelFunc
	done   chan struct{}
	light  bool
}

// idleLocked tells that the background has nothing to do at all.
func (r *Registration) idleLocked() bool {
	return r.state == StateGone || r.state == StateLeaving || !r.wanted
}

// beatsLocked tells whether there are heartbeats: not for what a server has lost or never had. They go on
// while a change cannot be brought to the servers, so that the instance lives on as it was.
func (r *Registration) beatsLocked() bool {
	return !r.planned.IsZero() && !r.lost && r.desired.Ephemeral
}

// planLocked sets when the background is due next. Everything that decides it is guarded by mu, and
// whoever changes that calls planLocked before letting go of mu.
func (r *Registration) planLocked() {
	var due time.Time
	if !r.idleLocked() {
		if r.beatsLocked() {
			due = r.reactor.grid.For(r.period).Floor(r.planned)
		}
		// With callers about, the last of them plans the registration.
		if r.needRegister && r.callers == 0 && (due.IsZero() || r.renewAt.Before(due)) {
			due = r.renewAt
		}
	}
	if now := r.job.Due(); now.IsZero() || !now.Equal(due) { // a job that waits for a worker keeps its place
		r.job.Schedule(due)
	}
}

// confirmLocked notes that a server has what is desired. It tells whether heartbeats begin with that.
func (r *Registration) confirmLocked() (added bool) {
	now := time.Now()
	r.state, r.err, r.needRegister, r.lost, r.failures = StateLive, nil, false, false, 0
	r.mayExist, r.setAt, r.lastBeat = true, now, now
	switch {
	case !r.desired.Ephemeral:
		r.planned, r.settled = time.Time{}, false // B9
	case r.planned.IsZero():
		r.planned = now.Add(timerpool.Spread(r.period, 0.8, 1, r.reactor.rnd.float()))
		added = true
	default:
		if latest := now.Add(r.period); r.planned.After(latest) {
			r.planned = latest
		}
	}
	return added
}

// run is the background work: one heartbeat, or a registration that servers lost or never had.
func (r *Registration) run(ctx context.Context) time.Time {
	r.mu.Lock()
	switch {
	case r.idleLocked():
		r.mu.Unlock()
	case r.needRegister && r.callers == 0 && !time.Now().Before(r.renewAt):
		r.mu.Unlock()
		r.renew(ctx)
	case !r.beatsLocked():
		r.mu.Unlock()
	case r.callers > 0 && !r.beatsLightLocked():
		r.mu.Unlock() // whoever has the turn plans the beat
	default:
		if r.beatLocked(ctx) {
			r.renew(ctx)
		}
	}
	return time.Time{} // planLocked has said when
}

// beatsLightLocked tells whether the next beat goes without data. An instance that is not enabled sends no
// data as soon as servers take that: one that does not know it would make it enabled (B3).
func (r *Registration) beatsLightLocked() bool {
	return r.light || !r.desired.Enabled && r.reactor.lightSeen.Load()
}

// beatLocked sends a heartbeat. It unlocks mu. It reports that the server does not know the instance.
func (r *Registration) beatLocked(ctx context.Context) (lost bool) {
	b := r.reactor
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &beatFlight{cancel: cancel, done: make(chan struct{}), light: r.beatsLightLocked()}
	r.flight = f
	in, period := r.desired, r.period
	r.mu.Unlock()

	reply, err := b.transport.beat(ctx, r.group, r.service, in, f.light, period)

	r.mu.Lock()
	defer r.mu.Unlock()
	cancelled := ctx.Err() != nil
	r.flight = nil
	close(f.done)
	if !f.light {
		r.noteLocked(err) // it could register the instance
	}
	if cancelled && err != nil {
		if !r.planned.IsZero() {
			r.planLocked() // due as before; a full beat waits for the end of what cancelled it
		}
		return false
	}
	b.sent.Add(1)
	now := time.Now()
	switch {
	case err != nil:
		b.failed.Add(1)
		r.err = err
	case reply.Code == wire.CodeResourceNotFound || reply.Code == codeUnknownInstanceV3:
		r.noteReplyLocked(reply.LightBeatEnabled, reply.ClientBeatInterval)
		lost = r.state != StateGone && r.state != StateLeaving && !r.planned.IsZero()
	default:
		r.noteReplyLocked(reply.LightBeatEnabled, reply.ClientBeatInterval)
		r.lastBeat = now
		if !r.needRegister { // else err tells why that fails
			r.err = nil
		}
	}
	if r.planned.IsZero() {
		return false // deregistered meanwhile
	}
	if lost {
		r.loseLocked()
	}
	r.nextBeatLocked(now)
	r.planLocked()
	return lost
}

// loseLocked notes that servers do not know the instance any more (B5).
func (r *Registration) loseLocked() {
	r.state, r.lost = StateRegistering, true
	r.needRegister, r.failures, r.renewAt = true, 0, time.Now()
}

// noteReplyLocked takes over what a server says about the next beats (B3, B4).
func (r *Registration) noteReplyLocked(light bool, intervalMillis int64) {
	r.light = light
	if light {
		r.reactor.lightSeen.Store(true)
	}
	if intervalMillis > 0 {
		r.period = boundBeat(time.Duration(min(intervalMillis, maxBeatInterval.Milliseconds())) * time.Millisecond)
	}
}

// nextBeatLocked plans the beat after the one that ended now. The second beat comes at a random part of the
// period, so that instances registered together do not beat together; later ones keep the period.
func (r *Registration) nextBeatLocked(now time.Time) {
	if r.settled {
		r.planned = timerpool.Next(r.planned, r.period, now)
		return
	}
	r.settled = true
	r.planned = now.Add(timerpool.Spread(r.period, 0.1, 1, r.reactor.rnd.float()))
}

// renew registers the instance in the background, unless a caller is about to change it anyway.
func (r *Registration) renew(ctx context.Context) {
	select {
	case r.turn <- struct{}{}:
	default:
		return // whoever has the turn plans what is left to do
	}
	r.mu.Lock()
	if r.callers > 0 || !r.needRegister || r.state == StateGone || r.state == StateLeaving {
		<-r.turn
		r.planLocked()
		r.mu.Unlock()
		return
	}
	if arrives := r.unsure.Add(settleTime); time.Now().Before(arrives) {
		r.renewAt = arrives
		<-r.turn
		r.planLocked()
		r.mu.Unlock()
		return
	}
	b := r.reactor
	in, put, period, lost := r.desired, r.overlaid, r.period, r.lost
	ctx, r.cancelRenew = context.WithCancel(ctx)
	defer r.cancelRenew()
	r.mu.Unlock()

	_, err := r.send(ctx, in, true, put, false, renewTimeout(period))

	added, failing := false, false
	r.mu.Lock()
	cancelled := ctx.Err() != nil
	r.cancelRenew = nil
	<-r.turn
	r.mayExist = r.noteLocked(err) || r.mayExist || err == nil
	switch {
	case cancelled: // it may have brought what is not wanted any more: what cancelled it comes after it
	case err == nil:
		added = r.confirmLocked()
	default:
		r.err = err
		r.failures++
		failing = r.failures == 1
		r.renewAt = time.Now().Add(renewDelay(r.failures, period, in.Ephemeral, b.rnd))
	}
	r.planLocked()
	r.mu.Unlock()

	if err == nil && !cancelled {
		if lost {
			b.renewals.Add(1)
		}
		b.log.Info("register", append(r.fields(), zap.Bool("again", lost))...)
	}
	if added {
		b.log.Debug("beats added", r.fields()...)
	}
	if failing {
		b.log.Warn("registration fails, it is tried again", append(r.fields(), zap.Error(err))...)
	}
}

// adopt takes over weight and metadata of the host in a list that answers a query sent at the given time.
// A list from soon after the last change here may be older than the change. It tells whether anything changed.
func (r *Registration) adopt(host *Instance, sent time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != StateLive || r.callers > 0 || r.needRegister || sent.Before(r.setAt.Add(max(r.period, listLag))) {
		return false
	}
	if math.IsNaN(host.Weight) || host.Weight == r.desired.Weight && host.Metadata.Equal(r.desired.Metadata) {
		return false
	}
	r.desired.Weight, r.desired.Metadata = host.Weight, host.Metadata
	r.overlaid = true // in the console, probably
	return true
}
