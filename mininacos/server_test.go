package mininacos

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

func TestEveryTestChecksForLeaks(t *testing.T) { leakcheck.Covered(t, ".") }

// everywhere runs a test against a server on memnet in a bubble, and against one on real sockets.
func everywhere(t *testing.T, test func(t *testing.T, c *client)) {
	t.Run("memnet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := onMemnet(t)
			test(t, c)
		})
	})
	t.Run("sockets", func(t *testing.T) {
		leakcheck.Check(t)
		test(t, newClient(t, RunT(t), realNetwork{}))
	})
}

func TestS8_StopRestartWithAndWithoutMemory(t *testing.T) {
	leakcheck.Check(t)
	everywhere(t, func(t *testing.T, c *client) {
		addr := c.srv.Addr()
		c.register("s", "10.1.1.1")
		c.update("s", "10.1.1.1", "weight", "9")
		one := []string{"10.1.1.1:80 DEFAULT w9"}
		require.Equal(t, one, c.list("s"))

		c.srv.Stop()
		_, err := c.try("GET", wire.PathMetrics)
		require.Error(t, err)
		require.Equal(t, addr, c.srv.Addr())
		require.Len(t, c.srv.Instances("", "", "s"), 1, "direct access needs no server")
		c.srv.Stop() // again: nothing

		require.NoError(t, c.srv.Restart(KeepState))
		require.Equal(t, addr, c.srv.Addr())
		require.Equal(t, one, c.list("s"))

		require.NoError(t, c.srv.Restart(LoseState)) // running
		require.Equal(t, addr, c.srv.Addr())
		require.Empty(t, c.list("s"))
		require.Empty(t, c.srv.Services(""))
		c.register("s", "10.1.1.1", "ephemeral", "false")
		require.Equal(t, []string{"10.1.1.1:80 DEFAULT w1"}, c.list("s"), "the overlay is lost too")

		c.srv.Close()
		c.srv.Close()
		require.ErrorIs(t, c.srv.Restart(KeepState), ErrClosed)
		_, err = c.try("GET", wire.PathMetrics)
		require.Error(t, err)
	})
}

// Nobody can beat while no server is up, so a restart with memory starts the silence of all anew.
func TestS8_RestartGivesFreshBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		c.register("s", "10.1.1.1")
		time.Sleep(time.Second)
		c.srv.Stop()
		time.Sleep(time.Hour)
		require.NoError(t, c.srv.Restart(KeepState))
		changes := watch(c, "s", 40*time.Second)
		require.Len(t, changes, 3, changes)
		between(t, "unhealthy", changes[1].after, 15*time.Second, 20800*time.Millisecond)
	})
}

// A cluster shares one state; it is lost only with the last server that has it.
func TestS8_ClusterSharesState(t *testing.T) {
	check := func(t *testing.T, cl *Cluster, n Network) {
		var cs []*client
		for _, s := range cl.Servers {
			cs = append(cs, newClient(t, s, n))
		}
		require.Len(t, cl.Addrs(), 3)
		one := []string{"10.1.1.1:80 DEFAULT w1"}
		cs[0].register("s", "10.1.1.1")
		for _, c := range cs {
			require.Equal(t, one, c.list("s"))
		}
		cs[1].lightBeat("s", "10.1.1.1")
		for _, s := range cl.Servers {
			require.NoError(t, s.Restart(LoseState))
		}
		require.Equal(t, one, cs[2].list("s"), "one at a time: the others had it")
		for _, s := range cl.Servers {
			s.Stop()
		}
		require.NoError(t, cl.Servers[1].Restart(KeepState))
		require.NoError(t, cl.Servers[0].Restart(LoseState))
		require.Equal(t, one, cs[0].list("s"))
		cl.Servers[1].Stop()
		cl.Servers[0].Stop()
		require.NoError(t, cl.Servers[2].Restart(LoseState))
		require.Empty(t, cs[2].list("s"), "nobody was left who knew")
		remove := cl.Intercept(func(*Request) Fault { return Fault{Status: http.StatusServiceUnavailable} })
		require.Equal(t, http.StatusServiceUnavailable, cs[2].do("GET", wire.PathMetrics).status)
		remove()
		require.Equal(t, http.StatusOK, cs[2].do("GET", wire.PathMetrics).status)
		cl.Close()
		cl.Close()
	}
	t.Run("memnet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := memnet.New(1)
			hosts := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
			check(t, RunClusterT(t, 3, WithNetworks(func(i int) Network { return network.Host(hosts[i]) })), network.Host("10.0.0.99"))
			time.Sleep(time.Millisecond) // the clients' side learns of it
			require.Zero(t, network.OpenConns())
		})
	})
	t.Run("memnet, one host", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := memnet.New(1)
			check(t, RunClusterT(t, 3, WithNetwork(network.Host("10.0.0.1"))), network.Host("10.0.0.99"))
		})
	})
	t.Run("sockets", func(t *testing.T) {
		leakcheck.Check(t)
		check(t, RunClusterT(t, 3), realNetwork{})
	})
}

