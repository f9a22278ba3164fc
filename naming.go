package nacos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/nacos-naming/nacos/internal/timerpool"
)

// shutdownMargin is how long before the end of Shutdown's context the deregistrations end, so that what
// failed can be told in time.
const shutdownMargin = 100 * time.Millisecond

// NamingService is a client of the naming service of a group of Nacos servers: it registers instances, looks
// services up and tells of their changes. Make one with NewNamingService for each namespace and keep it as
// long as the process runs; end it with Shutdown or Close. It is safe for concurrent use; the zero value is
// not valid. Two of them share nothing.
type NamingService struct {
	cfg     config
	life    *lifecycle
	rnd     *random
	servers *serverList
	proxy   *namingProxy
	pool    *timerpool.Pool
	events  *eventDispatcher
	hosts   *hostReactor
	beats   *beatReactor

	finished chan struct{} // closed when everything but callbacks has ended
	failed   error         // what Shutdown could not deregister; set before finished is closed
}

// NewNamingService returns a client that is set up by the options. It asks no server: servers may come up
// later. The error is an *ArgumentError that names the first option that is wrong.
func NewNamingService(options ...Option) (*NamingService, error) {
	cfg, err := newConfig(options)
	if err != nil {
		return nil, err
	}
	ns := &NamingService{cfg: cfg, life: newLifecycle(), rnd: newRandom(cfg.randomSource), finished: make(chan struct{})}
	c := &ns.cfg
	if ns.servers, err = newServerList(c.servers, c.contextPath, ns.rnd); err != nil {
		return nil, err
	}
	ns.proxy = newNamingProxy(c, ns.servers, ns.rnd, c.logger.Named("server"))
	ns.pool = timerpool.New()
	ns.events = newEventDispatcher(c.logger.Named("event"))
	ns.hosts = newHostReactor(c, ns.proxy, ns.events, ns.pool, ns.rnd, c.logger.Named("host"))
	ns.beats = newBeatReactor(c, ns.proxy, ns.life, ns.pool, ns.rnd, c.logger.Named("beat"))
	ns.hosts.onList = ns.beats.adopt
	ns.proxy.onBack = ns.hosts.hurry

	ns.events.start()
	nextRenewal := func() time.Time {
		return time.Now().Add(timerpool.Spread(renewConnections, 0.8, 1, ns.rnd.float()))
	}
	ns.pool.Kind("connections", 1).NewJob(func(context.Context) time.Time {
		ns.proxy.renew()
		return nextRenewal()
	}).Schedule(nextRenewal())
	return ns, nil
}

// RegisterInstance registers an instance, made by NewInstance, of a service. It returns when a server has
// confirmed it; an ephemeral instance then is kept alive by heartbeats, and registered again when servers
// lose it, until it is deregistered or this client closes. Registering the same cluster, ip and port again
// changes the instance and returns the same Registration. It takes Group and KeepTrying.
//
// On error a former registration of the instance stays as it was. When the outcome of a first one is
// unknown, because no answer came in time, it is taken back in the background.
func (ns *NamingService) RegisterInstance(ctx context.Context, service string, in Instance, options ...CallOption) (*Registration, error) {
	c, err := ns.gatherInstance("RegisterInstance", optGroup|optKeepTrying, service, options)
	if err == nil {
		err = checkInstance(in)
	}
	if err != nil {
		return nil, err
	}
	ctx, done, err := ns.life.begin(ctx, "register", subject(c.group, service, in))
	if err != nil {
		return nil, err
	}
	defer done()
	return ns.beats.register(ctx, c.group, service, in, c.has(optKeepTrying))
}

// UpdateInstance changes weight, metadata and the enabled flag of an instance at the servers: of one that
// this client registered, as Registration.Update does, or of another one. It takes Group.
func (ns *NamingService) UpdateInstance(ctx context.Context, service string, in Instance, options ...CallOption) error {
	c, err := ns.gatherInstance("UpdateInstance", optGroup, service, options)
	if err == nil {
		err = checkInstance(in)
	}
	if err != nil {
		return err
	}
	ctx, done, err := ns.life.begin(ctx, "update", subject(c.group, service, in))
	if err != nil {
		return err
	}
	defer done()
	return ns.beats.update(ctx, c.group, service, in)
}

