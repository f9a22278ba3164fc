package nacos

import (
	"context"
	"iter"
	"sync/atomic"
)

// Service is a handle for one service, for code that asks for it again and again: its options are read
// once, and the list it last saw is one pointer away. It is made by NamingService.Service (the zero value is
// not valid), safe for concurrent use, and holds nothing that needs closing. A wrong name or option is the
// error of each of its calls.
type Service struct {
	ns    *NamingService
	key   serviceKey
	where func(Instance) bool
	err   error

	entry atomic.Pointer[hostEntry] // the one last used; it may have been freed since
}

// Service returns a handle for a service. It takes Group, Clusters and Where, and asks no server.
func (ns *NamingService) Service(service string, options ...CallOption) *Service {
	c, err := gather("Service", optGroup|optClusters|optWhere, options)
	s := &Service{ns: ns, key: c.key(service), where: c.where, err: err}
	if err == nil {
		s.err = checkKey(s.key)
	}
	return s
}

// snapshot returns the list, asking a server if it is not known.
func (s *Service) snapshot(ctx context.Context) (*snapshot, error) {
	_, snap, err := s.kept(ctx)
	return snap, err
}

// kept returns the list and where it is kept, nil when too many services are.
func (s *Service) kept(ctx context.Context) (*hostEntry, *snapshot, error) {
	if e := s.entry.Load(); e != nil && !s.ns.life.over.Load() {
		if snap := e.current(); snap != nil {
			return e, snap, nil
		}
	}
	if s.err != nil {
		return nil, nil, s.err
	}
	e, snap, err := s.ns.entry(ctx, s.key)
	if e != nil {
		s.entry.Store(e)
	}
	return e, snap, err
}

// SelectOne chooses one healthy instance at random by weight, as NamingService.SelectOneHealthyInstance
// does.
func (s *Service) SelectOne(ctx context.Context) (Instance, error) {
	snap, err := s.snapshot(ctx)
	if err != nil {
		return Instance{}, err
	}
	return snap.selectOne(s.key, s.where, s.ns.rnd)
}

// Select returns the instances that may be chosen, as NamingService.SelectInstances does; it takes
// Unhealthy and Where, which counts beside that of the handle.
func (s *Service) Select(ctx context.Context, options ...CallOption) ([]Instance, error) {
	c, err := gather("Select", optUnhealthy|optWhere, options)
	if err != nil {
		return nil, err
	}
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return keep(snap.selectable(c.has(optUnhealthy)), both(s.where, c.where)), nil
}

// Instances returns all instances that the server lists, as NamingService.GetAllInstances does.
func (s *Service) Instances(ctx context.Context) ([]Instance, error) {
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return keep(snap.hosts, s.where), nil
}

// Snapshot returns what is known of the service, as NamingService.GetService does.
func (s *Service) Snapshot(ctx context.Context) (ServiceSnapshot, error) {
	e, snap, err := s.kept(ctx)
	if err != nil {
		return ServiceSnapshot{}, err
	}
	return snap.public(s.key, e, s.where), nil
}

// Subscribe calls fn with the list of instances and with each of its changes, as NamingService.Subscribe
// does.
func (s *Service) Subscribe(fn func(Event)) (*Subscription, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.ns.subscribe(s.key, fn, s.where)
}

// Watch iterates over the list of instances and its changes, as NamingService.Watch does.
func (s *Service) Watch(ctx context.Context) iter.Seq2[Event, error] {
	return s.ns.watch(ctx, s.key, s.where, s.err)
}

// both passes what both filters pass; nil passes everything.
func both(a, b func(Instance) bool) func(Instance) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(in Instance) bool { return a(in) && b(in) }
}
