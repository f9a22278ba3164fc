package mininacos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

var persistent = []string{"ephemeral", "false"}

// accept takes connections at addr until closed, and counts them by who connects.
func accept(t *testing.T, h *memnet.Host, addr string) (ln net.Listener, from func() map[string]int) {
	t.Helper()
	ln, err := h.Listen("tcp", addr)
	require.NoError(t, err)
	counts := make(chan map[string]int, 1)
	counts <- map[string]int{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			m := <-counts
			m[host]++
			counts <- m
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	return ln, func() map[string]int {
		m := <-counts
		counts <- map[string]int{}
		return m
	}
}

// Measured: a closed port is seen unhealthy 3.3 to 6.9 s after registering (one refused connection; the first check comes 2 to
// 7 s after, mostly early), listed still after 130 s. An ip:port that answers again is healthy with the third good check.
func TestS4_ClosedPort(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			c, network := onMemnet(t, WithRandomSource(seeded(seed)))
			network.Host("10.1.1.1")
			c.register("s", "10.1.1.1", persistent...)
			changes := watch(c, "s", 130*time.Second)
			require.Len(t, changes, 2, changes)
			require.Equal(t, "10.1.1.1:80 DEFAULT w1 unhealthy", changes[1].list)
			between(t, "unhealthy", changes[1].after, 2*time.Second, 7100*time.Millisecond)

			_, from := accept(t, network.Host("10.1.1.1"), ":80")
			changes = watch(c, "s", 30*time.Second)
			require.Len(t, changes, 2, changes)
			require.Equal(t, "10.1.1.1:80 DEFAULT w1", changes[1].list)
			between(t, "healthy", changes[1].after, 5*time.Second, 15*time.Second) // measured: 10.0 s
			require.GreaterOrEqual(t, from()["10.0.0.1"], 3)
		})
	}
}

// Measured: an open port is checked after 2.3, 2.3, 1.7, 1.3, 1.0, 1.0, ... s; when it closes that is seen after 0.8 to 1.6 s.
func TestS4_OpenPortThatCloses(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			c, network := onMemnet(t, WithRandomSource(seeded(seed)))
			ln, from := accept(t, network.Host("10.1.1.1"), ":80")
			c.register("s", "10.1.1.1", persistent...)
			require.Len(t, watch(c, "s", 40*time.Second), 1)
			from()
			time.Sleep(10*time.Second + 37*time.Millisecond*time.Duration(seed))
			between(t, "ten checks' mean interval", 10*time.Second/time.Duration(from()["10.0.0.1"]), 900*time.Millisecond, 1200*time.Millisecond)
			ln.Close()
			changes := watch(c, "s", 5*time.Second)
			require.Len(t, changes, 2, changes)
			between(t, "unhealthy", changes[1].after, 0, 1600*time.Millisecond)
		})
	}
}

// Measured: a port that never answers is unhealthy with the third connect of 500 ms that times out, 13.0 s after registering.
func TestS4_TimeoutsTurnOverAfterThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, network := onMemnet(t, WithRandomSource(seeded(1)))
		network.BlackHole("10.1.1.1", true)
		c.register("s", "10.1.1.1", persistent...)
		changes := watch(c, "s", 40*time.Second)
		require.Len(t, changes, 2, changes)
		between(t, "unhealthy", changes[1].after, 6500*time.Millisecond, 20*time.Second)
	})
}

// One server of a cluster checks a service; when it stops another does.
func TestS4_OnlyTheResponsibleServerChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		cl := RunClusterT(t, 3, WithNetworks(func(i int) Network { return network.Host(fmt.Sprintf("10.0.0.%d", 1+i)) }))
		_, from := accept(t, network.Host("10.1.1.1"), ":80")
		i := NewInstance("10.1.1.1", 80)
		i.Ephemeral = false
		require.NoError(t, cl.Servers[0].Register("", "", "s", i))
		by := func() string {
			from()
			time.Sleep(30 * time.Second)
			m := from()
			require.Len(t, m, 1)
			for host := range m {
				return host
			}
			return ""
		}
		first := by()
		for _, s := range cl.Servers {
			if strings.HasPrefix(s.Addr(), first+":") {
				s.Stop()
			}
		}
		require.NotEqual(t, first, by())
		for _, s := range cl.Servers {
			require.NoError(t, s.Restart(KeepState))
		}
		require.Equal(t, first, by(), "responsibility is by hash over the servers that are up")
		for _, s := range cl.Servers {
			s.Stop()
		}
		from()
		time.Sleep(time.Minute)
		require.Empty(t, from(), "nobody checks while no server is up")
	})
}