// DeregisterInstance removes an instance from the servers and ends its heartbeats. Group, cluster and the
// ephemeral flag of one that this client registered need not be given: it is found by service, ip and port.
// An instance that this client did not register is deregistered as in and Group say; that servers know no such
// instance is no error. It takes Group.
func (ns *NamingService) DeregisterInstance(ctx context.Context, service string, in Instance, options ...CallOption) error {
	c, err := ns.gatherInstance("DeregisterInstance", optGroup, service, options)
	if err == nil {
		err = checkAddress(in)
	}
	if err != nil {
		return err
	}
	ctx, done, err := ns.life.begin(ctx, "deregister", subject(c.group, service, in))
	if err != nil {
		return err
	}
	defer done()
	return ns.beats.deregister(ctx, c.group, service, in, c.has(optGroup))
}

// gatherInstance reads the options of a call about an instance and checks the names.
func (ns *NamingService) gatherInstance(name string, allowed callOptionKind, service string, options []CallOption) (call, error) {
	c, err := gather(name, allowed, options)
	if err == nil {
		err = checkService(c.group, service)
	}
	return c, err
}

// Registrations returns what this client registered and has not deregistered, ordered by service and
// address.
func (ns *NamingService) Registrations() []*Registration { return ns.beats.registrations() }

// SelectOneHealthyInstance chooses one instance that is healthy and enabled, at random by weight. The error
// is a *NoInstanceError when the service is known but there is none, an *APIError when no server answered.
// It takes Group, Clusters, Where and NoSubscribe.
//
// The first lookup of a service waits for a server; from then on the list is kept and answers at once,
// without allocating, as long as it is used (WithIdleExpiry). If the first query failed, lookups get its
// error at once until one succeeds in the background.
func (ns *NamingService) SelectOneHealthyInstance(ctx context.Context, service string, options ...CallOption) (Instance, error) {
	c, err := gather("SelectOneHealthyInstance", optGroup|optClusters|optWhere|optNoSubscribe, options)
	if err != nil {
		return Instance{}, err
	}
	snap, err := ns.lookup(ctx, c.key(service), c.has(optNoSubscribe))
	if err != nil {
		return Instance{}, err
	}
	return snap.selectOne(c.key(service), c.where, ns.rnd)
}

// SelectInstances returns the instances that are healthy, enabled and have a weight above 0; with Unhealthy
// those that would be if they were healthy. The slice is the caller's own, and empty when there is none. It
// takes Group, Clusters, Unhealthy, Where and NoSubscribe; lookups work as SelectOneHealthyInstance says.
func (ns *NamingService) SelectInstances(ctx context.Context, service string, options ...CallOption) ([]Instance, error) {
	c, err := gather("SelectInstances", optGroup|optClusters|optUnhealthy|optWhere|optNoSubscribe, options)
	if err != nil {
		return nil, err
	}
	snap, err := ns.lookup(ctx, c.key(service), c.has(optNoSubscribe))
	if err != nil {
		return nil, err
	}
	return keep(snap.selectable(c.has(optUnhealthy)), c.where), nil
}

// GetAllInstances returns all instances that the server lists, whatever their health and weight. The slice
// is the caller's own. It takes Group, Clusters, Where and NoSubscribe; lookups work as
// SelectOneHealthyInstance says.
func (ns *NamingService) GetAllInstances(ctx context.Context, service string, options ...CallOption) ([]Instance, error) {
	c, err := gather("GetAllInstances", optGroup|optClusters|optWhere|optNoSubscribe, options)
	if err != nil {
		return nil, err
	}
	snap, err := ns.lookup(ctx, c.key(service), c.has(optNoSubscribe))
	if err != nil {
		return nil, err
	}
	return keep(snap.hosts, c.where), nil
}

// GetService returns what is known of a service: its instances, where the list is from and how old it is. It
// takes Group, Clusters, Where and NoSubscribe; lookups work as SelectOneHealthyInstance says.
func (ns *NamingService) GetService(ctx context.Context, service string, options ...CallOption) (ServiceSnapshot, error) {
	c, err := gather("GetService", optGroup|optClusters|optWhere|optNoSubscribe, options)
	if err != nil {
		return ServiceSnapshot{}, err
	}
	key := c.key(service)
	if c.has(optNoSubscribe) {
		snap, err := ns.lookup(ctx, key, true)
		if err != nil {
			return ServiceSnapshot{}, err
		}
		return snap.public(key, nil, c.where), nil
	}
	e, snap, err := ns.entry(ctx, key)
	if err != nil {
		return ServiceSnapshot{}, err
	}
	return snap.public(key, e, c.where), nil
}

