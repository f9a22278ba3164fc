package nacos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Heartbeat times of Nacos servers, for instances whose metadata does not say otherwise.
const (
	defaultBeatInterval  = 5 * time.Second
	defaultBeatTimeout   = 15 * time.Second
	defaultDeleteTimeout = 30 * time.Second
)

// Forever is a grace time for WithEmptyProtection that does not end.
const Forever time.Duration = math.MaxInt64

// config is what the options set. It is complete after defaults and checked by validate; nobody changes
// it later.
type config struct {
	servers     []string
	contextPath string
	namespace   string
	appName     string
	logger      *zap.Logger

	connectTimeout time.Duration
	requestTimeout time.Duration
	maxTries       int
	serverPenalty  time.Duration
	closeTimeout   time.Duration

	beatInterval time.Duration
	beatGrid     time.Duration
	beatWorkers  int

	pollInterval    time.Duration
	minPollInterval time.Duration
	firstPollDelay  time.Duration
	maxPollBackoff  time.Duration
	pollWorkers     int
	idleExpiry      time.Duration
	maxServices     int

	emptyProtection      time.Duration
	serverAdoption       bool
	deregisterPersistent bool

	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	roundTripper roundTripper
	randomSource rand.Source
}

// defaults returns every default, each with its reason where it is not the one of Nacos' Java client.
func defaults() config {
	return config{
		contextPath: "/nacos",
		namespace:   DefaultNamespace,
		logger:      zap.NewNop(), // a library does not write where nobody asked it to

		connectTimeout: 3 * time.Second,
		requestTimeout: 10 * time.Second, // Java: 50 s, longer than an instance lives without a beat
		maxTries:       3,
		serverPenalty:  10 * time.Second,
		closeTimeout:   5 * time.Second,

		beatInterval: defaultBeatInterval,
		beatGrid:     500 * time.Millisecond, // small bursts cost a third of the CPU of an even trickle
		beatWorkers:  16,

		pollInterval:    10 * time.Second,
		minPollInterval: time.Second,
		firstPollDelay:  time.Second,
		maxPollBackoff:  time.Minute,
		pollWorkers:     max(2, runtime.GOMAXPROCS(0)),
		idleExpiry:      5 * time.Minute,
		maxServices:     10_000,

		serverAdoption: true,
	}
}

// Option sets one thing about a NamingService; NewNamingService reports the first one that is wrong. A duration
// or count out of range is; so is 0 unless the option says what it means.
type Option struct {
	name  string
	apply func(*config) error // the error says what is right
}

// set makes an option whose value is refused, with a text that says what is right, unless ok.
func set(name string, ok bool, rule string, apply func(*config)) Option {
	return Option{name: name, apply: func(c *config) error {
		if !ok {
			return &ArgumentError{Argument: "option " + name, Rule: rule}
		}
		apply(c)
		return nil
	}}
}

func setDuration(name string, d, low, high time.Duration, field func(*config) *time.Duration) Option {
	return set(name, d >= low && d <= high, fmt.Sprintf("%s is not within %s and %s", d, low, high), func(c *config) { *field(c) = d })
}

func setCount(name string, n, low, high int, field func(*config) *int) Option {
	return set(name, n >= low && n <= high, fmt.Sprintf("%d is not within %d and %d", n, low, high), func(c *config) { *field(c) = n })
}

// WithServers sets the Nacos servers, each as host, host:port, [v6]:port or
// http(s)://host[:port][/context]. The default port is 8848, or the scheme's own where one is given. With
// several, requests start at a random one and go on to the next when one fails; a single one, such as a
// domain in front of a cluster, is tried several times (WithMaxTries). There is no default: without a
// server every request fails with ErrNoServer.
func WithServers(addresses ...string) Option {
	return Option{name: "WithServers", apply: func(c *config) error {
		for _, a := range addresses {
			_, err := parseServer(a, "/")
			var wrong *ArgumentError
			if errors.As(err, &wrong) {
				return &ArgumentError{Argument: "option WithServers", Value: wrong.Value, Rule: wrong.Rule}
			}
		}
		c.servers = append([]string(nil), addresses...)
		return nil
	}}
}