func TestS8_RunFailsClearly(t *testing.T) {
	leakcheck.Check(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, err = Run(WithAddr(ln.Addr().String()))
	require.ErrorContains(t, err, "mininacos: listen on "+ln.Addr().String())
	_, err = RunCluster(0)
	require.Error(t, err)

	fake := &fakeTB{}
	require.Nil(t, RunClusterT(fake, 1, WithAddr(ln.Addr().String())))
	require.True(t, fake.failed)
}

type fakeTB struct{ failed bool }

func (*fakeTB) Helper()                 {}
func (*fakeTB) Cleanup(func())          {}
func (f *fakeTB) Fatalf(string, ...any) { f.failed = true }
func (*fakeTB) Logf(string, ...any)     {}

// A server that cannot have its address back says so, and can try again.
func TestS8_RestartWhilePortIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, network := onMemnet(t)
		c.srv.Stop()
		ln, err := network.Host("10.0.0.1").Listen("tcp", c.srv.Addr())
		require.NoError(t, err)
		require.Error(t, c.srv.Restart(KeepState))
		require.NoError(t, ln.Close())
		require.NoError(t, c.srv.Restart(KeepState))
		c.ok("GET", wire.PathMetrics)
	})
}

// Stop and Restart from everywhere at once, with requests in flight: it ends, up or down, and serves if up.
func TestS8_LifecycleIsSafeForConcurrentUse(t *testing.T) {
	leakcheck.Check(t)
	srv := RunT(t)
	c := newClient(t, srv, realNetwork{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				srv.Stop()
				_ = srv.Restart(KeepState)
			}
		})
		wg.Go(func() {
			for range 100 {
				_, _ = c.try("POST", wire.PathInstance, "serviceName", "s", "ip", "10.1.1.1", "port", "80")
				_, _ = c.try("GET", wire.PathInstanceList, "serviceName", "s")
				_ = srv.Instances("", "", "s")
			}
		})
	}
	wg.Wait()
	require.NoError(t, srv.Restart(KeepState))
	c.http.CloseIdleConnections() // a POST is not tried again on a new one
	c.register("s", "10.1.1.2")
}

