package nacos

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
	"github.com/nacos-naming/nacos/internal/wire"
)

// codeUnknownInstanceV3 is the code by which the v3 API says what wire.CodeResourceNotFound says in v1.
const codeUnknownInstanceV3 = 21003

// settleTime is for how long a request that was given up may still arrive at a server: nothing about the
// same instance is sent meanwhile, so that what is sent last arrives last.
const settleTime = 200 * time.Millisecond

// listLag is for how long lists may show what was before a change: half a second of a server's own, and what
// the servers of a cluster need to tell each other.
const listLag = 2 * time.Second

// errGone tells that a registration ended while the caller waited for its turn; it never leaves the reactor.
var errGone = errors.New("the registration has ended")

// RegistrationState says where a registration stands.
type RegistrationState uint8

// The states. An instance whose registration a server lost is StateRegistering until it is back.
const (
	StateRegistering RegistrationState = iota // wanted, no server has confirmed it yet
	StateLive                                 // a server confirmed it
	StateUpdating                             // live, and a change of it is under way
	StateLeaving                              // being deregistered, or a deregistration failed and may be repeated
	StateGone                                 // deregistered, or never registered
)

// String returns the lower-case name of the state.
func (s RegistrationState) String() string {
	switch s {
	case StateRegistering:
		return "registering"
	case StateLive:
		return "live"
	case StateUpdating:
		return "updating"
	case StateLeaving:
		return "leaving"
	case StateGone:
		return "gone"
	default:
		return "unknown"
	}
}

// Registration is an instance that this client keeps registered: it beats, and registers the instance again
// when servers lose it, until it is deregistered or the naming service closes. It is made by
// RegisterInstance (the zero value is not valid) and safe for concurrent use.
type Registration struct {
	reactor *beatReactor
	group   string
	service string
	at      address
	job     *timerpool.Job // heartbeats and registrations in the background

	// turn has room for one: whoever changes the instance on the servers. Callers queue for it in order;
	// the background takes it only when it is free. Light beats, which carry no data, need no turn.
	turn chan struct{}

	mu       sync.Mutex // guards all below; no I/O while it is held
	state    RegistrationState
	wanted   bool     // desired is set
	desired  Instance // what the servers should have
	wishes   uint64   // counts want, whose wish wins over what is under way
	err      error    // of the last beat or registration
	lastBeat time.Time
	setAt    time.Time // when the last registration or update ended, for adopt
	mayExist bool      // a server may have it
	overlaid bool      // an update may have left an overlay, which wins over later registrations
	unsure   time.Time // when a request was given up that a server may yet act on
	callers  int       // who wait for turn or have it, but for the background

	needRegister bool // the background must register it
	lost         bool // for a server said that it does not know it
	failures     int  // of that, one after another
	renewAt      time.Time
	cancelRenew  context.CancelFunc // of the registration under way in the background

	period  time.Duration
	planned time.Time // next beat before rounding; zero: none
	settled bool      // beats have found their place in the period
	light   bool      // the last reply offered light beats
	flight  *beatFlight
}

// beatFlight is a heartbeat under way.
type beatFlight struct {
	cancel context.CancelFunc
	done   chan struct{}
	light  bool
}

func newRegistration(b *beatReactor, group, service string, at address) *Registration {
	r := &Registration{reactor: b, group: group, service: service, at: at, turn: make(chan struct{}, 1)}
	r.job = b.kind.NewJob(r.run)
	return r
}

// ServiceName returns the service the instance belongs to.
func (r *Registration) ServiceName() ServiceName {
	return ServiceName{Group: r.group, Service: r.service}
}

// Instance returns what the servers should have: what was last registered or updated, with weight and
// metadata that were changed at the servers since then (WithoutServerAdoption).
func (r *Registration) Instance() Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.desired
}

// State returns where the registration stands.
func (r *Registration) State() RegistrationState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Err returns why the last heartbeat or registration failed, nil when it did not.
func (r *Registration) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// LastBeat returns when a server last confirmed a heartbeat or the registration, the zero time if none did.
func (r *Registration) LastBeat() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastBeat
}

