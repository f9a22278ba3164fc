package nacos

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos"
)

// always is an interceptor that gives every request the same fault.
func always(f mininacos.Fault) func(*mininacos.Request) mininacos.Fault {
	return func(*mininacos.Request) mininacos.Fault { return f }
}

// poll asks for a list as a poll does, past what the client keeps.
func (w *world) poll(ns *NamingService) error {
	_, err := ns.GetAllInstances(w.ctx, "orders", NoSubscribe())
	return err
}

// askedEach is how many requests each server got since the last call.
func (w *world) askedEach() (n []int) {
	for _, s := range w.servers {
		sum := 0
		for _, count := range s.Requests() {
			sum += count
		}
		n = append(n, sum)
		s.ResetRequests()
	}
	return n
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// failure returns the *APIError that err is.
func (w *world) failure(err error) *APIError {
	w.Helper()
	var failure *APIError
	require.ErrorAs(w, err, &failure)
	return failure
}

// P1: whichever server is the only good one, every request finds it, and asks no server twice.
func TestEveryServerIsReached(t *testing.T) {
	for n := 2; n <= 5; n++ {
		inWorld(t, n, func(w *world) {
			ns := w.client()
			down := make([]atomic.Bool, n)
			for i, s := range w.servers {
				s.Intercept(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Refuse: down[i].Load()} })
			}
			for good := range n {
				for i := range down {
					down[i].Store(i != good)
				}
				_, err := ns.GetServerStatus(w.ctx)
				require.NoError(t, err, "only server %d of %d is up", good, n)
				require.NoError(t, w.poll(ns), "only server %d of %d is up", good, n)
				time.Sleep(11 * time.Second) // penalties are over
			}
			for i := range down {
				down[i].Store(true)
			}
			w.askedEach()
			_, err := ns.GetServerStatus(w.ctx)
			assert.Len(t, w.failure(err).Servers, n, "P4: %v", err)
			for _, asked := range w.askedEach() {
				assert.InDelta(t, 1, asked, 1, "once, and once more by net/http where a kept connection broke")
			}
		})
	}
}

// P1: polls stay on one server, not the same for all clients, until it fails; then they stay on the next.
func TestPollsStayUntilTheirServerFails(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		ns := w.client()
		home := func() int {
			w.askedEach()
			for range 20 {
				require.NoError(t, w.poll(ns))
			}
			for i, n := range w.askedEach() {
				if n != 0 {
					require.Equal(t, 20, n, "all polls go to one server")
					return i
				}
			}
			return -1
		}
		first := home()
		w.servers[first].Stop()
		require.NoError(t, w.poll(ns))
		second := home()
		require.NotEqual(t, first, second)
		require.NoError(t, w.servers[first].Restart(mininacos.KeepState))
		time.Sleep(time.Minute)
		assert.Equal(t, second, home(), "no way back without a reason")

		for range 20 {
			require.NoError(t, w.poll(w.client()))
		}
		assert.NotContains(t, w.askedEach(), 0, "clients begin at different servers")
	})
}

// P1: callers with less time than one try get past a server that is silent.
func TestShortDeadlinesDoNotStickToASilentServer(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		ns := w.client()
		require.NoError(t, w.poll(ns))
		for i, n := range w.askedEach() {
			if n != 0 {
				w.net.BlackHole(serverIP(i), true)
			}
		}
		hasty := func() error {
			ctx, cancel := context.WithTimeout(w.ctx, time.Second)
			defer cancel()
			_, err := ns.GetAllInstances(ctx, "orders", NoSubscribe())
			return err
		}
		require.ErrorIs(t, hasty(), context.DeadlineExceeded)
		assert.NoError(t, hasty())
		assert.NoError(t, hasty())
	})
}