// WithContextPath sets the path under which servers answer, default "/nacos". A server address that has a
// path of its own keeps that.
func WithContextPath(path string) Option {
	ok := !strings.ContainsAny(path, "?#%") && !hasControl(path)
	return set("WithContextPath", ok, "must be a plain path such as /nacos", func(c *config) {
		c.contextPath = cleanPath(path)
	})
}

// WithNamespace sets the namespace that all calls work in, by its id; default (and "") "public".
func WithNamespace(id string) Option {
	return set("WithNamespace", !hasControl(id) && strings.TrimSpace(id) == id, "must not contain control characters or begin or end with a blank", func(c *config) {
		if c.namespace = id; id == "" {
			c.namespace = DefaultNamespace
		}
	})
}

// WithAppName sets the name of the application that servers show for a subscriber; default none.
func WithAppName(name string) Option {
	return set("WithAppName", !hasControl(name), "must not contain control characters", func(c *config) { c.appName = name })
}

// WithLogger sets the logger; the default logs nothing. Parts log under their own names: beat, host,
// event, server. Nothing is logged periodically or by lookups.
func WithLogger(logger *zap.Logger) Option {
	return set("WithLogger", logger != nil, "the logger is nil; leave the option out to log nothing", func(c *config) { c.logger = logger })
}

// WithConnectTimeout sets how long opening a connection may take, default 3 s.
func WithConnectTimeout(d time.Duration) Option {
	return setDuration("WithConnectTimeout", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.connectTimeout })
}

// WithRequestTimeout sets how long one try of a request may take as a whole, default 10 s. Heartbeats
// have less: a quarter of their period, at most 3 s.
func WithRequestTimeout(d time.Duration) Option {
	return setDuration("WithRequestTimeout", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.requestTimeout })
}

// WithMaxTries sets how often a request is tried when there is only one server, with growing pauses;
// default 3. With several servers each is tried once.
func WithMaxTries(n int) Option {
	return setCount("WithMaxTries", n, 1, 100, func(c *config) *int { return &c.maxTries })
}

// WithServerPenalty sets for how long a server that could not be reached is tried after all others,
// default 10 s; 0 means no longer than any other.
func WithServerPenalty(d time.Duration) Option {
	return setDuration("WithServerPenalty", d, 0, time.Hour, func(c *config) *time.Duration { return &c.serverPenalty })
}

// WithCloseTimeout sets for how long Close waits for running callbacks, default 5 s.
func WithCloseTimeout(d time.Duration) Option {
	return setDuration("WithCloseTimeout", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.closeTimeout })
}

// WithBeatInterval sets the time between two heartbeats of an instance, default 5 s, for instances whose
// metadata does not set it and until a server asks for another. It must stay below the 15 s after which
// servers take an instance for unhealthy. Servers do not learn of it: timeouts in metadata must be above 5 s too
// unless MetadataBeatInterval stands beside them.
func WithBeatInterval(d time.Duration) Option {
	return setDuration("WithBeatInterval", d, minBeatInterval, defaultBeatTimeout-time.Millisecond, func(c *config) *time.Duration { return &c.beatInterval })
}

// WithBeatGrid sets the raster that heartbeat times are rounded down to, so that they go out in small
// bursts, default 500 ms and never more than a tenth of the interval; 0 sends each at its own time.
func WithBeatGrid(d time.Duration) Option {
	return setDuration("WithBeatGrid", d, 0, time.Minute, func(c *config) *time.Duration { return &c.beatGrid })
}

// WithBeatWorkers sets how many heartbeats may be under way at once, default 16. When there are several
// servers, none of them holds more than half.
func WithBeatWorkers(n int) Option {
	return setCount("WithBeatWorkers", n, 1, 10_000, func(c *config) *int { return &c.beatWorkers })
}