// lookup returns the list of a service: the one in memory, or a server's answer.
func (ns *NamingService) lookup(ctx context.Context, key serviceKey, direct bool) (*snapshot, error) {
	if !direct {
		if !ns.life.over.Load() {
			if snap := ns.hosts.known(key); snap != nil {
				return snap, nil
			}
		}
		_, snap, err := ns.entry(ctx, key)
		return snap, err
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	ctx, done, err := ns.life.begin(ctx, "list", key.String())
	if err != nil {
		return nil, err
	}
	defer done()
	return ns.hosts.query(ctx, key)
}

// entry returns the list of a service and where it is kept, waiting for the first query if need be. The
// entry is nil when too many services are kept.
func (ns *NamingService) entry(ctx context.Context, key serviceKey) (*hostEntry, *snapshot, error) {
	if err := checkKey(key); err != nil {
		return nil, nil, err
	}
	ctx, done, err := ns.life.begin(ctx, "list", key.String())
	if err != nil {
		return nil, nil, err
	}
	defer done()
	return ns.hosts.get(ctx, key)
}

// Subscribe calls fn once with the list of instances of a service as soon as it is known, even if it is
// empty, and then with each change. Calls come in order and never two at once, on a goroutine of the
// client's; a slow fn delays no other, and several changes during one call arrive as one event. It takes
// Group, Clusters and Where, which limit what the events are about. It returns at once: while no server
// answers, the first event is late. End it with Subscription.Unsubscribe.
func (ns *NamingService) Subscribe(service string, fn func(Event), options ...CallOption) (*Subscription, error) {
	c, err := gather("Subscribe", optGroup|optClusters|optWhere, options)
	if err != nil {
		return nil, err
	}
	return ns.subscribe(c.key(service), fn, c.where)
}

func (ns *NamingService) subscribe(key serviceKey, fn func(Event), where func(Instance) bool) (sub *Subscription, err error) {
	if fn == nil {
		return nil, &ArgumentError{Argument: "callback", Value: "nil", Rule: "must be a function"}
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if ns.life.over.Load() {
		return nil, callError("subscribe", key.String(), ErrClosed)
	}
	err = ns.hosts.subscribable(key, func(t *topic) { sub = ns.events.add(t, fn, where) })
	if err != nil {
		return nil, callError("subscribe", key.String(), err)
	}
	return sub, nil
}

// Watch returns the events that Subscribe would call a function with, as a sequence: a range loop gets the
// current list first and then each change, several as one while its body runs. The loop ends without an
// error when ctx ends, and with one that wraps ErrClosed when the client closes; a wrong argument is the
// only element. Each range over the sequence is a subscription of its own, which ends with the loop. It takes Group,
// Clusters and Where.
func (ns *NamingService) Watch(ctx context.Context, service string, options ...CallOption) iter.Seq2[Event, error] {
	c, err := gather("Watch", optGroup|optClusters|optWhere, options)
	return ns.watch(ctx, c.key(service), c.where, err)
}

func (ns *NamingService) watch(ctx context.Context, key serviceKey, where func(Instance) bool, err error) iter.Seq2[Event, error] {
	if err == nil && ctx == nil {
		err = errNilContext()
	}
	if err == nil {
		err = checkKey(key)
	}
	return func(yield func(Event, error) bool) { // several ranges may run at once
		switch {
		case err != nil:
			yield(Event{}, err)
			return
		case ns.life.over.Load():
			yield(Event{}, callError("watch", key.String(), ErrClosed))
			return
		case ctx.Err() != nil:
			return
		}
		var events iter.Seq2[Event, error]
		err := ns.hosts.subscribable(key, func(t *topic) { events = ns.events.watch(ctx, t, where) })
		if err != nil {
			yield(Event{}, callError("watch", key.String(), err))
			return
		}
		events(yield)
	}
}

// GetSubscribeServices returns the services that have subscriptions, ordered by name.
func (ns *NamingService) GetSubscribeServices() []ServiceName {
	var names []ServiceName
	ns.hosts.each(func(e *hostEntry) {
		if e.topic.listeners() > 0 {
			names = append(names, e.key.serviceName())
		}
	})
	slices.SortFunc(names, func(a, b ServiceName) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Service, b.Service), slices.Compare(a.Clusters, b.Clusters))
	})
	return names
}