func TestS8_DirectAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		srv := c.srv
		require.NoError(t, srv.ExpectInstances("", "", "s"))
		require.NoError(t, srv.Register("", "", "s", NewInstance("10.1.1.1", 80)))
		require.NoError(t, srv.Register("n", "g", "s", Instance{IP: "10.1.1.2", Port: 81, Metadata: map[string]string{"a": "b"}}))
		require.Error(t, srv.Register("", "", "s", Instance{IP: "10.1.1.3", Port: 80, Weight: -1}))
		require.ErrorContains(t, srv.Register("", "", "s", Instance{IP: "10.1.1.3", Port: 80}), "is ephemeral service", "an Instance literal is not ephemeral")
		require.Equal(t, []string{"DEFAULT_GROUP@@s"}, srv.Services(""))
		require.Equal(t, []string{"g@@s"}, srv.Services("n"))
		require.Equal(t, []Instance{{IP: "10.1.1.2", Port: 81, Cluster: "DEFAULT", Metadata: map[string]string{"a": "b"}}}, srv.Instances("n", "g", "s"))

		require.NoError(t, srv.ExpectInstances("", "", "s", "10.1.1.1:80"))
		require.EqualError(t, srv.ExpectInstances("n", "g", "s", "10.1.1.2:81"),
			"mininacos: service g@@s: want 10.1.1.2:81, have 10.1.1.2:81 unhealthy disabled")
		up := NewInstance("10.1.1.2", 81)
		up.Weight = 7
		require.NoError(t, srv.Update("n", "g", "s", up))
		require.NoError(t, srv.SetHealthy("n", "g", "s", "10.1.1.2", 81, true))
		require.NoError(t, srv.ExpectInstances("n", "g", "s", "10.1.1.2:81"))
		require.Equal(t, []string{"10.1.1.2:81 DEFAULT w7 a=b"}, c.list("g@@s", "namespaceId", "n"))

		last, ok := srv.LastBeat("", "", "s", "10.1.1.1", 80)
		require.True(t, ok)
		time.Sleep(3 * time.Second)
		c.lightBeat("s", "10.1.1.1")
		beat, _ := srv.LastBeat("", "", "s", "10.1.1.1", 80)
		between(t, "beat", beat.Sub(last), 3*time.Second, 3100*time.Millisecond)
		_, ok = srv.LastBeat("n", "g", "s", "10.1.1.2", 81)
		require.False(t, ok, "persistent")

		require.Error(t, srv.SetHealthy("", "", "s", "10.1.1.9", 80, true))
		require.Error(t, srv.SetProtectThreshold("", "", "none", 0.5))
		require.Error(t, srv.Update("", "", "none", up))
		srv.Deregister("n", "g", "s", "10.1.1.2", 81)
		srv.Deregister("n", "g", "s", "10.1.1.2", 81)
		require.Empty(t, srv.Instances("n", "g", "s"))
	})
}

func TestS8_RequestsAreCountedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		c.register("s", "10.1.1.1")
		for range logSize {
			c.lightBeat("s", "10.1.1.1")
		}
		c.do("GET", "/v1/ns/nothing")
		require.Equal(t, map[API]int{APIRegister: 1, APIBeat: logSize, APIOther: 1}, c.srv.Requests())
		log := c.srv.RequestLog()
		require.Len(t, log, logSize)
		require.Equal(t, APIBeat, log[0].API, "the register call is forgotten")
		first, last := log[0], log[logSize-1]
		require.Equal(t, "/nacos/v1/ns/nothing", last.Path)
		require.Equal(t, "10.1.1.1", first.Param("ip"))
		require.Equal(t, "PUT", first.Method)
		require.Contains(t, first.UserAgent(), "Go-http-client")
		require.True(t, strings.HasPrefix(first.RemoteAddr, "10.0.0.99:"))
		require.False(t, last.Time.Before(first.Time))
		c.srv.ResetRequests()
		require.Empty(t, c.srv.Requests())
		require.Empty(t, c.srv.RequestLog())
	})
}

// A client that goes in the middle of its body costs nothing but its connection.
func TestS8_ClientThatGoesInItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, network := onMemnet(t)
		conn, err := network.Host("10.0.0.99").DialContext(context.Background(), "tcp", c.srv.Addr())
		require.NoError(t, err)
		_, err = conn.Write([]byte("POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nserv"))
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		require.NoError(t, conn.Close())
		time.Sleep(time.Millisecond)
		require.Empty(t, c.srv.Requests())
		require.Zero(t, network.OpenConns())
		c.register("s", "10.1.1.1")
	})
}

// Closing does not wait for clients: idle connections, half requests and open ones are cut.
func TestS8_CloseCutsConnections(t *testing.T) {
	leakcheck.Check(t)
	everywhere(t, func(t *testing.T, c *client) {
		var d net.Dialer
		dial := d.DialContext
		if !strings.HasPrefix(c.srv.Addr(), "127.") {
			dial = c.http.Transport.(*http.Transport).DialContext
		}
		c.register("s", "10.1.1.1") // leaves an idle connection
		conn, err := dial(context.Background(), "tcp", c.srv.Addr())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("GET /nacos/v1/ns/instance/list?serviceName=s HT"))
		require.NoError(t, err)
		c.srv.Stop()
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.False(t, errors.Is(err, context.DeadlineExceeded))
	})
}