// WithPollInterval sets the time between two queries of a service that is in use, default 10 s, where the
// server does not set it (servers do: the cacheMillis of their lists).
func WithPollInterval(d time.Duration) Option {
	return setDuration("WithPollInterval", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.pollInterval })
}

// WithMinPollInterval sets the shortest time between two queries of a service that a server may ask for,
// default 1 s.
func WithMinPollInterval(d time.Duration) Option {
	return setDuration("WithMinPollInterval", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.minPollInterval })
}

// WithFirstPollDelay sets how long after the first query of a service the second one follows, default 1 s.
func WithFirstPollDelay(d time.Duration) Option {
	return setDuration("WithFirstPollDelay", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.firstPollDelay })
}

// WithMaxPollBackoff sets the longest time between two queries of a service while they fail, default 60 s.
func WithMaxPollBackoff(d time.Duration) Option {
	return setDuration("WithMaxPollBackoff", d, time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.maxPollBackoff })
}

// WithPollWorkers sets how many services may be queried again at once, default GOMAXPROCS, at least 2.
func WithPollWorkers(n int) Option {
	return setCount("WithPollWorkers", n, 1, 10_000, func(c *config) *int { return &c.pollWorkers })
}

// WithIdleExpiry sets after how long a service that nobody subscribes to or looks up is forgotten, default
// 5 min. It is noticed at the next query of the service.
func WithIdleExpiry(d time.Duration) Option {
	return setDuration("WithIdleExpiry", d, time.Millisecond, Forever, func(c *config) *time.Duration { return &c.idleExpiry })
}

// WithMaxServices sets how many services lookups may keep in memory, default 10000, so that names made up
// by callers cost no unbounded memory. Lookups of more than that ask a server each time; subscriptions are
// never refused.
func WithMaxServices(n int) Option {
	return setCount("WithMaxServices", n, 1, math.MaxInt32, func(c *config) *int { return &c.maxServices })
}

// WithEmptyProtection holds a list that became empty or wholly unhealthy back for the grace time and
// answers with the one before, marked as Protected; Forever holds it until a healthy instance appears.
// The default (and 0) is no protection: what the server says counts at once.
func WithEmptyProtection(grace time.Duration) Option {
	return setDuration("WithEmptyProtection", grace, 0, Forever, func(c *config) *time.Duration { return &c.emptyProtection })
}

// WithoutServerAdoption keeps weight and metadata of registered instances as the application set them. By
// default those that the server shows for an own instance, because somebody changed them in its console,
// replace them until the application registers or updates the instance again, so that a registration
// renewed after a server lost it brings the changed ones.
func WithoutServerAdoption() Option {
	return set("WithoutServerAdoption", true, "", func(c *config) { c.serverAdoption = false })
}

// WithDeregisterPersistent makes Shutdown deregister persistent instances too; by default they outlive
// the process and only ephemeral ones are deregistered.
func WithDeregisterPersistent() Option {
	return set("WithDeregisterPersistent", true, "", func(c *config) { c.deregisterPersistent = true })
}

// WithDialer sets how connections to servers are opened, default a net.Dialer. network is "tcp".
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return set("WithDialer", dial != nil, "the function is nil", func(c *config) { c.dial = dial })
}

// WithRandomSource sets where every random choice comes from (order of servers, jitter, choice of
// instances), default the runtime's generator. It is used under a lock.
func WithRandomSource(src rand.Source) Option {
	return set("WithRandomSource", src != nil, "the source is nil", func(c *config) { c.randomSource = src })
}

// newConfig applies the options to the defaults.
func newConfig(options []Option) (config, error) {
	c := defaults()
	for i, o := range options {
		if o.apply == nil {
			return c, &ArgumentError{Argument: fmt.Sprintf("option %d", i+1), Rule: "is the zero Option; use the With functions"}
		}
		if err := o.apply(&c); err != nil {
			return c, err
		}
	}
	if c.dial != nil && c.roundTripper != nil {
		return c, &ArgumentError{Argument: "option WithDialer", Rule: "does nothing beside WithRoundTripper; give one of them"}
	}
	return c, nil
}
