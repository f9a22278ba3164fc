package nacos

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Defaults that Nacos itself has for groups, clusters and namespaces.
const (
	DefaultGroup     = wire.DefaultGroup     // group of a service when none is given
	DefaultCluster   = wire.DefaultCluster   // cluster of an instance when none is given
	DefaultNamespace = wire.DefaultNamespace // namespace of a client when none is given
)

// Instance is one address at which a service can be reached. It is a plain value: copies are independent.
// Make one with NewInstance, which sets the defaults of Nacos; an Instance that neither NewInstance nor a
// lookup made is refused by RegisterInstance, since its zero values would register it disabled and with
// weight 0.
type Instance struct {
	ID       string   // given by the server; not sent
	IP       string   // IP address or host name
	Port     int      // 1 to 65535
	Weight   float64  // share of the requests, 0 (none) to 10000; default 1
	Cluster  string   // default "DEFAULT"
	Metadata Metadata // what the service wants to tell about itself

	Healthy   bool // default true; for ephemeral instances the server decides by their heartbeats
	Enabled   bool // default true; servers list no disabled instances
	Ephemeral bool // default true: kept alive by heartbeats. False: kept until deregistered, checked by the server

	made bool
}

// NewInstance returns an instance with weight 1 that is healthy, enabled and ephemeral, in the default
// cluster and without metadata.
func NewInstance(ip string, port int) Instance {
	return Instance{IP: ip, Port: port, Weight: 1, Cluster: DefaultCluster, Healthy: true, Enabled: true, Ephemeral: true, made: true}
}

// Addr returns "ip:port", with an IPv6 address in brackets, as net.Dial takes it.
func (in Instance) Addr() string { return net.JoinHostPort(in.IP, strconv.Itoa(in.Port)) }

// String returns the address and what differs from the defaults, for logs.
func (in Instance) String() string {
	s := in.Addr()
	if in.Cluster != "" && in.Cluster != DefaultCluster {
		s += " cluster=" + in.Cluster
	}
	if in.Weight != 1 {
		s += fmt.Sprintf(" weight=%g", in.Weight)
	}
	for _, flag := range []struct {
		off  bool
		text string
	}{{!in.Healthy, " unhealthy"}, {!in.Enabled, " disabled"}, {!in.Ephemeral, " persistent"}} {
		if flag.off {
			s += flag.text
		}
	}
	return s
}

// normal fills in the default cluster.
func (in Instance) normal() Instance {
	if in.Cluster == "" {
		in.Cluster = DefaultCluster
	}
	return in
}

// selectable says whether a choice may return it at all (H11); health is asked for apart. A weight that is
// no number counts as 1 (H12).
func (in *Instance) selectable() bool { return in.Enabled && !(in.Weight <= 0) }

// sameState compares what a change event is about (H7).
func (in *Instance) sameState(o *Instance) bool {
	sameWeight := in.Weight == o.Weight || math.IsNaN(in.Weight) && math.IsNaN(o.Weight)
	return sameWeight && in.Healthy == o.Healthy && in.Enabled == o.Enabled && in.Metadata.Equal(o.Metadata)
}

// address is what tells instances of a list apart (H7).
type address struct {
	ip      string
	port    int
	cluster string
}

// addr returns "ip:port" as Instance.Addr does.
func (a address) addr() string { return net.JoinHostPort(a.ip, strconv.Itoa(a.port)) }

func (in *Instance) address() address { return address{in.IP, in.Port, in.Cluster} }

// Source says where a list of instances comes from.
type Source uint8

// The sources.
const (
	SourceNone Source = iota // nothing is known yet
	SourcePoll               // a server's answer to a query
)

// String returns the lower-case name of the source.
func (s Source) String() string {
	switch s {
	case SourcePoll:
		return "poll"
	default:
		return "none"
	}
}

// ServiceName names a service within the client's namespace, and the clusters a subscription is limited to.
type ServiceName struct {
	Group    string
	Service  string
	Clusters []string // sorted; empty means all
}

// ServiceSnapshot is what a client knows of a service at a moment.
type ServiceSnapshot struct {
	ServiceName
	Instances []Instance // all that the server listed, also unhealthy ones; the caller's own

	Source        Source
	ReferenceTime time.Time     // the server's clock when it made the list; zero when it gives none
	Confirmed     time.Time     // when a server last said that this is the list
	Age           time.Duration // since Confirmed

	// Protected: the server's list became empty or wholly unhealthy and WithEmptyProtection holds the
	// list before that back.
	Protected bool
	// ReachedProtectionThreshold: the server found so few healthy instances that it lists all of them as
	// healthy, so that the load of all does not break the last ones (the service's protect threshold).
	ReachedProtectionThreshold bool
}

// ServicePage is one page of the names of services in a group.
type ServicePage struct {
	Count int      // services in all
	Names []string // those of this page, without the group
}

// ServerStatus is what a Nacos server says of itself.
type ServerStatus string

// Statuses servers give.
const (
	StatusUp        ServerStatus = "UP"
	StatusDown      ServerStatus = "DOWN"
	StatusStarting  ServerStatus = "STARTING"
	StatusPaused    ServerStatus = "PAUSED"
	StatusWriteOnly ServerStatus = "WRITE_ONLY"
	StatusReadOnly  ServerStatus = "READ_ONLY"
)

// changes is the difference between two lists: instances of the newer one, but for removed.
type changes struct {
	added, removed, modified []Instance

	details bool // of some instance, what is no change for subscribers differs
}

func (c *changes) none() bool { return len(c.added)+len(c.removed)+len(c.modified) == 0 }

// diff compares two lists by address; the order of hosts is no change (H7). What both begin and end with
// is walked through in step, so that a list with one change costs little more than a comparison.
func diff(before, after []Instance) changes {
	var c changes
	compare := func(b, a *Instance) {
		if !a.sameState(b) {
			c.modified = append(c.modified, *a)
		}
		c.details = c.details || a.ID != b.ID || a.Ephemeral != b.Ephemeral
	}
	for len(before) > 0 && len(after) > 0 && before[0].address() == after[0].address() {
		compare(&before[0], &after[0])
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1].address() == after[len(after)-1].address() {
		compare(&before[len(before)-1], &after[len(after)-1])
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	if len(before) == 0 || len(after) == 0 {
		c.added = append(c.added, after...)
		c.removed = append(c.removed, before...)
		return c
	}
	old := make(map[address]*Instance, len(before))
	for i := range before {
		old[before[i].address()] = &before[i]
	}
	for i := range after {
		key := after[i].address()
		b, known := old[key]
		if !known {
			c.added = append(c.added, after[i])
			continue
		}
		compare(b, &after[i])
		delete(old, key)
	}
	for i := range before {
		if _, gone := old[before[i].address()]; gone {
			c.removed = append(c.removed, before[i])
			delete(old, before[i].address())
		}
	}
	return c
}
