package nacos

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
)

// settleTime is for how long a request that was given up may still arrive at a server: nothing about the
// same instance is sent meanwhile, so that what is sent last arrives last.
const settleTime = 200 * time.Millisecond

// errGone tells that a registration ended while the caller waited for its turn; it never leaves the reactor.
var errGone = errors.New("the registration has ended")

// RegistrationState says where a registration stands.
type RegistrationState uint8

// The states. An instance whose registration a server lost is StateRegistering until it is back.
const (
	StateRegistering RegistrationState = iota // wanted, no server has confirmed it yet
	StateLive                                 // a server confirmed it; it stays so while heartbeats fail, see Err and LastBeat
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

func newRegistration(b *beatReactor, group, service string, at address) *Registration {
	r := &Registration{reactor: b, group: group, service: service, at: at, turn: make(chan struct{}, 1)}
	r.job = b.kind.NewJob(r.run)
	return r
}

// ServiceName returns the service the instance belongs to.
func (r *Registration) ServiceName() ServiceName {
	return ServiceName{Group: r.group, Service: r.service}
}

// String returns the service, the address and the state, for logs.
func (r *Registration) String() string { return r.name() + " " + r.State().String() }

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
		return 0, ended(ctx)
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
			return ended(ctx)
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
	c, err := r.beginChange(in, update)
	if err != nil {
		r.giveTurn()
		return err
	}
	posted, err := r.send(ctx, in, c.post, c.put, update, 0)

	b := r.reactor
	added, abandoned := false, false
	r.mu.Lock()
	acted := r.noteLocked(err) || posted || err == nil
	r.mayExist = r.mayExist || acted
	r.overlaid = r.overlaid || c.put && acted
	switch {
	case r.wishes != wishes: // what was wished meanwhile follows
	case err == nil:
		lost := !c.post && r.lost // a beat found that out meanwhile
		r.desireLocked(in)
		added = r.confirmLocked()
		if lost {
			r.loseLocked()
		}
	case r.wanted:
		r.revertLocked(err, c.before, acted)
	default:
		r.err, r.state, abandoned = err, StateLeaving, true
	}
	cleanUp := abandoned && r.mayExist
	r.mu.Unlock()
	switch {
	case cleanUp:
		b.cleanups.Go(func() { r.cleanUp(in, wishes) })
		return err // cleanUp gives the turn
	case abandoned:
		b.retire(r, wishes)
	}
	r.giveTurn()
	if err == nil {
		b.log.Info(api, r.fields()...)
	}
	if added {
		b.log.Debug("beats added", r.fields()...)
	}
	return err
}

// change is how a call changes the instance on the servers.
type change struct {
	before    RegistrationState
	post, put bool // what is sent: a registration, an update, or both
}

// beginChange decides what a registration of in, or an update to it, takes. errGone: there is nothing to
// update.
func (r *Registration) beginChange(in Instance, update bool) (change, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := change{
		before: r.state,
		// An update is laid over the registered values, and metadata merged: keys go only by registering anew.
		post: !update || r.needRegister || lacksKey(in.Metadata, r.desired.Metadata),
		put:  update || r.overlaid,
	}
	switch {
	case update && (r.state == StateLeaving || !r.wanted):
		return c, errGone
	case update && in.Ephemeral != r.desired.Ephemeral:
		return c, &ArgumentError{Argument: "instance", Value: in.String(), Rule: "must not change between ephemeral and persistent; deregister it first"}
	case r.state == StateLive:
		r.state = StateUpdating
	}
	return c, nil
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

// send brings in to the servers: by a registration if post, by an update if put. An update that was not asked
// for, but is to win over an overlay, may be one that servers do not offer: 3.0 and 3.1 have overlays from their
// console only. within, unless 0, bounds each try. It tells whether the registration was made.
func (r *Registration) send(ctx context.Context, in Instance, post, put, asked bool, within time.Duration) (posted bool, err error) {
	t := r.reactor.transport
	if post {
		if err = t.register(ctx, r.group, r.service, in, within); err != nil {
			return false, err
		}
	}
	if put {
		err = t.update(ctx, r.group, r.service, in, within)
		if !asked && errors.Is(err, ErrAPIUnavailable) {
			err = nil
		}
	}
	return post, err
}

// revertLocked goes back to what was before a change that failed. If servers may have made it, the background
// gives them what they had.
func (r *Registration) revertLocked(err error, before RegistrationState, acted bool) {
	r.err = err
	if !r.lost || before == StateLeaving {
		r.state = before
	}
	if acted && before != StateLeaving {
		r.needRegister, r.failures, r.renewAt = true, 0, time.Now()
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
	in, mayExist, removed := r.desired, r.mayExist, !r.planned.IsZero()
	r.planned, r.settled, r.lost = time.Time{}, false, false
	if r.wishes == wishes {
		r.needRegister = false
	}
	r.mu.Unlock()
	if removed {
		b.log.Debug("beats removed", r.fields()...)
	}
	if mayExist {
		err = b.transport.deregister(ctx, r.group, r.service, in)
	}
	if err == nil {
		b.retire(r, wishes)
		b.log.Info("deregister", r.fields()...)
	} else {
		r.mu.Lock()
		r.noteLocked(err)
		r.err = err
		r.mu.Unlock()
	}
	r.giveTurn()
	return err
}
