package nacos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos"
)

// P5, P7: what each status means. Both servers answer with it.
func TestStatuses(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		for _, c := range []struct {
			status    int
			body      string
			goesOn    bool
			marks     bool // the servers count as failing
			lacks     bool // ErrAPIUnavailable
			retryable bool
			acted     bool // some server may have done it
		}{
			{status: 500, body: "caused: weight is wrong;", goesOn: true},
			{status: 500, body: "java.lang.NullPointerException", goesOn: true, retryable: true, acted: true},
			{status: 502, body: "<html>bad gateway</html>", goesOn: true, marks: true, retryable: true, acted: true},
			{status: 503, body: "server is DOWN now", goesOn: true, marks: true, retryable: true, acted: true},
			{status: 504, goesOn: true, marks: true, retryable: true, acted: true},
			{status: 505, goesOn: true, retryable: true, acted: true},
			{status: 599, goesOn: true, retryable: true, acted: true},
			{status: 429, body: "slow down", goesOn: true, retryable: true},
			{status: 400, body: "caused: no ip;"}, {status: 401}, {status: 403, body: "token invalid!"}, {status: 405}, {status: 418}, {status: 499},
			{status: 404, goesOn: true, lacks: true},
			{status: 410, body: `{"code":40000,"message":"deprecated"}`, goesOn: true, lacks: true},
			{status: 501, body: "no such api", goesOn: true, lacks: true},
			{status: 301, goesOn: true}, {status: 304, goesOn: true},
			{status: 201, goesOn: true, retryable: true, acted: true},
		} {
			remove := w.cluster.Intercept(always(mininacos.Fault{Status: c.status, Body: c.body}))
			ns := w.client()
			w.askedEach()
			err := ns.UpdateInstance(w.ctx, "orders", NewInstance("10.9.0.1", 8080))
			failure, name := w.failure(err), fmt.Sprintf("%d %s", c.status, c.body)
			assert.Equal(t, c.goesOn, sum(w.askedEach()) == 2, name)
			assert.Equal(t, c.status, failure.Status, name)
			assert.Equal(t, c.lacks, errors.Is(err, ErrAPIUnavailable), name)
			assert.Equal(t, c.retryable, failure.Retryable, name)
			assert.Equal(t, c.acted, mayHaveActed(err), name)
			assert.Contains(t, failure.Message, wire.ErrorMessage([]byte(c.body)), "P7: %s", name)
			assert.Equal(t, wire.ErrorCode([]byte(c.body)), failure.Code, "P4: %s", name)
			for _, s := range ns.Stats().Servers {
				assert.Equal(t, c.marks, s.Failing, name)
			}
			remove()
			if !c.lacks {
				_, err = ns.GetServerStatus(w.ctx)
				assert.NoError(t, err, "%s: another answer helps at once", name)
			}
		}
	})
}

// P5: an API that one server lacks is asked of the others, and of that one again a minute later.
func TestServerThatLacksAnAPI(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		ns := w.client()
		remove := w.server().Intercept(func(r *mininacos.Request) mininacos.Fault {
			if r.API == mininacos.APIMetrics {
				return mininacos.Fault{Status: 410}
			}
			return mininacos.Fault{}
		})
		status := func() error { _, err := ns.GetServerStatus(w.ctx); return err }
		for range 20 {
			require.NoError(t, status())
		}
		assert.Equal(t, 1, w.askedEach()[0], "it was believed")

		w.servers[1].Stop()
		assert.NotErrorIs(t, status(), ErrAPIUnavailable, "the other one has it")
		w.askedEach()
		require.NoError(t, w.servers[1].Restart(mininacos.KeepState))
		time.Sleep(time.Minute)
		w.askedEach()
		for range 20 {
			require.NoError(t, status())
		}
		assert.Equal(t, 1, w.askedEach()[0], "asked again after a minute")
		remove()
		time.Sleep(time.Minute)
		w.servers[1].Stop()
		require.NoError(t, status(), "it has the API now")
	})
}

// P5: ErrAPIUnavailable means that no server has the API, not that one lacks it and the other is down.
func TestAPIOfAServerThatIsDownIsNotUnavailable(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		remove := w.server().Intercept(always(mininacos.Fault{Status: 404}))
		w.servers[1].Stop()
		for range 10 { // whichever is asked first
			_, err := w.client().GetServerStatus(w.ctx)
			failure := w.failure(err)
			assert.NotErrorIs(t, err, ErrAPIUnavailable)
			assert.ErrorIs(t, err, syscall.ECONNREFUSED)
			assert.True(t, failure.Retryable)
			assert.Equal(t, w.servers[1].Addr(), failure.Server)
			assert.ElementsMatch(t, w.cluster.Addrs(), failure.Servers)
		}
		remove()

		require.NoError(t, w.servers[1].Restart(mininacos.KeepState))
		remove = w.cluster.Intercept(always(mininacos.Fault{Status: 501, Body: "no such api"}))
		ns := w.client()
		w.askedEach()
		for range 3 {
			_, err := ns.GetServerStatus(w.ctx)
			assert.ErrorIs(t, err, ErrAPIUnavailable)
			assert.Contains(t, err.Error(), "nacos.core.api.compatibility", "what to switch on")
			assert.False(t, w.failure(err).Retryable)
		}
		assert.Equal(t, []int{3, 3}, w.askedEach(), "nobody else is left to ask")
		remove()
		_, err := ns.GetServerStatus(w.ctx)
		assert.NoError(t, err, "a gateway may have said so while servers started")
	})
}

