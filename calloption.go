package nacos

import (
	"slices"
	"strconv"
	"strings"
)

// CallOption changes one call. Each call takes those that mean something to it; another one is an error.
// Options are plain values, so that a lookup with options allocates nothing.
type CallOption struct {
	kind   callOptionKind
	text   string // group, or clusters sorted and comma-joined
	flawed bool   // a cluster's name is empty or contains a comma
	where  func(Instance) bool
}

type callOptionKind uint16

const (
	optGroup callOptionKind = 1 << iota
	optClusters
	optUnhealthy
	optNoSubscribe
	optWhere
	optKeepTrying
)

// String returns the name of the function that makes the option.
func (k callOptionKind) String() string {
	switch k {
	case optGroup:
		return "Group"
	case optClusters:
		return "Clusters"
	case optUnhealthy:
		return "Unhealthy"
	case optNoSubscribe:
		return "NoSubscribe"
	case optWhere:
		return "Where"
	case optKeepTrying:
		return "KeepTrying"
	default:
		return "zero CallOption"
	}
}

// Group sets the group of the service, default "DEFAULT_GROUP".
func Group(name string) CallOption { return CallOption{kind: optGroup, text: name} }

// Clusters limits a lookup or subscription to instances of these clusters; none means all, the default.
func Clusters(names ...string) CallOption {
	o := CallOption{kind: optClusters, text: joinClusters(names)}
	for _, n := range names {
		o.flawed = o.flawed || n == "" || strings.Contains(n, ",")
	}
	return o
}

// Unhealthy makes SelectInstances return the unhealthy instances instead of the healthy ones.
func Unhealthy() CallOption { return CallOption{kind: optUnhealthy} }

// NoSubscribe asks a server for the list of this one call and keeps nothing in memory; by default the
// first lookup of a service keeps the list, and keeps it up to date as long as it is used.
func NoSubscribe() CallOption { return CallOption{kind: optNoSubscribe} }

// Where keeps only those instances for which pass returns true. It runs on the client, on every call or
// change, and may run on several goroutines at once.
func Where(pass func(Instance) bool) CallOption { return CallOption{kind: optWhere, where: pass} }

// KeepTrying makes RegisterInstance return at once and go on in the background until it succeeded or the
// instance is deregistered; Registration.State and Err tell how it stands.
func KeepTrying() CallOption { return CallOption{kind: optKeepTrying} }

// call is the sum of the options of one call.
type call struct {
	group    string
	clusters string // sorted, comma-joined
	given    callOptionKind
	where    func(Instance) bool
}

func (c *call) has(k callOptionKind) bool { return c.given&k != 0 }

// key is what the list of a service is kept by.
func (c *call) key(service string) serviceKey {
	return serviceKey{group: c.group, name: service, clusters: c.clusters}
}

// gather adds the options up; name is the call's and allowed what it takes. It allocates nothing.
func gather(name string, allowed callOptionKind, options []CallOption) (call, error) {
	c := call{group: DefaultGroup}
	for i := range options {
		o := &options[i]
		if o.kind&allowed == 0 {
			return c, &ArgumentError{Argument: "option of " + name, Value: o.kind.String(), Rule: "does not belong to this call"}
		}
		c.given |= o.kind
		switch o.kind {
		case optGroup:
			c.group = o.text
		case optClusters:
			if c.clusters = o.text; o.flawed {
				return c, &ArgumentError{Argument: "cluster", Value: strconv.Quote(o.text), Rule: "must not be blank or contain commas"}
			}
		case optWhere:
			if c.where = o.where; o.where == nil {
				return c, &ArgumentError{Argument: "option of " + name, Value: "Where", Rule: "the function is nil"}
			}
		}
	}
	return c, nil
}

// joinClusters makes the part of a key that stands for clusters: the same for every order of the same
// names (H1). One name costs nothing; a blank one among them stays, to be refused.
func joinClusters(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	sorted := slices.Sorted(slices.Values(names))
	return strings.Join(slices.Compact(sorted), ",")
}

// splitClusters is the inverse of joinClusters.
func splitClusters(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}