// Update changes weight, metadata and the enabled flag of the instance on the servers; cluster, ip, port and
// the ephemeral flag must be those it was registered with. On error nothing changes: if servers may have
// taken the new values all the same, they are given the old ones again in the background. It returns
// ErrDeregistered when the instance is not registered any more.
func (r *Registration) Update(ctx context.Context, in Instance) error {
	in = in.normal()
	if err := checkInstance(in); err != nil {
		return err
	}
	ctx, done, err := r.reactor.life.begin(ctx, "update", r.name())
	if err != nil {
		return err
	}
	defer done()
	return r.update(ctx, in)
}

// Deregister removes the instance from the servers and ends its heartbeats; when that was done before, it
// does nothing. On error the call may be repeated; the heartbeats have ended all the same, unless ctx ended
// while another call about the instance was under way.
func (r *Registration) Deregister(ctx context.Context) error {
	ctx, done, err := r.reactor.life.begin(ctx, "deregister", r.name())
	if err != nil {
		return err
	}
	defer done()
	if err := r.leave(ctx); !errors.Is(err, errGone) {
		return err
	}
	return nil
}

// name is what errors and the log call the instance.
func (r *Registration) name() string {
	return subject(r.group, r.service, Instance{IP: r.at.ip, Port: r.at.port})
}

func (r *Registration) isWanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted
}

func (r *Registration) fields() []zap.Field {
	return []zap.Field{zap.String("service", groupedName(r.group, r.service)), zap.String("instance", r.at.addr()), zap.String("cluster", r.at.cluster)}
}

// takeTurn waits until the caller may change the instance on the servers; giveTurn follows. Background work
// that the caller's would make void is cancelled. leaving cancels every beat and lets none begin: state is
// StateLeaving from then on. Without error the caller has the turn and no beat that matters is under way;
// wishes is the count at that moment.
func (r *Registration) takeTurn(ctx context.Context, leaving bool) (wishes uint64, err error) {
	r.mu.Lock()
	r.callers++
	if r.cancelRenew != nil {
		r.cancelRenew()
	}
	r.cancelBeatLocked(leaving)
	r.mu.Unlock()
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		r.mu.Lock()
		r.departLocked()
		return 0, context.Cause(ctx)
	}
	r.mu.Lock()
	if r.state == StateGone {
		r.mu.Unlock()
		r.giveTurn()
		return 0, errGone
	}
	before, wishes := r.state, r.wishes
	if leaving {
		r.state = StateLeaving
	}
	flight := r.cancelBeatLocked(leaving)
	r.mu.Unlock()
	if err := r.settle(ctx, flight); err != nil {
		r.mu.Lock()
		if r.wishes == wishes {
			r.state = before
		}
		r.mu.Unlock()
		r.giveTurn()
		return 0, err
	}
	return wishes, nil
}

