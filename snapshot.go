package nacos

import (
	"slices"
	"time"

	"github.com/nacos-naming/nacos/internal/wire"
)

// snapshot is a list of instances. It is immutable: whoever has one may read it without a lock for ever.
type snapshot struct {
	hosts     []Instance // first those that may be chosen, then the unhealthy ones that else could, then the rest
	up        int        // hosts[:up] are healthy, enabled and have weight
	down      int        // hosts[up:up+down] are enabled and have weight, but are unhealthy
	pick      picker     // chooses among hosts[:up]
	source    Source
	protected bool // an older list, held back by WithEmptyProtection
	reached   bool // the server's protection threshold is reached
	seq       uint64
	at        time.Time
	refTime   int64 // the server's clock when it made the list, ms; 0: not given
}

// newSnapshot orders the hosts of info and builds what choices need.
func newSnapshot(k serviceKey, info *wire.ServiceInfo, source Source, now time.Time) *snapshot {
	s := &snapshot{source: source, reached: info.ReachProtectionThreshold, at: now, refTime: info.LastRefTime}
	wanted := splitClusters(k.clusters)
	all := make([]Instance, 0, len(info.Hosts))
	for i := range info.Hosts {
		h := &info.Hosts[i]
		if len(wanted) > 0 && !slices.Contains(wanted, h.Cluster) {
			continue // some servers ignore the filter
		}
		all = append(all, Instance{
			ID: h.InstanceID, IP: h.IP, Port: h.Port, Weight: h.Weight, Cluster: h.Cluster, Metadata: Metadata{h.Metadata},
			Healthy: h.Healthy, Enabled: h.Enabled, Ephemeral: h.Ephemeral, made: true,
		})
	}
	s.hosts = make([]Instance, 0, len(all))
	take := func(pass func(*Instance) bool) int {
		before := len(s.hosts)
		for i := range all {
			if pass(&all[i]) {
				s.hosts = append(s.hosts, all[i])
			}
		}
		return len(s.hosts) - before
	}
	s.up = take(func(in *Instance) bool { return in.selectable() && in.Healthy })
	s.down = take(func(in *Instance) bool { return in.selectable() && !in.Healthy })
	take(func(in *Instance) bool { return !in.selectable() })
	s.pick = newPicker(s.up, func(i int) float64 { return effectiveWeight(s.hosts[i].Weight) })
	return s
}

// healthy counts the healthy instances, also those that may not be chosen.
func (s *snapshot) healthy() int {
	n := s.up
	for i := s.up + s.down; i < len(s.hosts); i++ {
		if s.hosts[i].Healthy {
			n++
		}
	}
	return n
}

// selectable returns those that may be chosen, or with unhealthy those that only their health keeps from it.
func (s *snapshot) selectable(unhealthy bool) []Instance {
	if unhealthy {
		return s.hosts[s.up : s.up+s.down]
	}
	return s.hosts[:s.up]
}

// selectOne chooses one by weight (H12) among those that pass; a nil where passes all.
func (s *snapshot) selectOne(k serviceKey, where func(Instance) bool, rnd *random) (Instance, error) {
	if where == nil && s.up > 0 {
		return s.hosts[s.pick.pick(rnd.Uint64())], nil
	}
	if where != nil {
		if in, ok := pickWhere(s.hosts[:s.up], where, rnd); ok {
			return in, nil
		}
	}
	return Instance{}, &NoInstanceError{Service: k.name, Group: k.group, Clusters: splitClusters(k.clusters), Total: len(s.hosts), Healthy: s.healthy(), Source: s.source}
}

// keep copies those that pass; a nil where passes all. The result is the caller's own and never nil.
func keep(list []Instance, where func(Instance) bool) []Instance {
	kept := make([]Instance, 0, len(list))
	for i := range list {
		if where == nil || where(list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// public copies the snapshot for the user. Without an entry, s is a server's answer of just now.
func (s *snapshot) public(k serviceKey, e *hostEntry, where func(Instance) bool) ServiceSnapshot {
	out := ServiceSnapshot{
		ServiceName: k.serviceName(), Instances: keep(s.hosts, where), Source: s.source, Confirmed: s.at,
		Protected: s.protected, ReachedProtectionThreshold: s.reached,
	}
	refTime := s.refTime
	if e != nil {
		out.Confirmed, refTime = time.Unix(0, e.confirmed.Load()), e.refTime.Load()
	}
	out.Age = max(0, time.Since(out.Confirmed))
	if refTime > 0 {
		out.ReferenceTime = time.UnixMilli(refTime)
	}
	return out
}
