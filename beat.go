package nacos

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
	"github.com/nacos-naming/nacos/internal/wire"
)

const (
	// What a server may ask for as the time between two heartbeats (B4).
	minBeatInterval = 100 * time.Millisecond
	maxBeatInterval = 5 * time.Minute

	// deregisterWorkers is how many instances Shutdown deregisters at once.
	deregisterWorkers = 32

	// cleanupTimeout bounds the attempt to take back a registration whose outcome is unknown (N3).
	cleanupTimeout = 3 * time.Second

	// overlayLife is for how long servers keep, at most, what an update laid over an instance that is
	// deregistered meanwhile: about a minute.
	overlayLife = 2 * time.Minute
)

// beatTransport is what beatReactor asks of servers. within, unless 0, bounds each try of a request that a
// worker of the heartbeats makes.
type beatTransport interface {
	register(ctx context.Context, group, service string, in Instance, within time.Duration) error
	update(ctx context.Context, group, service string, in Instance, within time.Duration) error
	deregister(ctx context.Context, group, service string, in Instance) error
	beat(ctx context.Context, group, service string, in Instance, light bool, period time.Duration) (wire.BeatReply, error)
}

// beatReactor keeps the registered instances on the servers. Each is a Registration, a small state machine;
// this is the set of them. Safe for concurrent use; its background work ends with the pool, then close ends
// the rest.
type beatReactor struct {
	cfg       *config
	transport beatTransport
	life      *lifecycle
	rnd       *random
	log       *zap.Logger
	kind      *timerpool.Kind
	grid      timerpool.Grid

	// lightSeen: some server offered light beats. Instances that are not enabled go by it (B3).
	lightSeen atomic.Bool

	mu       sync.Mutex // guards services, overlays and pruneAt; taken before Registration.mu
	services map[groupedService]map[address]*Registration
	overlays map[instanceKey]time.Time // what of deregistered instances may still lie at servers, until when
	pruneAt  int                       // size of overlays at which those that are over go

	cleanups   sync.WaitGroup
	cleanupCtx context.Context // ends cleanups
	endCleanup context.CancelFunc

	sent, failed, renewals atomic.Uint64
}

type groupedService struct{ group, name string }

type instanceKey struct {
	groupedService
	address
}

func newBeatReactor(c *config, t beatTransport, life *lifecycle, pool *timerpool.Pool, rnd *random, log *zap.Logger) *beatReactor {
	b := &beatReactor{
		cfg: c, transport: t, life: life, rnd: rnd, log: log, kind: pool.Kind("beat", c.beatWorkers),
		services: make(map[groupedService]map[address]*Registration),
		overlays: make(map[instanceKey]time.Time),
	}
	if c.beatGrid > 0 {
		// An origin of its own, so that the bursts of many clients fall on different instants.
		b.grid = timerpool.Grid{Origin: time.Now().Add(timerpool.Spread(c.beatGrid, 0, 1, rnd.float())), Step: c.beatGrid}
	}
	b.cleanupCtx, b.endCleanup = context.WithCancel(context.Background())
	return b
}

// close ends cleanups and waits for them. With patience it first lets them end by themselves until ctx ends.
func (b *beatReactor) close(ctx context.Context, patience bool) {
	if patience {
		defer context.AfterFunc(ctx, b.endCleanup)()
		b.cleanups.Wait()
	}
	b.endCleanup()
	b.cleanups.Wait()
}

// register makes an instance of group and service wanted as in says: a new one, or the one that is
// registered at that cluster, ip and port already (B2).
func (b *beatReactor) register(ctx context.Context, group, service string, in Instance, keepTrying bool) (*Registration, error) {
	in = in.normal()
	if err := checkBeatTimes(in.Metadata, b.cfg.beatInterval); err != nil {
		return nil, err
	}
	for {
		r := b.entry(group, service, in)
		var err error
		if keepTrying {
			err = r.want(in)
		} else {
			err = r.set(ctx, in, false)
		}
		switch {
		case err == nil:
			return r, nil
		case !errors.Is(err, errGone):
			return nil, err
		}
	}
}

// update changes a registered instance, or sends an update of one that this client did not register.
func (b *beatReactor) update(ctx context.Context, group, service string, in Instance) error {
	in = in.normal()
	if r := b.find(group, service, in.address()); r != nil {
		return r.update(ctx, in)
	}
	return b.transport.update(ctx, group, service, in, 0)
}

// deregister deregisters the registration that in names (N4), or sends the deregistration of an instance
// that this client did not register.
func (b *beatReactor) deregister(ctx context.Context, group, service string, in Instance, groupGiven bool) error {
	in = in.normal()
	for {
		r := b.find(group, service, in.address())
		if r == nil {
			var err error
			if r, err = b.similar(group, service, in, groupGiven); err != nil {
				return err
			}
		}
		if r == nil {
			return b.transport.deregister(ctx, group, service, in)
		}
		if err := r.leave(ctx); !errors.Is(err, errGone) {
			return err
		}
	}
}

// entry returns the registration of that address, made if needed.
func (b *beatReactor) entry(group, service string, in Instance) *Registration {
	key, at := groupedService{group, service}, in.address()
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.services[key][at]; r != nil {
		return r
	}
	r := newRegistration(b, group, service, at)
	r.overlaid = time.Now().Before(b.overlays[instanceKey{key, at}])
	if b.services[key] == nil {
		b.services[key] = make(map[address]*Registration)
	}
	b.services[key][at] = r
	return r
}

func (b *beatReactor) find(group, service string, at address) *Registration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.services[groupedService{group, service}][at]
}