// settle waits until the beat, unless nil, has ended and nothing that was given up can arrive any more.
func (r *Registration) settle(ctx context.Context, flight *beatFlight) error {
	if flight != nil {
		select {
		case <-flight.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.mu.Lock()
	wait := time.Until(r.unsure.Add(settleTime))
	r.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return pause(ctx, wait)
}

// noteLocked remembers a request that failed and that a server may act on yet. It tells whether one may have
// acted on it.
func (r *Registration) noteLocked(err error) (acted bool) {
	if mayActYet(err) {
		r.unsure = time.Now()
	}
	return mayHaveActed(err)
}

// cancelBeatLocked ends the beat under way, unless it is a light one that a change need not wait for. It
// returns the beat if it ended it.
func (r *Registration) cancelBeatLocked(leaving bool) *beatFlight {
	if r.flight == nil || r.flight.light && !leaving {
		return nil
	}
	r.flight.cancel()
	return r.flight
}

// giveTurn ends what takeTurn began and plans the background work.
func (r *Registration) giveTurn() {
	r.mu.Lock()
	<-r.turn
	r.departLocked()
}

// departLocked ends the part of a caller. It unlocks mu.
func (r *Registration) departLocked() {
	r.callers--
	r.planLocked()
	unwanted := r.unwantedLocked()
	r.mu.Unlock()
	if unwanted {
		r.reactor.forget(r)
	}
}

// unwantedLocked tells that everybody who was about to register the instance gave up before it began.
func (r *Registration) unwantedLocked() bool {
	return r.callers == 0 && !r.wanted && r.state != StateGone
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

// want makes in wanted and leaves it to the background to tell the servers (KeepTrying).
func (r *Registration) want(in Instance) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == StateGone {
		return errGone
	}
	r.wishes++
	switch r.state {
	case StateLive:
		r.state = StateUpdating
	case StateLeaving:
		r.state = StateRegistering
	}
	if r.cancelRenew != nil {
		r.cancelRenew() // it would bring the former values
	}
	r.cancelBeatLocked(false)
	r.desireLocked(in)
	r.needRegister, r.failures, r.renewAt = true, 0, time.Now()
	r.planLocked()
	return nil
}

// desireLocked makes in what the servers should have.
func (r *Registration) desireLocked(in Instance) {
	if period := r.reactor.cfg.beatPeriod(in.Metadata); !r.wanted || period != r.reactor.cfg.beatPeriod(r.desired.Metadata) {
		r.period = period
	}
	r.wanted, r.desired = true, in
}

// update changes the instance as in says.
func (r *Registration) update(ctx context.Context, in Instance) error {
	if err := checkBeatTimes(in.Metadata, r.reactor.cfg.beatInterval); err != nil {
		return err
	}
	if in.address() != r.at {
		return &ArgumentError{Argument: "instance", Value: in.String(),
			Rule: "must have the cluster, ip and port of the registration, " + r.at.addr() + " in " + r.at.cluster}
	}
	err := r.set(ctx, in, true)
	if errors.Is(err, errGone) {
		return callError("update", r.name(), ErrDeregistered)
	}
	return err
}

// set registers in, or updates it, and returns when a server has answered.
func (r *Registration) set(ctx context.Context, in Instance, update bool) error {
	api := "register"
	if update {
		api = "update"
	}
	wishes, err := r.takeTurn(ctx, false)
	switch {
	case errors.Is(err, errGone):
		return err
	case err != nil:
		return callError(api, r.name(), err)
	}
	r.mu.Lock()
	before := r.state
	// An update is laid over the registered values, and metadata merged: keys go only by registering anew.
	post := !update || r.needRegister || lacksKey(in.Metadata, r.desired.Metadata)
	put := update || r.overlaid
	switch {
	case update && (before == StateLeaving || !r.wanted):
		r.mu.Unlock()
		r.giveTurn()
		return errGone
	case update && in.Ephemeral != r.desired.Ephemeral:
		r.mu.Unlock()
		r.giveTurn()
		return &ArgumentError{Argument: "instance", Value: in.String(), Rule: "must not change between ephemeral and persistent; deregister it first"}
	case before == StateLive:
		r.state = StateUpdating
	}
	r.mu.Unlock()

	b := r.reactor
	posted := false
	if post {
		err = b.transport.register(ctx, r.group, r.service, in, 0)
		posted = err == nil
	}
	if err == nil && put {
		err = b.transport.update(ctx, r.group, r.service, in, 0)
	}

	r.mu.Lock()
	acted := r.noteLocked(err) || posted || err == nil
	r.mayExist = r.mayExist || acted
	r.overlaid = r.overlaid || put && acted
	switch {
	case r.wishes != wishes: // what was wished meanwhile follows
	case err == nil:
		lost := !post && r.lost // a beat found that out meanwhile
		r.desireLocked(in)
		r.confirmLocked()
		if lost {
			r.loseLocked()
		}
	case !r.wanted:
		r.err = err
		if r.mayExist {
			r.state = StateLeaving
			r.mu.Unlock()
			b.cleanups.Go(func() { r.cleanUp(in, wishes) })
			return err
		}
		r.mu.Unlock()
		b.retire(r, wishes)
		r.giveTurn()
		return err
	default:
		r.err = err
		if !r.lost || before == StateLeaving {
			r.state = before
		}
		if acted && before != StateLeaving { // the servers get back what they had
			r.needRegister, r.failures, r.renewAt = true, 0, time.Now()
		}
	}
	r.mu.Unlock()
	r.giveTurn()
	if err == nil {
		b.log.Info(api, r.fields()...)
	}
	return err
}

// lacksKey tells whether some key of before is not in m.
func lacksKey(m, before Metadata) bool {
	for key := range before.All() {
		if _, ok := m.Lookup(key); !ok {
			return true
		}
	}
	return false
}

// confirmLocked notes that a server has what is desired.
func (r *Registration) confirmLocked() {
	now := time.Now()
	r.state, r.err, r.needRegister, r.lost, r.failures = StateLive, nil, false, false, 0
	r.mayExist, r.setAt, r.lastBeat = true, now, now
	switch {
	case !r.desired.Ephemeral:
		r.planned, r.settled = time.Time{}, false // B9
	case r.planned.IsZero():
		r.planned = now.Add(timerpool.Spread(r.period, 0.8, 1, r.reactor.rnd.float()))
		r.reactor.log.Debug("beats added", r.fields()...)
	default:
		if latest := now.Add(r.period); r.planned.After(latest) {
			r.planned = latest
		}
	}
}

// cleanUp takes back a first registration that failed, in case a server did it all the same. Nobody else
// has a turn before that is over.
func (r *Registration) cleanUp(in Instance, wishes uint64) {
	ctx, cancel := context.WithTimeout(r.reactor.cleanupCtx, cleanupTimeout)
	defer cancel()
	// There is nobody to tell when this fails: the registration has been reported as failed already.
	if r.settle(ctx, nil) == nil {
		_ = r.reactor.transport.deregister(ctx, r.group, r.service, in)
	}
	r.reactor.retire(r, wishes)
	r.giveTurn()
}

// leave deregisters the instance.
func (r *Registration) leave(ctx context.Context) error {
	wishes, err := r.takeTurn(ctx, true)
	switch {
	case errors.Is(err, errGone):
		return err
	case err != nil:
		return callError("deregister", r.name(), err)
	}
	b := r.reactor
	r.mu.Lock()
	if !r.wanted { // those who were about to register it gave up
		r.mu.Unlock()
		b.retire(r, wishes)
		r.giveTurn()
		return errGone
	}
	in, mayExist := r.desired, r.mayExist
	if !r.planned.IsZero() {
		b.log.Debug("beats removed", r.fields()...)
	}
	r.planned, r.settled, r.lost = time.Time{}, false, false
	if r.wishes == wishes {
		r.needRegister = false
	}
	r.mu.Unlock()
	if mayExist {
		err = b.transport.deregister(ctx, r.group, r.service, in)
	}
	if err == nil {
		b.log.Info("deregister", r.fields()...)
	}
	if err == nil {
		b.retire(r, wishes)
	} else {
		r.mu.Lock()
		r.noteLocked(err)
		r.err = err
		r.mu.Unlock()
	}
	r.giveTurn()
	return err
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
	b := r.reactor
	in, put, period, lost := r.desired, r.overlaid, r.period, r.lost
	ctx, r.cancelRenew = context.WithCancel(ctx)
	defer r.cancelRenew()
	r.mu.Unlock()

	err := b.transport.register(ctx, r.group, r.service, in, renewTimeout(period))
	if err == nil && put {
		err = b.transport.update(ctx, r.group, r.service, in, renewTimeout(period))
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	cancelled := ctx.Err() != nil
	r.cancelRenew = nil
	<-r.turn
	r.mayExist = r.noteLocked(err) || r.mayExist || err == nil
	switch {
	case cancelled: // it may have brought what is not wanted any more: what cancelled it comes after it
	case err == nil:
		r.confirmLocked()
		if lost {
			b.renewals.Add(1)
		}
		b.log.Info("register", append(r.fields(), zap.Bool("again", lost))...)
	default:
		r.err = err
		if r.failures++; r.failures == 1 {
			b.log.Warn("registration fails, it is tried again", append(r.fields(), zap.Error(err))...)
		}
		r.renewAt = time.Now().Add(renewDelay(r.failures, period, in.Ephemeral, b.rnd))
	}
	r.planLocked()
}

// adopt takes over weight and metadata of the host in a list that answers a query sent at the given time.
// A list from soon after the last change here may be older than the change.
func (r *Registration) adopt(host *Instance, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != StateLive || r.callers > 0 || r.needRegister || sent.Before(r.setAt.Add(max(r.period, listLag))) {
		return
	}
	if host.Weight == r.desired.Weight && host.Metadata.Equal(r.desired.Metadata) {
		return
	}
	r.desired.Weight, r.desired.Metadata = host.Weight, host.Metadata
	r.overlaid = true // in the console, probably
	r.reactor.log.Info("changed at the server", append(r.fields(), zap.Float64("weight", host.Weight))...)
}