// P5: a single server without the API is asked once a call, and nobody waits.
func TestSingleServerThatLacksAnAPI(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.server().Intercept(always(mininacos.Fault{Status: 404}))
		ns, start := w.client(), time.Now()
		_, err := ns.GetServerStatus(w.ctx)
		assert.ErrorIs(t, err, ErrAPIUnavailable)
		assert.Equal(t, []int{1}, w.askedEach())
		assert.Less(t, time.Since(start), 10*time.Millisecond)
	})
}

// P7: a server that cannot be reached is tried last for 10 s. The log tells of each change once.
func TestFailingServerIsTriedLast(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		for _, f := range []mininacos.Fault{{Refuse: true}, {Garbage: true}, {Hang: true}, {Status: 502}, {Status: 503}, {Status: 504}} {
			name := fmt.Sprintf("%+v", f)
			logger, logs := logged()
			ns := w.client(logger, WithRequestTimeout(time.Second))
			entries := func(message string) []observer.LoggedEntry { return logs.FilterMessage(message).All() }
			status := func() { _, err := ns.GetServerStatus(w.ctx); require.NoError(t, err, name) }
			remove := w.server().Intercept(always(f))
			for len(entries("server failing")) == 0 {
				status()
			}
			w.askedEach()
			for range 20 {
				status()
			}
			assert.Equal(t, []int{0, 20}, w.askedEach(), name)
			w.servers[1].Stop()
			_, err := ns.GetServerStatus(w.ctx)
			require.Error(t, err, name)
			assert.Positive(t, w.askedEach()[0], "%s: never excluded", name)
			require.NoError(t, w.servers[1].Restart(mininacos.KeepState))
			time.Sleep(11 * time.Second)
			for range 10 {
				status()
			}
			assert.Positive(t, w.askedEach()[0], "%s: 10 s are over", name)
			remove()
			time.Sleep(11 * time.Second)
			for range 10 {
				status()
			}
			require.Len(t, entries("server failing"), 2, "%s: each server once", name)
			require.Len(t, entries("server is back"), 2, "%s: each server once", name)
			assert.Equal(t, w.server().Addr(), entries("server failing")[0].ContextMap()["server"])
			assert.Equal(t, "server", entries("server failing")[0].LoggerName)
			require.NoError(t, ns.Close())
		}
	})
}

// N3: whether a failed request may have been done all the same.
func TestMayHaveActed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		in := NewInstance("10.9.0.1", 8080)
		for _, c := range []struct {
			name  string
			fault mininacos.Fault
			acted bool
		}{
			{"connection cut", mininacos.Fault{Refuse: true}, true},
			{"done, connection cut", mininacos.Fault{DropReply: true}, true},
			{"no answer", mininacos.Fault{Hang: true}, true},
			{"answer cut", mininacos.Fault{CutBody: true}, true},
			{"another answer", mininacos.Fault{Status: 200, Body: "<html>"}, true},
			{"refused input", mininacos.Fault{Status: 400}, false},
			{"too many requests", mininacos.Fault{Status: 429}, false},
		} {
			remove := w.server().Intercept(always(c.fault))
			err := w.client().proxy.register(w.ctx, "g", "orders", in, 0)
			assert.Equal(t, c.acted, mayHaveActed(err), "%s: %v", c.name, err)
			remove()
		}
		no := errors.New("no way")
		refusing := w.client(WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, no }))
		err := refusing.proxy.register(w.ctx, "g", "orders", in, 0)
		assert.ErrorIs(t, err, no)
		assert.False(t, mayHaveActed(err), "a dialer of the user's")
		w.net.BlackHole(serverIP(0), true)
		err = w.client().proxy.register(w.ctx, "g", "orders", in, 0)
		assert.False(t, mayHaveActed(err), "%v", err)
		w.server().Stop()
		w.net.BlackHole(serverIP(0), false)
		err = w.client().proxy.register(w.ctx, "g", "orders", in, 0)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.False(t, mayHaveActed(err), "connection refused")
	})
}

// P5: on 3.0 and 3.1 updating an instance is administrative, unlike all else.
func TestErrorTellsWhatToSwitchOnForAnUpdate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.server().Intercept(func(*mininacos.Request) mininacos.Fault {
			return mininacos.Fault{Status: 410, Body: "no such api"}
		})
		ns := w.client()
		_, err := ns.GetServicesOfServer(w.ctx, 1, 10)
		assert.ErrorContains(w, err, "nacos.core.api.compatibility.client.enabled")
		err = ns.UpdateInstance(w.ctx, "orders", NewInstance("10.9.0.1", 80))
		assert.ErrorContains(w, err, "nacos.core.api.compatibility.admin.enabled")
		assert.NotContains(w, err.Error(), "client.enabled")
	})
}

// P5: a gateway that answers 404 for some seconds while servers start costs no instance its life.
func TestGatewayThatFindsNothingForAWhileStopsNoBeats(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", NewInstance("10.9.0.1", 80))
		time.Sleep(time.Minute)
		remove := w.server().Intercept(always(mininacos.Fault{Status: 404, Body: "default backend - 404"}))
		time.Sleep(7 * time.Second)
		require.ErrorIs(w, reg.Err(), ErrAPIUnavailable)
		remove()
		time.Sleep(5 * time.Second)
		require.NoError(w, reg.Err())
		w.expect(w.server(), "orders", "10.9.0.1:80")
	})
}
