package nacos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/mininacos"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

func TestEveryTestChecksForLeaks(t *testing.T) { leakcheck.Covered(t, ".") }

// world is a cluster of servers on a network in memory, in the bubble of a test.
type world struct {
	*testing.T
	ctx     context.Context
	net     *memnet.Network
	cluster *mininacos.Cluster
	servers []*mininacos.Server
	seed    uint64
}

func serverIP(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

// inWorld runs a test in a bubble with n servers. The bubble ends only when every goroutine has, so it is a
// leak check too.
func inWorld(t *testing.T, n int, test func(w *world), options ...mininacos.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: t.Context(), net: memnet.New(1)}
		hosts := make([]*memnet.Host, n)
		for i := range hosts {
			hosts[i] = w.net.Host(serverIP(i))
		}
		options = append(options, mininacos.WithRandomSource(rand.NewPCG(1, 2)),
			mininacos.WithNetworks(func(i int) mininacos.Network { return hosts[i] }))
		w.cluster = mininacos.RunClusterT(t, n, options...)
		w.servers = w.cluster.Servers
		test(w)
	})
}

// server is the first one.
func (w *world) server() *mininacos.Server { return w.servers[0] }

// client makes a client on a host of its own that knows all servers; it is closed at the end of the test
// unless the test did so.
func (w *world) client(options ...Option) *NamingService {
	w.Helper()
	w.seed++
	host := w.net.Host(fmt.Sprintf("10.1.0.%d", w.seed))
	options = append([]Option{WithServers(w.cluster.Addrs()...), WithDialer(host.DialContext), WithRandomSource(rand.NewPCG(w.seed, 3))}, options...)
	ns, err := NewNamingService(options...)
	require.NoError(w, err)
	w.Cleanup(func() {
		if err := ns.Close(); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return ns
}

// register registers the instance or ends the test.
func (w *world) register(ns *NamingService, service string, in Instance, options ...CallOption) *Registration {
	w.Helper()
	reg, err := ns.RegisterInstance(w.ctx, service, in, options...)
	require.NoError(w, err)
	return reg
}

// logged makes an option for a logger whose entries a test can look at.
func logged() (Option, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return WithLogger(zap.New(core)), logs
}

// moment lets what is on the network arrive and be worked on.
func moment() { time.Sleep(time.Millisecond) }

// expect fails the test unless exactly these healthy instances of DEFAULT_GROUP are on the server.
func (w *world) expect(s *mininacos.Server, service string, addrs ...string) {
	w.Helper()
	require.NoError(w, s.ExpectInstances("", "", service, addrs...))
}
