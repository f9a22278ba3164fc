package mininacos

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
	"github.com/nacos-naming/nacos/internal/wire"
)

// What a 2.x server does with services that lost their last instance, and with metadata set by PUT of instances that went
// (measured on 2.3.2; both are its GlobalConfig).
const (
	cleanDelay    = 30 * time.Second // of the first round
	cleanInterval = 60 * time.Second
	emptyAfter    = 60 * time.Second // a service is removed in the first round after having been empty that long
	overlayAfter  = 60 * time.Second // kept that long after its instance went
	overlayGrid   = 5 * time.Second  // and then until the next round of that
)

// serviceKey names a service. 2.x keys services so: whether one is ephemeral or persistent is a property, not a part.
type serviceKey struct{ namespace, group, name string }

func (k serviceKey) grouped() string { return wire.GroupedName(k.group, k.name) }

// registry is the state the servers of a cluster share, and the checks that change it. Safe for concurrent use; released
// by its servers, the last of which ends its checks.
type registry struct {
	log   *zap.Logger
	cache time.Duration // what lists say of how long to keep them
	pool  *timerpool.Pool
	kinds struct{ beats, rounds, connects, cleaner *timerpool.Kind }

	mu       sync.Mutex // guards everything below and all it leads to
	random   *rand.Rand
	servers  []*Server // of the cluster, by index
	up       []bool    // which of them serve
	open     int       // servers not closed yet
	started  time.Time // origin of the cleaner's rounds
	cleaner  *timerpool.Job
	services map[serviceKey]*service
	names    map[string][]*service // by namespace, in order of creation
	overlays map[serviceKey]map[overlayKey]*overlay
	hook     func(check string, k serviceKey) // for tests: called in each check, without mu; else nil
}

func newRegistry(cfg *config) *registry {
	r := &registry{
		log:     cfg.logger.Named("mininacos"),
		cache:   cfg.cache,
		pool:    timerpool.New(),
		random:  rand.New(cfg.random),
		started: time.Now(),
	}
	r.kinds.beats = r.pool.Kind("beat check", 1)
	r.kinds.rounds = r.pool.Kind("health check", 1)
	r.kinds.connects = r.pool.Kind("connect", connectWorkers)
	r.kinds.cleaner = r.pool.Kind("cleaner", 1)
	r.cleaner = r.kinds.cleaner.NewJob(r.clean)
	r.emptyLocked()
	return r
}

// join gives the registry its servers, before any of them starts.
func (r *registry) join(servers []*Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = servers
	r.up = make([]bool, len(servers))
	r.open = len(servers)
}

// emptyLocked makes an empty state.
func (r *registry) emptyLocked() {
	r.services = make(map[serviceKey]*service)
	r.names = make(map[string][]*service)
	r.overlays = make(map[serviceKey]map[overlayKey]*overlay)
}

// release is called by each server that closes; the last one's call waits for the checks to end.
func (r *registry) release() {
	r.mu.Lock()
	r.open--
	last := r.open == 0
	r.mu.Unlock()
	if last {
		r.pool.Close()
	}
}

// serverUp counts s in. The first server to come up after a time without any finds ephemeral instances with a fresh beat:
// nobody could have beaten meanwhile.
func (r *registry) serverUp(s *Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.anyUpLocked() {
		now := time.Now()
		for _, svc := range r.services {
			for in := range svc.all() {
				in.lastBeat = now
			}
		}
	}
	r.up[s.index] = true
}

func (r *registry) serverDown(s *Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up[s.index] = false
}

func (r *registry) anyUpLocked() bool {
	for _, up := range r.up {
		if up {
			return true
		}
	}
	return false
}

// responsibleLocked is the server that checks k's instances: hash over those that are up, nil if none is.
func (r *registry) responsibleLocked(k serviceKey) *Server {
	var live []*Server
	for i, up := range r.up {
		if up {
			live = append(live, r.servers[i])
		}
	}
	if len(live) == 0 {
		return nil
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.namespace + wire.GroupSeparator + k.grouped()))
	return live[h.Sum32()%uint32(len(live))]
}

