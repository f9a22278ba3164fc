package nacos

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// arguments are those of any public call; a call uses the ones it has.
type arguments struct {
	ctx      context.Context
	service  string
	instance Instance
	fn       func(Event)
	page     int
	size     int
	options  []CallOption
}

// takes says which arguments a call has.
type takes uint

const (
	takesContext takes = 1 << iota
	takesService
	takesGroup
	takesAddress
	takesInstance
	takesClusters
	takesWhere
	takesFunc
	takesPage

	lookup     = takesContext | takesService | takesGroup | takesClusters | takesWhere
	registered = takesContext | takesService | takesGroup | takesAddress
)

type publicCall struct {
	name  string
	takes takes
	call  func(ns *NamingService, a arguments) error
}

// last is the error of a sequence, which must be its only element.
func last[T any](t *testing.T, seq iter.Seq2[T, error]) (err error) {
	elements := 0
	for _, e := range seq {
		err = e
		if elements++; e == nil {
			break // it was not refused, and a Watch would not end
		}
	}
	assert.LessOrEqual(t, elements, 1)
	return err
}

// publicCalls are all calls of NamingService and Service that may send something.
func publicCalls(t *testing.T) []publicCall {
	return []publicCall{
		{"RegisterInstance", registered | takesInstance, func(ns *NamingService, a arguments) error {
			_, err := ns.RegisterInstance(a.ctx, a.service, a.instance, a.options...)
			return err
		}},
		{"RegisterInstance, KeepTrying", registered | takesInstance, func(ns *NamingService, a arguments) error {
			_, err := ns.RegisterInstance(a.ctx, a.service, a.instance, append(a.options, KeepTrying())...)
			return err
		}},
		{"UpdateInstance", registered | takesInstance, func(ns *NamingService, a arguments) error {
			return ns.UpdateInstance(a.ctx, a.service, a.instance, a.options...)
		}},
		{"DeregisterInstance", registered, func(ns *NamingService, a arguments) error {
			return ns.DeregisterInstance(a.ctx, a.service, a.instance, a.options...)
		}},
		{"SelectOneHealthyInstance", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.SelectOneHealthyInstance(a.ctx, a.service, a.options...)
			return err
		}},
		{"SelectInstances", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.SelectInstances(a.ctx, a.service, a.options...)
			return err
		}},
		{"GetAllInstances", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.GetAllInstances(a.ctx, a.service, a.options...)
			return err
		}},
		{"GetAllInstances, NoSubscribe", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.GetAllInstances(a.ctx, a.service, append(a.options, NoSubscribe())...)
			return err
		}},
		{"GetService", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.GetService(a.ctx, a.service, a.options...)
			return err
		}},
		{"GetService, NoSubscribe", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.GetService(a.ctx, a.service, append(a.options, NoSubscribe())...)
			return err
		}},
		{"Subscribe", lookup&^takesContext | takesFunc, func(ns *NamingService, a arguments) error {
			_, err := ns.Subscribe(a.service, a.fn, a.options...)
			return err
		}},
		{"Watch", lookup, func(ns *NamingService, a arguments) error { return last(t, ns.Watch(a.ctx, a.service, a.options...)) }},
		{"GetServicesOfServer", takesContext | takesGroup | takesPage, func(ns *NamingService, a arguments) error {
			_, err := ns.GetServicesOfServer(a.ctx, a.page, a.size, a.options...)
			return err
		}},
		{"Services", takesContext | takesGroup, func(ns *NamingService, a arguments) error { return last(t, ns.Services(a.ctx, a.options...)) }},
		{"GetServerStatus", takesContext, func(ns *NamingService, a arguments) error {
			_, err := ns.GetServerStatus(a.ctx)
			return err
		}},
		{"Service.SelectOne", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.Service(a.service, a.options...).SelectOne(a.ctx)
			return err
		}},
		{"Service.Select", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.Service(a.service, a.options...).Select(a.ctx, Unhealthy())
			return err
		}},
		{"Service.Instances", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.Service(a.service, a.options...).Instances(a.ctx)
			return err
		}},
		{"Service.Snapshot", lookup, func(ns *NamingService, a arguments) error {
			_, err := ns.Service(a.service, a.options...).Snapshot(a.ctx)
			return err
		}},
		{"Service.Subscribe", lookup&^takesContext | takesFunc, func(ns *NamingService, a arguments) error {
			_, err := ns.Service(a.service, a.options...).Subscribe(a.fn)
			return err
		}},
		{"Service.Watch", lookup, func(ns *NamingService, a arguments) error {
			return last(t, ns.Service(a.service, a.options...).Watch(a.ctx))
		}},
	}
}

