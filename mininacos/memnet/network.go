package memnet

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// Network is a set of hosts that reach each other. New makes one; the zero
// value is not valid. It is safe for concurrent use, starts no goroutine and
// needs no closing: what is open on it is its sockets' matter.
//
// To use it in a testing/synctest bubble, make it in the bubble.
type Network struct {
	seed uint64

	// One mutex guards the network and all its sockets: a fault hits many
	// connections in one step, and nothing blocks while it is held.
	mu sync.Mutex
	schedule
	hosts      map[netip.Addr]*Host
	names      map[string][]netip.Addr
	pairs      map[uint64]*pair
	dials      uint64 // connections made; also the last id of a pair
	dialers    map[uint64]*dialer
	dialed     uint64            // dials begun; also the last id of a dialer
	ordinals   map[string]uint64 // flows begun by name
	links      map[route]Link
	holes      map[netip.Addr]bool
	partitions map[route]bool
}

// New returns a network without hosts. The seed decides every chance in it:
// the nanoseconds by which deliveries differ, jitter, loss, duplicates and
// reordering. The same program with the same seed in a bubble runs the same
// way again (see the package documentation for what it takes).
func New(seed uint64) *Network {
	return &Network{
		seed:       seed,
		schedule:   newSchedule(),
		hosts:      make(map[netip.Addr]*Host),
		names:      make(map[string][]netip.Addr),
		pairs:      make(map[uint64]*pair),
		dialers:    make(map[uint64]*dialer),
		ordinals:   make(map[string]uint64),
		links:      make(map[route]Link),
		holes:      make(map[netip.Addr]bool),
		partitions: make(map[route]bool),
	}
}

// Host returns the host with the address ip, an IPv4 or IPv6 literal, and
// makes it on first use. It panics if ip is no literal, or not the address of
// one machine (unspecified, loopback, multicast).
func (n *Network) Host(ip string) *Host {
	addr := mustAddr(ip)
	if addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() {
		panic(fmt.Sprintf("memnet: %s is not the address of a host", ip))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[addr]
	if h == nil {
		h = newHost(n, addr, laneOf(n.seed, len(n.hosts)))
		n.hosts[addr] = h
	}
	return h
}

// AddName lets name stand for ips, which are IP literals, in every dial that
// begins from now on, of any host; they are tried in the order given. It
// replaces what the name stood for; without ips the name is unknown again. It
// panics if an ip is no literal.
func (n *Network) AddName(name string, ips ...string) {
	addrs := make([]netip.Addr, 0, len(ips))
	for _, ip := range ips {
		addrs = append(addrs, mustAddr(ip))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(addrs) == 0 {
		delete(n.names, name)
		return
	}
	n.names[name] = addrs
}

// OpenConns returns the number of TCP connections of which at least one end is
// not closed, those that wait for Accept included: 0 when nothing leaked.
func (n *Network) OpenConns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.pairs)
}

// Dials returns the number of TCP connections established so far.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int(n.dials)
}

// ordinalLocked counts the flows of a name, from 1.
func (n *Network) ordinalLocked(name string) uint64 {
	n.ordinals[name]++
	return n.ordinals[name]
}

// inOrder returns the values of m by ascending key: chances must not depend on
// the order of a map.
func inOrder[K cmp.Ordered, V any](m map[K]V) []V {
	values := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[k])
	}
	return values
}

// mustAddr parses an IP literal.
func mustAddr(ip string) netip.Addr {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		panic(fmt.Sprintf("memnet: %q is not an IP address", ip))
	}
	return addr.Unmap()
}