// similar finds the registration that is meant by a deregistration without group or cluster: the only one
// of that service name, ip and port. A cluster of "DEFAULT" counts as none, since NewInstance gives that.
func (b *beatReactor) similar(group, service string, in Instance, groupGiven bool) (*Registration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []*Registration
	look := func(key groupedService) {
		if in.Cluster != DefaultCluster {
			if r := b.services[key][in.address()]; r != nil {
				found = append(found, r)
			}
			return
		}
		for at, r := range b.services[key] {
			if at.ip == in.IP && at.port == in.Port {
				found = append(found, r)
			}
		}
	}
	if groupGiven {
		look(groupedService{group, service})
	} else {
		for key := range b.services {
			if key.name == service {
				look(key)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	slices.SortFunc(found, compareRegistrations)
	names := make([]string, len(found))
	for i, r := range found {
		names[i] = r.name()
	}
	return nil, &ArgumentError{Argument: "instance", Value: strconv.Quote(in.Addr()),
		Rule: "names several registrations, " + strings.Join(names, " and ") + "; give Group and Instance.Cluster, or use Registration.Deregister"}
}

// retire makes r gone and forgets it, unless somebody wished it back since (want). Whoever has its turn
// calls it.
func (b *beatReactor) retire(r *Registration, wishes uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wishes == wishes {
		b.removeLocked(r)
	}
}

// forget makes r gone if nobody ever wanted it and nobody is about to.
func (b *beatReactor) forget(r *Registration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unwantedLocked() {
		b.removeLocked(r)
	}
}

// removeLocked needs b.mu and r.mu.
func (b *beatReactor) removeLocked(r *Registration) {
	r.state = StateGone
	key := groupedService{r.group, r.service}
	if r.overlaid {
		b.noteOverlayLocked(instanceKey{key, r.at})
	}
	delete(b.services[key], r.at)
	if len(b.services[key]) == 0 {
		delete(b.services, key)
	}
}

// noteOverlayLocked remembers that an update may lie over a deregistered instance, and would win when it is
// registered again.
func (b *beatReactor) noteOverlayLocked(k instanceKey) {
	now := time.Now()
	if len(b.overlays) >= b.pruneAt {
		maps.DeleteFunc(b.overlays, func(_ instanceKey, until time.Time) bool { return now.After(until) })
		b.pruneAt = max(64, 2*len(b.overlays))
	}
	b.overlays[k] = now.Add(overlayLife)
}

// registrations returns those that are wanted, or whose deregistration failed, ordered by name.
func (b *beatReactor) registrations() []*Registration {
	b.mu.Lock()
	var all []*Registration
	for _, of := range b.services {
		for _, r := range of {
			if r.isWanted() {
				all = append(all, r)
			}
		}
	}
	b.mu.Unlock()
	slices.SortFunc(all, compareRegistrations)
	return all
}

func compareRegistrations(a, b *Registration) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.service, b.service), cmp.Compare(a.at.cluster, b.at.cluster),
		cmp.Compare(a.at.ip, b.at.ip), cmp.Compare(a.at.port, b.at.port))
}

// beating counts the instances that have heartbeats.
func (b *beatReactor) beating() int {
	n := 0
	for _, r := range b.registrations() {
		if in := r.Instance(); in.Ephemeral && r.State() != StateLeaving {
			n++
		}
	}
	return n
}

// deregisterAll deregisters every ephemeral instance, and every persistent one if persistentToo, several at
// once until ctx ends. The error joins what failed.
func (b *beatReactor) deregisterAll(ctx context.Context, persistentToo bool) error {
	all := b.registrations()
	errs := make([]error, len(all))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(deregisterWorkers, len(all)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				if all[i].Instance().Ephemeral || persistentToo {
					errs[i] = all[i].leave(ctx)
				}
			}
		})
	}
	wg.Wait()
	for i := range errs {
		if errors.Is(errs[i], errGone) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// adopt takes over weight and metadata that a server shows for own instances (B11). The list answers a
// query sent at the given time.
func (b *beatReactor) adopt(group, service string, hosts []Instance, sent time.Time) {
	if !b.cfg.serverAdoption {
		return
	}
	var changed []*Registration
	b.mu.Lock()
	if own := b.services[groupedService{group, service}]; len(own) > 0 {
		for i := range hosts {
			if r := own[hosts[i].address()]; r != nil && r.adopt(&hosts[i], sent) {
				changed = append(changed, r)
			}
		}
	}
	b.mu.Unlock()
	for _, r := range changed {
		b.log.Info("changed at the server", append(r.fields(), zap.Float64("weight", r.Instance().Weight))...)
	}
}

// beatPeriod is the time between two heartbeats that an instance with this metadata begins with (B1).
func (c *config) beatPeriod(m Metadata) time.Duration {
	return boundBeat(beatTime(m, MetadataBeatInterval, c.beatInterval))
}

func boundBeat(d time.Duration) time.Duration { return min(max(d, minBeatInterval), maxBeatInterval) }

// renewTimeout bounds one try of a registration that is made in the background: long enough for a server
// that just started, short enough that workers come back in time for the beats of others.
func renewTimeout(period time.Duration) time.Duration {
	return min(max(period/4, time.Second), 3*time.Second)
}

// renewDelay is the pause before a registration that failed so many times is tried again in the background.
// It grows to the period of the heartbeats, since they would ask as often; persistent instances have none.
func renewDelay(failures int, period time.Duration, ephemeral bool, rnd *random) time.Duration {
	limit := 30 * time.Second
	if ephemeral {
		limit = max(period, minBeatInterval)
	}
	return backoff(min(time.Second, limit), failures-1, limit, rnd)
}