// badArgument is something that no call accepts which has it.
type badArgument struct {
	of       takes
	argument string // of the error
	set      func(*arguments)
}

func badArguments() (all []badArgument) {
	add := func(of takes, argument string, sets ...func(*arguments)) {
		for _, set := range sets {
			all = append(all, badArgument{of, argument, set})
		}
	}
	for _, name := range []string{"", " ", "\t\n", "a@@b", "@@", "a\nb", "a\x00", "a\x7f", "\u0085", "\xff", "a\xc3"} {
		add(takesService, "service", func(a *arguments) { a.service = name })
		add(takesGroup, "group", func(a *arguments) { a.options = []CallOption{Group(name)} })
	}
	add(takesService, "service", func(a *arguments) { a.service = strings.Repeat("s", 513) })
	add(takesGroup, "group", func(a *arguments) { a.options = []CallOption{Group(strings.Repeat("g", 129))} },
		func(a *arguments) { a.options = []CallOption{Group("g@")} }) // g@@@s is service @s of group g
	for _, names := range [][]string{{""}, {" "}, {"a,b"}, {","}, {"a", ""}, {"a", "\n"}, {"\xff"}, {"b", "c,a"}} {
		add(takesClusters, "cluster", func(a *arguments) { a.options = []CallOption{Clusters(names...)} })
	}
	for _, name := range []string{" ", "a,b", "a\n", "\xff"} {
		add(takesAddress, "cluster", func(a *arguments) { a.instance.Cluster = name })
	}
	for _, ip := range []string{"", " ", "10.0.0.1 ", "10.0.0.256", "1.2.3", "10.0.0.1:80", "[::1]", "http://a", "a_b", "-a", "a-", "a..b", ".", "a b", "a/b",
		"\xff", "h\u00f6st", strings.Repeat("a", 64), strings.Repeat("a.", 127)} {
		add(takesAddress, "ip", func(a *arguments) { a.instance.IP = ip })
	}
	for _, port := range []int{0, -1, 65536, math.MinInt, math.MaxInt} {
		add(takesAddress, "port", func(a *arguments) { a.instance.Port = port })
	}
	for _, weight := range []float64{-0.1, 10000.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		add(takesInstance, "weight", func(a *arguments) { a.instance.Weight = weight })
	}
	for _, pairs := range []map[string]string{
		{MetadataBeatInterval: "15000"}, {MetadataBeatInterval: "6000", MetadataBeatTimeout: "6000"}, {MetadataBeatTimeout: "5000"},
		{MetadataBeatInterval: "6000", MetadataDeleteTimeout: "6000"}, {MetadataDeleteTimeout: "0"},
	} {
		add(takesInstance, "metadata "+MetadataBeatInterval, func(a *arguments) { a.instance.Metadata = NewMetadata(pairs) })
	}
	for _, pairs := range []map[string]string{{"\xff": "v"}, {"k": "\xff"}} {
		add(takesInstance, "metadata", func(a *arguments) { a.instance.Metadata = NewMetadata(pairs) })
	}
	add(takesInstance, "instance", func(a *arguments) { a.instance = Instance{} },
		func(a *arguments) {
			a.instance = Instance{IP: "10.9.0.1", Port: 80, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true}
		})
	add(takesFunc, "callback", func(a *arguments) { a.fn = nil })
	add(takesContext, "context", func(a *arguments) { a.ctx = nil })
	add(takesPage, "page", func(a *arguments) { a.page = 0 }, func(a *arguments) { a.page = math.MinInt }, func(a *arguments) { a.page, a.size = 0, 0 })
	add(takesPage, "page size", func(a *arguments) { a.size = 0 }, func(a *arguments) { a.size = -1 })
	return all
}

func goodArguments(ctx context.Context) arguments {
	return arguments{ctx: ctx, service: "orders", instance: NewInstance("10.9.0.1", 8080), fn: func(Event) {}, page: 1, size: 10}
}