// GetServicesOfServer asks a server for one page of the names of the services of a group; pages count from
// 1 and have size names. It takes Group.
func (ns *NamingService) GetServicesOfServer(ctx context.Context, page, size int, options ...CallOption) (ServicePage, error) {
	c, err := gather("GetServicesOfServer", optGroup, options)
	if err == nil {
		err = checkGroup(c.group)
	}
	if err != nil {
		return ServicePage{}, err
	}
	for _, number := range []struct {
		what string
		n    int
	}{{"page", page}, {"page size", size}} {
		if number.n < 1 {
			return ServicePage{}, &ArgumentError{Argument: number.what, Value: strconv.Itoa(number.n), Rule: "must be at least 1"}
		}
	}
	ctx, done, err := ns.life.begin(ctx, "services", c.group)
	if err != nil {
		return ServicePage{}, err
	}
	defer done()
	list, err := ns.proxy.services(ctx, c.group, page, size)
	if err != nil {
		return ServicePage{}, err
	}
	return ServicePage{Count: list.Count, Names: list.Names}, nil
}

// servicesPageSize is how many names Services asks for at a time.
const servicesPageSize = 100

// Services iterates over the names of all services of a group, asking a server for page after page; when
// services come or go meanwhile, some may be missed or seen twice. An error is the last element. It takes
// Group.
func (ns *NamingService) Services(ctx context.Context, options ...CallOption) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if _, err := gather("Services", optGroup, options); err != nil {
			yield("", err)
			return
		}
		seen := 0
		for page := 1; ; page++ {
			p, err := ns.GetServicesOfServer(ctx, page, servicesPageSize, options...)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range p.Names {
				if !yield(name, nil) {
					return
				}
			}
			if seen += len(p.Names); len(p.Names) == 0 || seen >= p.Count {
				return
			}
		}
	}
}

// GetServerStatus asks a server how it is.
func (ns *NamingService) GetServerStatus(ctx context.Context) (ServerStatus, error) {
	ctx, done, err := ns.life.begin(ctx, "status", "")
	if err != nil {
		return "", err
	}
	defer done()
	status, err := ns.proxy.status(ctx)
	return ServerStatus(status), err
}

// Shutdown ends the client in good order: it refuses new calls, ends those under way, deregisters every
// ephemeral instance that this client registered (WithDeregisterPersistent: persistent ones too), several
// at once, and returns when nothing of the client runs any more, callbacks included, or when ctx ends. The
// error joins what could not be deregistered and tells what still runs. Calling it again, or after Close,
// waits for the first call's work. Inside a callback it does not wait for that one.
func (ns *NamingService) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return errNilContext()
	}
	return ns.end(ctx, true)
}

// Close ends the client as Shutdown does but deregisters nothing: servers drop its ephemeral instances when
// heartbeats stay away, 30 s by default. It waits at most 5 s (WithCloseTimeout).
func (ns *NamingService) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), ns.cfg.closeTimeout)
	defer cancel()
	return ns.end(ctx, false)
}

func (ns *NamingService) end(ctx context.Context, deregister bool) error {
	if ns.life.end() {
		go ns.tearDown(ctx, deregister) // finished tells that it is over
	}
	ns.events.end()
	var failed, late error
	select {
	case <-ns.finished:
	case <-ctx.Done():
	}
	select {
	case <-ns.finished: // also if ctx ended too: what is over is not late
		if deregister {
			failed = ns.failed
		}
	default:
		late = ended(ctx)
	}
	if err := ns.events.wait(ctx); err != nil {
		late = err
	}
	if late != nil {
		late = fmt.Errorf("nacos: close: something still runs: %w", late)
	}
	return errors.Join(failed, late)
}

// tearDown ends the parts, each before those it uses.
func (ns *NamingService) tearDown(ctx context.Context, deregister bool) {
	ns.hosts.close()
	ns.life.wait()
	ns.pool.Close()
	if deregister {
		ns.failed = ns.deregisterAll(ctx)
	}
	ns.beats.close(ctx, deregister)
	ns.proxy.close()
	close(ns.finished)
}

func (ns *NamingService) deregisterAll(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		margin := min(shutdownMargin, time.Until(deadline)/4)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-margin))
		defer cancel()
	}
	return ns.beats.deregisterAll(ctx, ns.cfg.deregisterPersistent)
}