// A cluster's health check is one task from its first instance to its last; ephemeral services have nothing to check.
func TestS2_OneHealthCheckPerCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, network := onMemnet(t, WithRandomSource(seeded(7)))
		accept(t, network.Host("10.1.1.1"), ":80")
		runs := countChecks(c.srv, "health check", "s")
		register := func(cluster string, port int) {
			i := NewInstance("10.1.1.1", port)
			i.Ephemeral, i.Cluster = false, cluster
			require.NoError(t, c.srv.Register("", "", "s", i))
		}
		for i := range 50 {
			register("a", 1000+i) // closed: a round every 5 s at most
		}
		time.Sleep(30 * time.Second)
		runs0 := runs()
		time.Sleep(50 * time.Second)
		a := runs() - runs0
		require.GreaterOrEqual(t, a, 9)
		require.LessOrEqual(t, a, 12)
		register("b", 80)
		time.Sleep(30 * time.Second)
		runs0 = runs()
		time.Sleep(10 * time.Second)
		require.GreaterOrEqual(t, runs()-runs0, 11, "cluster b has a task of its own, each second")
		for i := range 50 {
			c.srv.Deregister("", "", "s", "10.1.1.1", 1000+i)
		}
		c.srv.Deregister("", "", "s", "10.1.1.1", 80)
		runs0 = runs()
		time.Sleep(time.Hour)
		require.Equal(t, runs0, runs(), "a task outlived its cluster")

		runs = countChecks(c.srv, "health check", "e")
		c.register("e", "10.1.1.1")
		time.Sleep(20 * time.Second)
		require.Zero(t, runs())
	})
}

func TestS2_HealthCheckSurvivesPanic(t *testing.T) {
	for _, check := range []string{"health check", "connect"} {
		synctest.Test(t, func(t *testing.T) {
			c, network := onMemnet(t, WithRandomSource(seeded(7)))
			network.Host("10.1.1.1")
			var runs atomic.Int64
			setHook(c.srv, func(what string, _ serviceKey) {
				if what == check && runs.Add(1) <= 3 {
					panic("for the test")
				}
			})
			c.register("s", "10.1.1.1", persistent...)
			changes := watch(c, "s", 40*time.Second)
			require.Len(t, changes, 2, changes)
			require.Greater(t, runs.Load(), int64(3))
			between(t, "unhealthy", changes[1].after, 8*time.Second, 30*time.Second)
		})
	}
}

// Registering a persistent instance anew takes the health it says (measured), and its checks start over.
func TestS4_RegisteringAgainSetsHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, network := onMemnet(t)
		network.Host("10.1.1.1")
		c.register("s", "10.1.1.1", persistent...)
		time.Sleep(8 * time.Second)
		require.Equal(t, []string{"10.1.1.1:80 DEFAULT w1 unhealthy"}, c.list("s"))
		c.register("s", "10.1.1.1", persistent...)
		require.Equal(t, []string{"10.1.1.1:80 DEFAULT w1"}, c.list("s"))
		time.Sleep(8 * time.Second)
		require.Equal(t, []string{"10.1.1.1:80 DEFAULT w1 unhealthy"}, c.list("s"))
	})
}

// However many instances do not answer, no more connects than workers wait at once, and all are looked at in the end.
func TestS4_ConnectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		n := &countingNetwork{Network: network.Host("10.0.0.1")}
		srv := RunT(t, WithNetwork(n))
		network.BlackHole("10.1.1.1", true)
		for i := range 3 * connectWorkers {
			in := NewInstance("10.1.1.1", 1+i)
			in.Ephemeral = false
			require.NoError(t, srv.Register("", "", "s", in))
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, connectWorkers, n.most.Load())
		require.NoError(t, srv.ExpectInstances("", "", "s"))
		require.Len(t, srv.Instances("", "", "s"), 3*connectWorkers)
	})
}

// countingNetwork counts the dials that wait.
type countingNetwork struct {
	Network
	now, most atomic.Int64
}

func (n *countingNetwork) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	now := n.now.Add(1)
	defer n.now.Add(-1)
	for {
		most := n.most.Load()
		if now <= most || n.most.CompareAndSwap(most, now) {
			return n.Network.DialContext(ctx, network, addr)
		}
	}
}

func TestS4_Judge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // pure; in a bubble as every test has a leak check
		type step struct {
			good, refused bool
			healthy       bool
		}
		for name, steps := range map[string][]step{
			"refused at once":        {{false, true, false}},
			"three failures":         {{false, false, true}, {false, false, true}, {false, false, false}},
			"a good one starts over": {{false, false, true}, {false, false, true}, {true, false, true}, {false, false, true}, {false, false, true}, {false, false, false}},
			"three good ones":        {{false, true, false}, {true, false, false}, {true, false, false}, {true, false, true}},
			"a bad one starts over":  {{false, true, false}, {true, false, false}, {true, false, false}, {false, false, false}, {true, false, false}, {true, false, false}, {true, false, true}},
		} {
			healthy, ok, failed := true, 0, 0
			for i, s := range steps {
				healthy, ok, failed = judge(healthy, ok, failed, s.good, s.refused)
				require.Equal(t, s.healthy, healthy, "%s, step %d", name, i)
			}
		}
		timeout := errors.New("timeout")
		require.Equal(t, 1500*time.Millisecond, adapt(2*time.Second, time.Millisecond, nil, false).Round(time.Millisecond))
		require.Equal(t, time.Second, adapt(time.Second, time.Millisecond, nil, false))
		require.Equal(t, 2750*time.Millisecond, adapt(2*time.Second, 0, syscall.ECONNREFUSED, true))
		require.Equal(t, 2500*time.Millisecond, adapt(2*time.Second, connectTimeout, timeout, false))
		require.Equal(t, 5*time.Second, adapt(5*time.Second, connectTimeout, timeout, false))
	})
}