// N2
func TestBadArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		for _, c := range publicCalls(t) {
			for i, bad := range badArguments() {
				if c.takes&bad.of == 0 {
					continue
				}
				a := goodArguments(w.ctx)
				bad.set(&a)
				assertArgument(t, c.call(ns, a), bad.argument, "%s: %s %d", c.name, bad.argument, i)
			}
		}
		w.assertSilent(ns)
	})
}

// assertSilent says that nothing was sent and nothing is kept.
func (w *world) assertSilent(ns *NamingService) {
	w.Helper()
	time.Sleep(time.Minute)
	assert.Empty(w, w.server().Requests())
	stats := ns.Stats()
	stats.Servers = nil
	assert.Equal(w, Stats{}, stats)
	assert.Empty(w, ns.Registrations())
}

// N2: options that mean nothing to a call, and functions that are nil.
func TestOptionsThatDoNotBelongAreRefused(t *testing.T) {
	options := map[callOptionKind]CallOption{optGroup: Group("g"), optClusters: Clusters("c"), optUnhealthy: Unhealthy(),
		optNoSubscribe: NoSubscribe(), optWhere: Where(everyone), optKeepTrying: KeepTrying(), 0: {}}
	belong := map[string]callOptionKind{
		"RegisterInstance":             optGroup | optKeepTrying,
		"RegisterInstance, KeepTrying": optGroup | optKeepTrying,
		"UpdateInstance":               optGroup,
		"DeregisterInstance":           optGroup,
		"SelectInstances":              optGroup | optClusters | optWhere | optNoSubscribe | optUnhealthy,
		"GetServicesOfServer":          optGroup,
		"Services":                     optGroup,
	}
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		for _, c := range publicCalls(t) {
			base, _, _ := strings.Cut(c.name, ",")
			allowed, listed := belong[c.name]
			switch {
			case c.name == "GetServerStatus":
				continue
			case strings.HasPrefix(c.name, "Service."):
				base, allowed = "Service", optGroup|optClusters|optWhere
			case strings.Contains(c.name, "Subscribe") && c.takes&takesFunc != 0 || c.name == "Watch":
				allowed = optGroup | optClusters | optWhere
			case !listed:
				allowed = optGroup | optClusters | optWhere | optNoSubscribe
			}
			for kind, o := range options {
				a := goodArguments(w.ctx)
				a.options = []CallOption{Group("g"), o}
				if kind&allowed == 0 {
					err := c.call(ns, a)
					assertArgument(t, err, "option of "+base, "%s: %s", c.name, kind)
					assert.ErrorContains(t, err, kind.String())
				}
			}
			if c.takes&takesWhere != 0 {
				a := goodArguments(w.ctx)
				a.options = []CallOption{Where(nil)}
				assertArgument(t, c.call(ns, a), "option of "+base, c.name)
			}
		}
		for _, o := range []CallOption{Group("g"), Clusters("c"), NoSubscribe(), Where(nil), {}} {
			_, err := ns.Service("orders").Select(w.ctx, o)
			assertArgument(t, err, "option of Select")
		}
		w.assertSilent(ns)
	})
}

// N2: what is at the edge is sent; the rest is the server's to judge.
func TestArgumentsAtTheEdgeAreSent(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxTries(1))
		var in []Instance
		for _, ip := range []string{"::1", "2001:db8::1", "localhost", "a", "3com.example", "123", "host-1.example.", "A.B", strings.Repeat("a", 63)} {
			in = append(in, NewInstance(ip, 1))
		}
		for _, heft := range []float64{0, math.SmallestNonzeroFloat64, 10000} {
			in = append(in, at(65535, weight(heft)))
		}
		for _, pairs := range []map[string]string{{MetadataBeatInterval: "14999"}, {MetadataBeatInterval: "soon"}, {MetadataBeatTimeout: "-1"}, {"": "", "k": "\n\u00fc"}} {
			in = append(in, at(1, func(in *Instance) { in.Metadata = NewMetadata(pairs) }))
		}
		noCluster := at(1)
		noCluster.Cluster = ""
		for i, one := range append(in, noCluster) {
			_, err := ns.RegisterInstance(w.ctx, "orders", one)
			w.notRefusedHere(err, i)
		}
		for _, name := range []string{strings.Repeat("s", 512), "a@b", "@a", "a b", " a", "\u00fc", "a/b?c&d#e", "a,b"} {
			_, err := ns.GetAllInstances(w.ctx, name)
			w.notRefusedHere(err, name)
		}
		_, err := ns.GetAllInstances(w.ctx, "a", Group(strings.Repeat("g", 128)), Clusters("a b"))
		w.notRefusedHere(err)
		_, err = ns.GetServicesOfServer(w.ctx, math.MaxInt32, math.MaxInt32)
		w.notRefusedHere(err)
	})
}