// forget drops all state, unless a server is up that still has it.
func (r *registry) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.anyUpLocked() {
		return
	}
	for _, svc := range r.services {
		svc.stopLocked()
	}
	r.emptyLocked()
}

// register adds in to the service, which it creates if need be, or replaces the instance with its ip and port, in whatever
// cluster that is: 2.x knows an HTTP instance by ip:port (S2, S6).
func (r *registry) register(k serviceKey, in *instance) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	svc := r.services[k]
	if svc == nil {
		svc = r.createLocked(k, in.ephemeral)
	}
	if svc.ephemeral != in.ephemeral {
		return kindError(k, svc.ephemeral)
	}
	svc.putLocked(in)
	return nil
}

// deregister removes the instance with that ip and port; unknown ones are no error, nor are those of the other kind.
func (r *registry) deregister(k serviceKey, at endpoint, ephemeral bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if svc := r.services[k]; svc != nil && svc.ephemeral == ephemeral {
		svc.removeLocked(at)
	}
}

// update lays weight, enabled and metadata over an instance, known or not, of a known service.
func (r *registry) update(k serviceKey, at overlayKey, o overlay) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	svc := r.services[k]
	if svc == nil {
		return serviceNotFound(k)
	}
	byKey := r.overlays[k]
	if byKey == nil {
		byKey = make(map[overlayKey]*overlay)
		r.overlays[k] = byKey
	}
	// A PUT does not bring an overlay back that is about to expire: only registering the instance does.
	if old := r.overlayLocked(k, at); old != nil {
		o.until = old.until
	}
	byKey[at] = &o
	svc.overlaidLocked(at)
	return nil
}

// beat refreshes an instance. known is false for an instance of which the service knows nothing.
func (r *registry) beat(k serviceKey, at endpoint, refresh bool) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	svc := r.services[k]
	if svc == nil || !svc.ephemeral {
		return false
	}
	in := svc.instances[at]
	if in == nil {
		return false
	}
	if !refresh {
		return true
	}
	in.lastBeat = time.Now()
	if !in.healthy {
		in.healthy = true
		svc.changedLocked()
		r.logHealth(svc, in, "client beat ok")
	}
	return true
}

// beatInterval is what a beat's answer tells the client, ms: the preserved key laid over the instance in that cluster, else
// the one it registered with, else the default.
func (r *registry) beatInterval(k serviceKey, at overlayKey) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.overlayLocked(k, at); o != nil {
		if v, ok := o.metadata.Lookup(wire.MetaBeatInterval); ok {
			return toLong(v)
		}
	}
	if svc := r.services[k]; svc != nil && svc.ephemeral {
		if in := svc.instances[at.endpoint]; in != nil {
			if v, ok := in.metadata.Lookup(wire.MetaBeatInterval); ok {
				return toLong(v)
			}
		}
	}
	return defaultBeatInterval.Milliseconds()
}

// serviceNames are the names of a group's services in order of creation.
func (r *registry) serviceNames(namespace, group string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, svc := range r.names[namespace] {
		if svc.key.group == group {
			names = append(names, svc.key.name)
		}
	}
	return names
}

// createLocked makes a service and starts its tasks (S2).
func (r *registry) createLocked(k serviceKey, ephemeral bool) *service {
	svc := &service{
		reg:       r,
		key:       k,
		grouped:   k.grouped(),
		ephemeral: ephemeral,
		instances: make(map[endpoint]*instance),
		clusters:  make(map[string]*cluster),
		updated:   time.Now(),
	}
	if len(r.services) == 0 {
		r.cleaner.Schedule(nextRound(r.started.Add(cleanDelay), cleanInterval, time.Now()))
	}
	r.services[k] = svc
	r.names[k.namespace] = append(r.names[k.namespace], svc)
	svc.startBeatCheckLocked()
	r.log.Info("service created", zap.String("namespace", k.namespace), zap.String("service", svc.grouped), zap.Bool("ephemeral", ephemeral))
	return svc
}
