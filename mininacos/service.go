package mininacos

import (
	"iter"
	"net"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
	"github.com/nacos-naming/nacos/internal/wire"
)

// endpoint is what 2.x knows an instance by within a service.
type endpoint struct {
	ip   string
	port int
}

func (e endpoint) String() string { return net.JoinHostPort(e.ip, strconv.Itoa(e.port)) }

// service is a service and its instances. Guarded by its registry's lock.
type service struct {
	reg       *registry
	key       serviceKey
	grouped   string
	ephemeral bool     // all its instances are; one of the other kind is refused
	protect   *float32 // protection threshold; nil: none was ever set, and then there is no protection at all
	updated   time.Time

	instances map[endpoint]*instance
	order     []*instance // by first registration; nil where one went
	holes     int         // nils in order
	clusters  map[string]*cluster

	beatCheck *timerpool.Job // of ephemeral services
	lists     map[listKey]*encodedList
}

// instance is one registered instance. What an overlay says comes on top.
type instance struct {
	endpoint
	cluster   string
	weight    float64
	healthy   bool
	enabled   bool
	ephemeral bool
	metadata  wire.Metadata
	lastBeat  time.Time // of ephemeral ones; registering counts

	beatTimeout   time.Duration // with the overlay's metadata
	deleteTimeout time.Duration
	pos           int // in order
	check         check
}

// all yields the instances in order of registration.
func (s *service) all() iter.Seq[*instance] {
	return func(yield func(*instance) bool) {
		for _, in := range s.order {
			if in != nil && !yield(in) {
				return
			}
		}
	}
}

// putLocked adds or replaces an instance.
func (s *service) putLocked(in *instance) {
	s.updated = time.Now()
	in.lastBeat = s.updated
	if old := s.instances[in.endpoint]; old != nil {
		in.pos = old.pos
		s.order[in.pos] = in
		s.endCheckLocked(old)
		if old.cluster != in.cluster {
			s.leaveLocked(old)
			s.joinLocked(in)
		}
	} else {
		in.pos = len(s.order)
		s.order = append(s.order, in)
		s.joinLocked(in)
	}
	s.instances[in.endpoint] = in
	if o := s.reg.overlayLocked(s.key, in.overlayKey()); o != nil {
		o.until = time.Time{} // its instance is back
	}
	s.timeoutsLocked(in)
	s.startCheckLocked(in)
	s.changedLocked()
	s.log("instance registered", in)
}

// removeLocked removes an instance, if it is there.
func (s *service) removeLocked(at endpoint) {
	in := s.instances[at]
	if in == nil {
		return
	}
	now := time.Now()
	s.updated = now
	delete(s.instances, at)
	s.order[in.pos] = nil
	s.holes++
	s.compactLocked()
	s.endCheckLocked(in)
	s.leaveLocked(in)
	if o := s.reg.overlayLocked(s.key, in.overlayKey()); o != nil && o.until.IsZero() {
		// The server looks for expired ones every 5 s, and for those that are older than a minute.
		o.until = nextRound(s.reg.started, overlayGrid, now.Add(overlayAfter))
	}
	s.changedLocked()
	s.log("instance removed", in)
}

// compactLocked closes the holes once they are half of the order, so that removing costs nothing on average.
func (s *service) compactLocked() {
	if s.holes*2 < len(s.order) {
		return
	}
	kept := s.order[:0]
	for _, in := range s.order {
		if in != nil {
			in.pos = len(kept)
			kept = append(kept, in)
		}
	}
	clear(s.order[len(kept):])
	s.order, s.holes = kept, 0
}

// joinLocked puts in into its cluster, which is made, with its task, for the first one (S2).
func (s *service) joinLocked(in *instance) {
	c := s.clusters[in.cluster]
	if c == nil {
		c = s.newClusterLocked(in.cluster)
		s.clusters[in.cluster] = c
	}
	c.size++
}

// leaveLocked takes in out of its cluster, which goes, with its task, with the last one.
func (s *service) leaveLocked(in *instance) {
	c := s.clusters[in.cluster]
	c.size--
	if c.size == 0 {
		c.round.Stop()
		delete(s.clusters, in.cluster)
	}
}

// overlaidLocked takes note of an overlay that changed.
func (s *service) overlaidLocked(at overlayKey) {
	if in := s.instances[at.endpoint]; in != nil && in.cluster == at.cluster {
		s.timeoutsLocked(in)
		s.changedLocked()
		s.log("instance updated", in)
	}
}

// stopLocked ends the service's tasks.
func (s *service) stopLocked() {
	if s.beatCheck != nil {
		s.beatCheck.Stop()
	}
	for in := range s.all() {
		s.endCheckLocked(in)
	}
	for _, c := range s.clusters {
		c.round.Stop()
	}
}

// changedLocked drops the encoded lists.
func (s *service) changedLocked() { clear(s.lists) }

// viewLocked is an instance as clients see it, with its overlay. Its instance id, intervals and generator follow from that
// as they do on 2.x.
func (s *service) viewLocked(in *instance) wire.Host {
	h := wire.Host{
		InstanceID: in.ip + "#" + strconv.Itoa(in.port) + "#" + in.cluster + "#" + s.grouped,
		IP:         in.ip,
		Port:       in.port,
		Weight:     in.weight,
		Healthy:    in.healthy,
		Enabled:    in.enabled,
		Ephemeral:  in.ephemeral,
		Cluster:    in.cluster,
		Service:    s.grouped,
		Metadata:   in.metadata,
	}
	if o := s.reg.overlayLocked(s.key, in.overlayKey()); o != nil {
		h.Weight, h.Enabled, h.Metadata = o.weight, o.enabled, merge(in.metadata, o.metadata)
	}
	h.BeatInterval = digitsOr(h.Metadata, wire.MetaBeatInterval, defaultBeatInterval)
	h.BeatTimeout = digitsOr(h.Metadata, wire.MetaBeatTimeout, defaultBeatTimeout)
	h.DeleteTimeout = digitsOr(h.Metadata, wire.MetaDeleteTimeout, defaultDeleteTimeout)
	if len(h.Metadata) == 0 {
		h.IDGenerator = "simple" // 2.3.2 leaves the default out as soon as there is any metadata
	} else if v, ok := h.Metadata.Lookup("preserved.instance.id.generator"); ok {
		h.IDGenerator = v
	}
	return h
}

func (in *instance) overlayKey() overlayKey { return overlayKey{in.endpoint, in.cluster} }

func (s *service) log(msg string, in *instance) {
	if ce := s.reg.log.Check(zap.DebugLevel, msg); ce != nil {
		ce.Write(zap.String("namespace", s.key.namespace), zap.String("service", s.grouped), zap.Stringer("instance", in.endpoint), zap.String("cluster", in.cluster))
	}
}