// P2: a single server is asked three times, or as often as the option says, with growing pauses between.
func TestSingleServerIsTriedAgain(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		var at []time.Time
		w.server().Intercept(func(r *mininacos.Request) mininacos.Fault {
			at = append(at, r.Time)
			return mininacos.Fault{Status: 500}
		})
		var firstPauses []time.Duration
		for range 5 {
			at = nil
			_, err := w.client().GetServerStatus(w.ctx)
			assert.Equal(t, []string{w.server().Addr()}, w.failure(err).Servers)
			require.Len(t, at, 3)
			assert.Less(t, time.Since(at[2]), time.Millisecond, "no pause after the last")
			for i, longest := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
				pause := at[i+1].Sub(at[i])
				assert.True(t, pause >= longest/2 && pause <= longest+time.Millisecond, "pause %d: %s", i+1, pause)
			}
			firstPauses = append(firstPauses, at[1].Sub(at[0]))
		}
		assert.NotEqual(t, firstPauses[0].Round(time.Millisecond), firstPauses[1].Round(time.Millisecond), "jitter")
		for tries := 1; tries < 6; tries += 4 {
			at = nil
			_, err := w.client(WithMaxTries(tries)).GetServerStatus(w.ctx)
			require.Error(t, err)
			assert.Len(t, at, tries)
		}
	})
}

// P3: without a server every call fails at once.
func TestNoServer(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns, start := w.client(WithServers()), time.Now()
		_, err := ns.GetServerStatus(w.ctx)
		assert.ErrorIs(t, err, ErrNoServer)
		assert.ErrorIs(t, w.poll(ns), ErrNoServer)
		_, err = ns.RegisterInstance(w.ctx, "orders", NewInstance("10.9.0.1", 8080))
		assert.ErrorIs(t, err, ErrNoServer)
		assert.Zero(t, time.Since(start))
	})
}

// P6: every try has its own time; opening a connection has less.
func TestEachTryHasItsOwnTime(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		took := func(ns *NamingService, want time.Duration) {
			t.Helper()
			start := time.Now()
			_, err := ns.GetServerStatus(w.ctx)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.InDelta(t, want.Seconds(), time.Since(start).Seconds(), 0.01)
			assert.Len(t, w.failure(err).Servers, 2)
			assert.True(t, w.failure(err).Retryable)
		}
		remove := w.cluster.Intercept(always(mininacos.Fault{Hang: true}))
		took(w.client(), 20*time.Second)
		took(w.client(WithRequestTimeout(time.Second)), 2*time.Second)
		remove()
		w.net.BlackHole(serverIP(0), true)
		w.net.BlackHole(serverIP(1), true)
		took(w.client(), 6*time.Second)
		took(w.client(WithConnectTimeout(time.Second)), 2*time.Second)
		took(w.client(WithRequestTimeout(time.Second)), 2*time.Second)
	})
}

// P6: wherever a call waits, the end of its context ends it.
func TestCancelReturnsAtOnce(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		hang := make(chan struct{})
		deaf := WithDialer(func(context.Context, string, string) (net.Conn, error) { <-hang; return nil, io.EOF })
		for _, c := range []struct {
			name   string
			fault  mininacos.Fault
			hole   bool
			after  time.Duration
			option Option
		}{
			{name: "no answer", fault: mininacos.Fault{Hang: true}, after: time.Second},
			{name: "no connection", hole: true, after: time.Second},
			{name: "pause", fault: mininacos.Fault{Status: 500}, after: 20 * time.Millisecond},
			{name: "deaf dialer", after: time.Second, option: deaf},
		} {
			remove := w.server().Intercept(always(c.fault))
			w.net.BlackHole(serverIP(0), c.hole)
			options := []Option{WithMaxTries(3)}
			if c.option.apply != nil {
				options = append(options, c.option)
			}
			ns := w.client(options...)
			mine := errors.New("enough")
			ctx, cancel := context.WithCancelCause(w.ctx)
			var ended time.Time
			time.AfterFunc(c.after, func() { ended = time.Now(); cancel(mine) })
			_, err := ns.GetServerStatus(ctx)
			assert.Less(t, time.Since(ended), 50*time.Millisecond, c.name)
			assert.False(t, ended.IsZero(), c.name)
			assert.ErrorIs(t, err, mine, c.name)
			assert.False(t, ns.Stats().Servers[0].Failing, "%s: not the server's fault", c.name)
			if c.name == "pause" {
				assert.Equal(t, 500, w.failure(err).Status, "the last answer is told too")
			}
			remove()
		}
		close(hang)
	})
}

