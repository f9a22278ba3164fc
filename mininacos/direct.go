package mininacos

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Instance is an instance as the server keeps it, for direct access beside the wire. NewInstance has the defaults of a
// registration; the fields of a literal count as they are, but for Cluster.
type Instance struct {
	IP        string
	Port      int
	Cluster   string // "" is DEFAULT
	Weight    float64
	Healthy   bool
	Enabled   bool
	Ephemeral bool
	Metadata  map[string]string
}

// NewInstance is an instance as registered without further parameters: weight 1, healthy, enabled, ephemeral.
func NewInstance(ip string, port int) Instance {
	return Instance{IP: ip, Port: port, Cluster: wire.DefaultCluster, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true}
}

// Addr is ip:port.
func (i Instance) Addr() string { return endpoint{i.IP, i.Port}.String() }

func (i Instance) cluster() string {
	if i.Cluster == "" {
		return wire.DefaultCluster
	}
	return i.Cluster
}

// keyOf is a service by the names callers use: "" is the namespace public and the group DEFAULT_GROUP.
func keyOf(namespace, group, service string) serviceKey {
	if namespace == "" {
		namespace = wire.DefaultNamespace
	}
	if group == "" {
		group = wire.DefaultGroup
	}
	return serviceKey{namespace, group, service}
}

// Register registers an instance as POST /instance does, without the checks of names. Namespace "" is public, group "" is
// DEFAULT_GROUP, here and in all calls below.
func (s *Server) Register(namespace, group, service string, i Instance) error {
	if i.Weight < 0 || i.Weight > 10000 {
		return fmt.Errorf("mininacos: register %s: weight %v is not within 0 and 10000", i.Addr(), i.Weight)
	}
	return s.reg.register(keyOf(namespace, group, service), &instance{
		endpoint:  endpoint{i.IP, i.Port},
		cluster:   i.cluster(),
		weight:    i.Weight,
		healthy:   i.Healthy,
		enabled:   i.Enabled,
		ephemeral: i.Ephemeral,
		metadata:  wire.NewMetadata(i.Metadata),
	})
}

// Deregister removes the instance with that ip and port, of whichever kind, as DELETE /instance does. Unknown ones are no
// error.
func (s *Server) Deregister(namespace, group, service, ip string, port int) {
	k := keyOf(namespace, group, service)
	s.reg.deregister(k, endpoint{ip, port}, true)
	s.reg.deregister(k, endpoint{ip, port}, false)
}

// Update lays weight, enabled and metadata of i over the instance with its ip, port and cluster, as PUT /instance and the
// console do; that wins over later registrations. It fails if there is no such service.
func (s *Server) Update(namespace, group, service string, i Instance) error {
	at := overlayKey{endpoint{i.IP, i.Port}, i.cluster()}
	return s.reg.update(keyOf(namespace, group, service), at, overlay{weight: i.Weight, enabled: i.Enabled, metadata: wire.NewMetadata(i.Metadata)})
}

// Instances are the instances of a service, disabled ones too, in order of registration, with what was laid over them.
func (s *Server) Instances(namespace, group, service string) []Instance {
	r := s.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	svc := r.services[keyOf(namespace, group, service)]
	if svc == nil {
		return nil
	}
	all := make([]Instance, 0, len(svc.instances))
	for in := range svc.all() {
		h := svc.viewLocked(in)
		i := Instance{IP: h.IP, Port: h.Port, Cluster: h.Cluster, Weight: h.Weight, Healthy: h.Healthy, Enabled: h.Enabled, Ephemeral: h.Ephemeral, Metadata: make(map[string]string, len(h.Metadata))}
		for _, p := range h.Metadata {
			i.Metadata[p.Key] = p.Value
		}
		all = append(all, i)
	}
	return all
}

// Services are the services of a namespace, group@@name, in order of creation, also empty ones not yet removed.
func (s *Server) Services(namespace string) []string {
	return s.reg.groupedNames(keyOf(namespace, "", "").namespace)
}

// SetHealthy sets the health of an instance. Beats and checks go on and may set it anew.
func (s *Server) SetHealthy(namespace, group, service, ip string, port int, healthy bool) error {
	r := s.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	svc, in, err := r.findLocked(keyOf(namespace, group, service), endpoint{ip, port})
	if err != nil {
		return err
	}
	if in.healthy != healthy {
		in.healthy = healthy
		svc.changedLocked()
		r.logHealth(svc, in, "set")
	}
	return nil
}

// SetProtectThreshold sets the share of healthy instances, 0 to 1, at or below which lists have all instances as healthy. A
// service without has no protection, other than one with 0: with that, a list of unhealthy ones only has them as healthy.
func (s *Server) SetProtectThreshold(namespace, group, service string, threshold float32) error {
	r := s.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	k := keyOf(namespace, group, service)
	svc := r.services[k]
	if svc == nil {
		return fmt.Errorf("mininacos: no service %s in namespace %s", k.grouped(), k.namespace)
	}
	svc.protect = &threshold
	svc.changedLocked()
	return nil
}

// LastBeat is when the server last heard of an ephemeral instance, by beat or registration; false if it does not know it.
func (s *Server) LastBeat(namespace, group, service, ip string, port int) (time.Time, bool) {
	r := s.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	_, in, err := r.findLocked(keyOf(namespace, group, service), endpoint{ip, port})
	if err != nil || !in.ephemeral {
		return time.Time{}, false
	}
	return in.lastBeat, true
}

// ExpectInstances returns nil if the healthy and enabled instances of a service are exactly those at addrs (ip:port, any
// order), else an error that says what is there instead.
func (s *Server) ExpectInstances(namespace, group, service string, addrs ...string) error {
	var got, all []string
	for _, i := range s.Instances(namespace, group, service) {
		what := i.Addr()
		if i.Healthy && i.Enabled {
			got = append(got, what)
		}
		if !i.Healthy {
			what += " unhealthy"
		}
		if !i.Enabled {
			what += " disabled"
		}
		all = append(all, what)
	}
	sort.Strings(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(addrs))) {
		return fmt.Errorf("mininacos: service %s: want %s, have %s", keyOf(namespace, group, service).grouped(), listOf(addrs), listOf(all))
	}
	return nil
}

func listOf(addrs []string) string {
	if len(addrs) == 0 {
		return "none"
	}
	return strings.Join(addrs, ", ")
}

// findLocked finds an instance and its service.
func (r *registry) findLocked(k serviceKey, at endpoint) (*service, *instance, error) {
	svc := r.services[k]
	if svc == nil || svc.instances[at] == nil {
		return nil, nil, fmt.Errorf("mininacos: no instance %s in service %s, namespace %s", at, k.grouped(), k.namespace)
	}
	return svc, svc.instances[at], nil
}