// notRefusedHere says that a server was asked, whatever it said.
func (w *world) notRefusedHere(err error, what ...any) {
	w.Helper()
	var wrong *ArgumentError
	assert.False(w, errors.As(err, &wrong), "%v: %v", what, err)
	assert.NotEmpty(w, w.server().Requests(), what)
	w.server().ResetRequests()
}

// N5: a context that has ended, and a service that is closed.
func TestCallsThatCannotBegin(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		for _, c := range publicCalls(t) {
			if c.takes&takesContext == 0 {
				continue
			}
			for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late} {
				err := c.call(ns, goodArguments(ctx))
				if strings.HasSuffix(c.name, "Watch") {
					assert.NoError(t, err, "%s ends when its context does", c.name)
					continue
				}
				assert.ErrorIs(t, err, want, c.name)
				var failure *APIError
				assert.ErrorAs(t, err, &failure, c.name)
			}
		}
		w.assertSilent(ns)

		require.NoError(t, ns.Close())
		for _, c := range publicCalls(t) {
			assert.ErrorIs(t, c.call(ns, goodArguments(w.ctx)), ErrClosed, c.name)
		}
		w.assertSilent(ns)
		var none context.Context
		assertArgument(t, ns.Shutdown(none), "context")
		assert.NoError(t, ns.Shutdown(w.ctx))
		assert.NoError(t, ns.Close())
	})
}

// N2, N5: the calls of a Registration.
func TestBadCallsOfARegistration(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		good := NewInstance("10.9.0.1", 8080)
		reg := w.register(ns, "orders", good)
		w.server().ResetRequests()
		for i, bad := range badArguments() {
			if bad.of&(takesAddress|takesInstance) != 0 {
				a := goodArguments(w.ctx)
				bad.set(&a)
				assertArgument(t, reg.Update(w.ctx, a.instance), bad.argument, i)
			}
		}
		for _, change := range []func(*Instance){
			func(in *Instance) { in.IP = "10.9.0.2" }, func(in *Instance) { in.Port = 1 },
			func(in *Instance) { in.Cluster = "b" }, func(in *Instance) { in.Ephemeral = false },
		} {
			other := good
			change(&other)
			assertArgument(t, reg.Update(w.ctx, other), "instance")
		}
		var none context.Context
		assertArgument(t, reg.Update(none, good), "context")
		assertArgument(t, reg.Deregister(none), "context")
		assert.ErrorIs(t, reg.Update(cancelled, good), context.Canceled)
		assert.ErrorIs(t, reg.Deregister(cancelled), context.Canceled)
		assert.Empty(t, w.server().Requests())
		assert.Equal(t, StateLive, reg.State())
		require.NoError(t, ns.Close())
		assert.ErrorIs(t, reg.Update(w.ctx, good), ErrClosed)
		assert.ErrorIs(t, reg.Deregister(w.ctx), ErrClosed)
		assert.Empty(t, w.server().Requests())
	})
}

// N2: the rule stands in the text, and what was given unless it is long.
func TestArgumentErrorsQuoteTheRule(t *testing.T) {
	leakcheck.Check(t)
	for want, err := range map[string]error{
		`nacos: invalid service "a@@b": must not contain @@, which separates group and service`: checkService("g", "a@@b"),
		`nacos: invalid service: must have at most 512 bytes, this one has 600`:                 checkService("g", strings.Repeat("x", 600)),
		`nacos: invalid group "": must not be blank`:                                            checkService("", "a"),
		`nacos: invalid port 0: must be within 1 and 65535`:                                     checkAddress(NewInstance("a", 0)),
		`nacos: invalid ip "a_b": must be an IP address or a host name (RFC 1123)`:              checkAddress(NewInstance("a_b", 1)),
		`nacos: invalid weight NaN: must be within 0 and 10000`:                                 checkInstance(at(1, weight(math.NaN()))),
	} {
		assert.EqualError(t, err, want)
	}
}