// transportFunc is a RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// P12: a RoundTripper of the user's sends everything; a dialer beside it would do nothing.
func TestRoundTripperOfTheUser(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		own := &http.Transport{DialContext: w.net.Host("10.3.0.1").DialContext}
		var sent atomic.Int32
		counting := struct {
			transportFunc
			closer
		}{func(r *http.Request) (*http.Response, error) { sent.Add(1); return own.RoundTrip(r) }, closer{own}}
		ns, err := NewNamingService(WithServers(w.server().Addr()), WithRoundTripper(counting))
		require.NoError(t, err)
		w.register(ns, "orders", NewInstance("10.9.0.1", 8080))
		w.expect(w.server(), "orders", "10.9.0.1:8080")
		require.NoError(t, ns.Close())
		moment()
		assert.Positive(t, sent.Load())
		assert.Zero(t, w.net.OpenConns(), "Close closes what is idle")

		_, err = NewNamingService(WithRoundTripper(counting), WithDialer(w.net.Host("10.3.0.1").DialContext))
		var wrong *ArgumentError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "option WithDialer", wrong.Argument)
	})
}

type closer struct{ t *http.Transport }

func (c closer) CloseIdleConnections() { c.t.CloseIdleConnections() }

// A *url.Error holds the whole address, and that the metadata of an instance.
func TestErrorOfRoundTripperShowsNoParameters(t *testing.T) {
	leakcheck.Check(t)
	cause := errors.New("boom")
	rt := transportFunc(func(r *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Put", URL: r.URL.String(), Err: cause}
	})
	cfg, err := newConfig([]Option{WithServers("nacos", "other"), WithRoundTripper(rt)})
	require.NoError(t, err)
	servers, err := newServerList(cfg.servers, "/nacos", newRandom(nil))
	require.NoError(t, err)
	in := NewInstance("10.9.0.1", 8080)
	in.Metadata = NewMetadata(map[string]string{"password": "secret"})
	err = newNamingProxy(&cfg, servers, newRandom(nil), cfg.logger).register(context.Background(), "g", "orders", in, 0)
	assert.ErrorIs(t, err, cause)
	assert.NotContains(t, err.Error(), "secret")
	assert.NotContains(t, err.Error(), wire.PathInstance)
}

// B7: when every server holds as many heartbeats as it may, the next one fails at once and may be sent again; that is
// no lack of the API.
func TestEveryServerAtItsLimit(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		ns := w.client(WithBeatWorkers(2)) // one at each server
		beat := func() error {
			_, err := ns.proxy.beat(w.ctx, "g", "orders", NewInstance("10.9.0.1", 8080), true, 8*time.Second)
			return err
		}
		busy := func() {
			t.Helper()
			start, err := time.Now(), beat()
			assert.NotErrorIs(t, err, ErrAPIUnavailable)
			assert.ErrorContains(t, err, "every server holds as many requests")
			assert.True(t, w.failure(err).Retryable)
			assert.Less(t, time.Since(start), 10*time.Millisecond)
		}
		remove := w.cluster.Intercept(always(mininacos.Fault{Hang: true}))
		var held sync.WaitGroup
		for range 2 {
			held.Go(func() { assert.Error(t, beat()) })
			moment()
		}
		assert.Equal(t, []int{1, 1}, w.askedEach())
		busy()
		assert.Equal(t, []int{0, 0}, w.askedEach())
		_, err := ns.proxy.list(w.ctx, serviceKey{group: "g", name: "orders"}, wire.Fingerprint{})
		assert.ErrorIs(t, err, context.DeadlineExceeded, "requests without a limit go on")
		held.Wait()
		remove()
		require.NoError(t, beat(), "what was held is given back")

		w.server().Intercept(always(mininacos.Fault{Status: 404}))
		w.servers[1].Intercept(always(mininacos.Fault{Hang: true}))
		time.Sleep(time.Minute)
		w.askedEach()
		held.Go(func() { assert.Error(t, beat()) })
		for w.askedEach()[1] == 0 { // from whichever server on, it ends up there
			moment()
		}
		busy()
		held.Wait()
	})
}
