package mininacos

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"go.uber.org/zap"
)

// Network is what a server needs of a network: to listen, and to connect to the persistent instances it checks. A host of
// package memnet is one; the default is the real network.
type Network interface {
	Listen(network, addr string) (net.Listener, error)
	ListenPacket(network, addr string) (net.PacketConn, error)
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// Option is a setting of Run, RunT, RunCluster and RunClusterT.
type Option func(*config)

type config struct {
	addr    string
	network func(i int) Network // nil: the real one
	shared  bool                // one network given for all servers
	logger  *zap.Logger
	offset  time.Duration
	random  rand.Source
	cache   time.Duration
}

// newConfig has all defaults, for n servers.
func newConfig(n int, opts []Option) *config {
	c := &config{logger: zap.NewNop(), cache: defaultCache}
	for _, o := range opts {
		o(c)
	}
	if c.addr == "" {
		switch {
		case c.network == nil:
			c.addr = "127.0.0.1:0"
		case c.shared && n > 1:
			c.addr = ":0"
		default:
			c.addr = ":8848" // each server has a host of its own
		}
	}
	if c.network == nil {
		c.network = func(int) Network { return realNetwork{} }
	}
	if c.random == nil {
		c.random = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	return c
}

// WithAddr sets the address to listen on. Default: a free port of 127.0.0.1; on the host given by WithNetwork or WithNetworks
// port 8848, or a free one for each server of a cluster that shares it. Port 0 is a free port, kept by Restart.
func WithAddr(addr string) Option { return func(c *config) { c.addr = addr } }

// WithNetwork sets the network every server listens on and connects through. Default: the real one. nil is the default.
func WithNetwork(n Network) Option {
	return func(c *config) {
		c.network, c.shared = nil, false
		if n != nil {
			c.network, c.shared = func(int) Network { return n }, true
		}
	}
}

// WithNetworks sets a network for each server of a cluster, by its index in Cluster.Servers: on memnet each is a host of
// its own. Default: the real one for all. nil is the default.
func WithNetworks(of func(i int) Network) Option {
	return func(c *config) { c.network, c.shared = of, false }
}

// WithLogger sets the logger. Default: none. nil is the default. It gets what changes (servers, instances, health), and
// panics in checks; nothing per request.
func WithLogger(l *zap.Logger) Option {
	return func(c *config) {
		if l == nil {
			l = zap.NewNop()
		}
		c.logger = l
	}
}

// WithClockOffset makes the servers' clock, which they put into lastRefTime, wrong by d. Default: 0, the true time.
// Server.SetClockOffset changes it for one.
func WithClockOffset(d time.Duration) Option { return func(c *config) { c.offset = d } }

// WithCacheMillis sets how long lists tell clients to keep them (cacheMillis), in whole milliseconds: clients that are not
// pushed to see a change that long after it. Default: 10 s, as 2.x. Less than 1 s is 1 s.
func WithCacheMillis(d time.Duration) Option { return func(c *config) { c.cache = max(d, minCache) } }

// WithRandomSource sets where the intervals of health checks are drawn from, so that a run repeats. Default: a source
// seeded at random. nil is the default. The source is not used by two goroutines at once.
func WithRandomSource(s rand.Source) Option { return func(c *config) { c.random = s } }

// realNetwork is the network of the machine.
type realNetwork struct{}

func (realNetwork) Listen(network, addr string) (net.Listener, error) {
	return net.Listen(network, addr)
}

func (realNetwork) ListenPacket(network, addr string) (net.PacketConn, error) {
	return net.ListenPacket(network, addr)
}

func (realNetwork) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, addr)
}
