package nacos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos"
)

// ask makes one request that is not about a single instance, and returns its error.
func ask(w *world, ns *NamingService) error {
	_, err := ns.GetServicesOfServer(w.ctx, 1, 10)
	return err
}

// answer is a fault by which servers answer with a status and a body.
func answer(status int, body string) func(*mininacos.Request) mininacos.Fault {
	return func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Status: status, Body: body} }
}

// whoWasAsked says which servers got a request since the last call, as digits.
func (w *world) whoWasAsked() string {
	text := ""
	for i, s := range w.servers {
		for range s.RequestLog() {
			text += fmt.Sprint(i)
		}
		s.ResetRequests()
	}
	return text
}

// P3
func TestWithoutAServerEveryCallFailsAtOnce(t *testing.T) {
	leakcheck.Check(t)
	ns, err := NewNamingService()
	require.NoError(t, err)
	defer ns.Close()
	_, err = ns.SelectOneHealthyInstance(t.Context(), "orders")
	assert.ErrorIs(t, err, ErrNoServer)
	_, err = ns.RegisterInstance(t.Context(), "orders", NewInstance("10.9.0.1", 80))
	assert.ErrorIs(t, err, ErrNoServer)
	_, err = ns.GetServerStatus(t.Context())
	assert.ErrorIs(t, err, ErrNoServer)
	assert.EqualError(t, err, "nacos: status: no server available: WithServers gave no address")
}

// P1: polls stay on one server until it fails, and clients begin at different ones.
func TestPollsStayOnOneServerUntilItFails(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		begins := make(map[string]bool)
		for range 10 {
			ns := w.client()
			for range 5 {
				_, err := ns.GetAllInstances(w.ctx, "orders", NoSubscribe())
				require.NoError(w, err)
			}
			at := w.whoWasAsked()
			require.Equal(w, strings.Repeat(at[:1], 5), at)
			begins[at[:1]] = true

			stopped := w.servers[at[0]-'0']
			stopped.Stop()
			_, err := ns.GetAllInstances(w.ctx, "orders", NoSubscribe())
			require.NoError(w, err)
			require.NoError(w, stopped.Restart(mininacos.KeepState))
			next := w.whoWasAsked()
			require.NotEqual(w, at[:1], next)
			time.Sleep(ns.cfg.serverPenalty)
			_, err = ns.GetAllInstances(w.ctx, "orders", NoSubscribe())
			require.NoError(w, err)
			assert.Equal(w, next, w.whoWasAsked(), "it does not go back")
		}
		assert.Len(w, begins, 3)
	})
}

// P2: a single server, such as a domain before several, is tried three times with growing pauses.
func TestSingleServerIsTriedThreeTimes(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.server().Intercept(answer(500, "caused: no leader;"))
		begun := time.Now()
		err := ask(w, ns)
		took := time.Since(begun)
		log := w.server().RequestLog()
		require.Len(w, log, 3)
		first, second := log[1].Time.Sub(log[0].Time), log[2].Time.Sub(log[1].Time)
		assert.True(w, first >= 50*time.Millisecond && first < 110*time.Millisecond, "%s", first)
		assert.True(w, second >= 100*time.Millisecond && second < 210*time.Millisecond, "%s", second)
		assert.Less(w, took-first-second, 10*time.Millisecond, "no pause after the last")
		var failure *APIError
		require.ErrorAs(w, err, &failure)
		assert.Equal(w, []string{w.server().Addr()}, failure.Servers)

		w.server().ResetRequests()
		ns = w.client(WithMaxTries(1))
		require.Error(w, ask(w, ns))
		assert.Len(w, w.server().RequestLog(), 1)
	})
}

// P4: the error tells the API, every server tried, and the last cause.
func TestErrorTellsWhoWasAskedForWhat(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		ns := w.client()
		for _, s := range w.servers {
			s.Stop()
		}
		_, err := ns.RegisterInstance(w.ctx, "orders", NewInstance("10.9.0.1", 8080), Group("shop"))
		var failure *APIError
		require.ErrorAs(w, err, &failure)
		assert.Equal(w, "register", failure.API)
		assert.ElementsMatch(w, w.cluster.Addrs(), failure.Servers)
		assert.Equal(w, failure.Servers[2], failure.Server)
		assert.True(w, failure.Retryable)
		assert.ErrorIs(w, err, syscall.ECONNREFUSED)
		for _, part := range append(w.cluster.Addrs(), "nacos: register shop@@orders 10.9.0.1:8080: tried ", "connection refused") {
			assert.ErrorContains(w, err, part)
		}
		assert.NotContains(w, err.Error(), "serviceName", "no URL, which may hold what is secret")
		assert.Zero(w, ns.Stats().Registrations, "nothing to take back: nobody was reached")
	})
}

// P5, P7: what each status means. Two servers; the first one asked answers so.
func TestWhatAStatusMeans(t *testing.T) {
	for _, c := range []struct {
		status    int
		body      string
		goesOn    bool // to the next server
		marks     bool // the server as failing
		retryable bool
		code      int
	}{
		{status: 500, body: "caused: errCode: 500, errMsg: x ;", goesOn: true, code: 500},
		{status: 500, body: "<html>oops</html>", goesOn: true, retryable: true},
		{status: 502, goesOn: true, marks: true, retryable: true},
		{status: 503, body: "server is DOWN now", goesOn: true, marks: true, retryable: true},
		{status: 504, goesOn: true, marks: true, retryable: true},
		{status: 429, goesOn: true, retryable: true},
		{status: 400, body: `{"code":10000,"message":"parameter missing"}`, code: 10000},
		{status: 401}, {status: 403, body: "user not found!"}, {status: 409}, {status: 422},
		{status: 404, goesOn: true}, {status: 410, goesOn: true}, {status: 501, goesOn: true},
		{status: 302, goesOn: true}, {status: 307, goesOn: true},
	} {
		inWorld(t, 2, func(w *world) {
			ns := w.client()
			var mu sync.Mutex
			first := ""
			w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
				mu.Lock()
				defer mu.Unlock()
				if first == "" {
					first = r.Header.Get("Requestid")
					return mininacos.Fault{Status: c.status, Body: c.body}
				}
				return mininacos.Fault{}
			})
			err := ask(w, ns)
			if c.goesOn {
				assert.NoError(w, err, c.status)
				assert.Len(w, w.whoWasAsked(), 2, c.status)
			} else {
				assert.Error(w, err, c.status)
				assert.Len(w, w.whoWasAsked(), 1, c.status)
			}
			failing := 0
			for _, s := range ns.Stats().Servers {
				if s.Failing {
					failing++
				}
			}
			assert.Equal(w, c.marks, failing == 1, "%d", c.status)

			w.cluster.Intercept(answer(c.status, c.body)) // everybody answers so
			err = ask(w, ns)
			var failure *APIError
			require.ErrorAs(w, err, &failure, c.status)
			assert.Equal(w, c.retryable, failure.Retryable, c.status)
			assert.Equal(w, c.code, failure.Code, c.status)
			assert.Equal(w, c.status, failure.Status)
			if c.body != "" {
				assert.Contains(w, failure.Message, wire.ErrorMessage([]byte(c.body)))
			}
		})
	}
}

// P5: an API that a server does not have is asked of the others, and not of it again for a minute.
func TestAPIThatAServerDoesNotHave(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		ns := w.client()
		heal := w.servers[0].Intercept(answer(410, "no such api"))
		for range 10 {
			require.NoError(w, ask(w, ns))
		}
		assert.LessOrEqual(w, len(w.servers[0].RequestLog()), 1)
		other := w.servers[1].Intercept(answer(404, ""))
		err := ask(w, ns)
		require.ErrorIs(w, err, ErrAPIUnavailable)
		assert.ErrorContains(w, err, "nacos.core.api.compatibility", "it says what to switch on")
		w.whoWasAsked()
		require.ErrorIs(w, ask(w, ns), ErrAPIUnavailable)
		assert.Empty(w, w.whoWasAsked(), "nobody is asked again so soon")
		_, err = ns.GetServerStatus(w.ctx)
		require.ErrorIs(w, err, ErrAPIUnavailable, "another API is asked for, and refused by itself")
		heal()
		other()
		time.Sleep(time.Minute)
		require.NoError(w, ask(w, ns), "servers were upgraded")
	})
}

// P5: while a server that may have an API cannot be reached, the API is not given up, whoever was asked last.
func TestAPIThatAnUnreachableServerMayHave(t *testing.T) {
	for i := range uint64(10) { // requests start at either
		inWorld(t, 2, func(w *world) {
			w.seed = i
			ns := w.client()
			w.servers[0].Intercept(answer(410, "no such api"))
			w.servers[1].Stop()
			for range 2 {
				err := ask(w, ns)
				assert.NotErrorIs(w, err, ErrAPIUnavailable)
				var failure *APIError
				require.ErrorAs(w, err, &failure)
				assert.True(w, failure.Retryable)
			}
			require.NoError(w, w.servers[1].Restart(mininacos.KeepState))
			require.NoError(w, ask(w, ns))
		})
	}
}

// P5: on 3.0 and 3.1 updating an instance is administrative, unlike all else.
func TestErrorTellsWhatToSwitchOnForAnUpdate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.server().Intercept(answer(410, "no such api"))
		ns := w.client()
		assert.ErrorContains(w, ask(w, ns), "nacos.core.api.compatibility.client.enabled")
		err := ns.UpdateInstance(w.ctx, "orders", NewInstance("10.9.0.1", 80))
		assert.ErrorContains(w, err, "nacos.core.api.compatibility.admin.enabled")
		assert.NotContains(w, err.Error(), "client.enabled")
	})
}

// P6: each try has a time of its own, and a caller who gives up is back at once.
func TestTriesAndCallersHaveTimeouts(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.cluster.Intercept(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Hang: true} })
		ns := w.client(WithRequestTimeout(2 * time.Second))
		begun := time.Now()
		err := ask(w, ns)
		assert.ErrorIs(w, err, context.DeadlineExceeded)
		assert.ErrorContains(w, err, "no answer within 2s")
		assert.Equal(w, 6*time.Second, time.Since(begun).Round(100*time.Millisecond))

		ctx, cancel := context.WithCancel(w.ctx)
		time.AfterFunc(time.Second, cancel)
		begun = time.Now()
		_, err = ns.GetServerStatus(ctx)
		assert.ErrorIs(w, err, context.Canceled)
		assert.LessOrEqual(w, time.Since(begun), time.Second+50*time.Millisecond)

		w.net.BlackHole(serverIP(0), true)
		w.net.BlackHole(serverIP(1), true)
		w.net.BlackHole(serverIP(2), true)
		ns = w.client(WithConnectTimeout(100 * time.Millisecond))
		begun = time.Now()
		require.Error(w, ask(w, ns))
		assert.Equal(w, 300*time.Millisecond, time.Since(begun).Round(10*time.Millisecond), "to connect takes less")
	})
}

// P7, L: a server that fails is told of once, and so is its return.
func TestFailingServerIsLoggedOnceAChange(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		log, logs := logged()
		ns := w.client(log)
		for range 3 {
			w.servers[0].Stop()
			for range 20 {
				require.NoError(w, ask(w, ns))
				time.Sleep(time.Second)
			}
			require.NoError(w, w.servers[0].Restart(mininacos.KeepState))
			for range 20 {
				require.NoError(w, ask(w, ns))
				time.Sleep(time.Second)
			}
		}
		var lines []string
		for _, e := range logs.All() {
			lines = append(lines, e.LoggerName+": "+e.Message)
		}
		assert.Equal(w, strings.Repeat("server: server failing, server: server is back, ", 3), strings.Join(lines, ", ")+", ")
	})
}

// P8: a host name is resolved anew, and no connection is pinned for ever to what it once was.
func TestHostNameIsResolvedAnew(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.net.AddName("nacos", serverIP(0))
		ns := w.client(WithServers("nacos"))
		w.register(ns, "orders", NewInstance("10.9.0.1", 80)) // its beats keep the connection in use
		w.net.AddName("nacos", serverIP(1))
		time.Sleep(renewConnections + 10*time.Second)
		w.whoWasAsked()
		time.Sleep(time.Minute)
		at := w.whoWasAsked()
		assert.NotEmpty(w, at)
		assert.NotContains(w, at, "0")
	})
}

// P13: what a parameter holds arrives as it is.
func TestParametersAreEncoded(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithNamespace("a b&c=d"), WithAppName("app&x=1"))
		var mu sync.Mutex
		got := make(map[string]string)
		w.server().Intercept(func(r *mininacos.Request) mininacos.Fault {
			mu.Lock()
			defer mu.Unlock()
			for name := range r.Params {
				got[name] = r.Param(name)
			}
			return mininacos.Fault{Status: 200, Body: "ok"}
		})
		in := NewInstance("fe80::1", 80)
		in.Cluster = "c+d /e"
		in.Weight = 1e-7
		in.Metadata = NewMetadata(map[string]string{"k&\"": "\u4e2d%\\\n"})
		_, err := ns.RegisterInstance(w.ctx, "o r%d+e&r=s/\u00fc?#", in, Group("g%20"))
		require.NoError(w, err)
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(w, map[string]string{
			"namespaceId": "a b&c=d", "serviceName": "g%20@@o r%d+e&r=s/\u00fc?#", "groupName": "g%20", "clusterName": "c+d /e",
			"ip": "fe80::1", "port": "80", "weight": "0.0000001", "enable": "true", "healthy": "true", "ephemeral": "true",
			"metadata": in.Metadata.String(),
		}, got)
	})
}

// P13: replies of any other shape are errors that tell what is wrong and where.
func TestRepliesOfOtherShapes(t *testing.T) {
	list := `{"name":"DEFAULT_GROUP@@orders","hosts":[{"ip":"10.9.0.1","port":80}],"lastRefTime":1}`
	for body, want := range map[string]string{
		"":                                 "empty",
		"   ":                              "empty",
		"<html><body>hi</body></html>":     "html",
		"null":                             "type",
		"[]":                               "type",
		"ok":                               "syntax",
		`{"a":1}`:                          "missing field",
		list[:len(list)-20]:                "truncated",
		list + "x":                         "trailing",
		`{"name":"DEFAULT_GROUP@@orders"}`: "hosts",
		strings.Replace(list, "orders", "others", 1): `another service: "DEFAULT_GROUP@@others"`,
		strings.Replace(list, "80", "80000", 1):      "bad host",
		strings.Repeat("[", 1<<16):                   "",
	} {
		inWorld(t, 1, func(w *world) {
			ns := w.client(WithMaxTries(1))
			w.server().Intercept(answer(200, body))
			_, err := ns.GetAllInstances(w.ctx, "orders", NoSubscribe())
			var failure *APIError
			require.ErrorAs(w, err, &failure, body)
			assert.Equal(w, 200, failure.Status)
			assert.ErrorContains(w, err, want)
			_, err = ns.RegisterInstance(w.ctx, "orders", NewInstance("10.9.0.1", 80))
			if body != "ok" {
				assert.Error(w, err, "%q is no ok", body)
			}
		})
	}
}

// P13: neither do broken connections and broken HTTP do more than fail a try.
func TestBrokenReplies(t *testing.T) {
	for name, fault := range map[string]mininacos.Fault{
		"refused": {Refuse: true}, "no HTTP": {Garbage: true}, "cut reply": {DropReply: true}, "cut body": {CutBody: true},
	} {
		inWorld(t, 2, func(w *world) {
			require.NoError(w, w.server().Register("", "", "orders", mininacos.NewInstance("10.9.0.1", 80)))
			ns := w.client()
			w.servers[0].Intercept(func(*mininacos.Request) mininacos.Fault { return fault })
			for range 6 {
				list, err := ns.GetAllInstances(w.ctx, "orders", NoSubscribe())
				require.NoError(w, err, name)
				require.Len(w, list, 1, name)
				w.client().Close()
			}
			w.servers[1].Intercept(func(*mininacos.Request) mininacos.Fault { return fault })
			err := ask(w, ns)
			var failure *APIError
			require.ErrorAs(w, err, &failure, name)
			assert.True(w, failure.Retryable, name)
		})
	}
}

// tripper is a RoundTripper made of a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tripped makes a client whose requests go to f.
func tripped(t *testing.T, f tripper) *NamingService {
	t.Helper()
	ns, err := NewNamingService(WithServers("nacos"), WithMaxTries(1), WithAppName("shop"), WithRoundTripper(f))
	require.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
	return ns
}

// endless is a body that does not end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }
func (e *endless) Close() error               { return nil }

// P13
func TestBodiesAreLimited(t *testing.T) {
	leakcheck.Check(t)
	body := new(endless)
	ns := tripped(t, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body}, nil
	})
	_, err := ns.GetServerStatus(t.Context())
	assert.ErrorContains(t, err, "larger than 67108864 bytes")
	assert.Less(t, body.read, 2*maxBodyBytes)
}

// P13, P15: a status that is none, a redirect.
func TestOddStatuses(t *testing.T) {
	leakcheck.Check(t)
	for status, want := range map[int]string{
		0:   "status 0",
		101: "status 101",
		204: "status 204",
		302: "redirect to evil.example.com:99 not followed",
	} {
		ns := tripped(t, func(*http.Request) (*http.Response, error) {
			h := http.Header{"Location": {"http://user:secret@evil.example.com:99/nacos?password=secret"}}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(""))}, nil
		})
		_, err := ns.GetServerStatus(t.Context())
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// P14, P12: headers on which servers depend, and the seam.
func TestHeaders(t *testing.T) {
	leakcheck.Check(t)
	var requests []*http.Request
	ns := tripped(t, func(r *http.Request) (*http.Response, error) {
		requests = append(requests, r)
		return nil, errors.New("no")
	})
	_, err := ns.GetAllInstances(t.Context(), "orders", NoSubscribe())
	require.Error(t, err)
	require.Len(t, requests, 1)
	h := requests[0].Header
	assert.Regexp(t, `^Nacos-Go-Client:v\d+\.\d+\.\d+$`, h.Get("User-Agent"))
	assert.Equal(t, h.Get("User-Agent"), h.Get("Client-Version"))
	assert.Equal(t, "Naming", h.Get("Request-Module"))
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, h.Get("RequestId"))
	assert.Equal(t, "shop", requests[0].URL.Query().Get("app"))
	assert.Equal(t, "/nacos/v1/ns/instance/list", requests[0].URL.Path)
}

// A dialer that takes no notice of its context may connect when the client is long closed.
func TestConnectionThatComesAfterCloseIsClosed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		host, release := w.net.Host("10.2.0.1"), make(chan struct{})
		ns := w.client(WithServers(w.server().Addr()), WithDialer(func(_ context.Context, network, address string) (net.Conn, error) {
			<-release
			return host.DialContext(context.Background(), network, address)
		}))
		go ns.GetServerStatus(w.ctx)
		time.Sleep(time.Second)
		closed := make(chan error)
		go func() { closed <- ns.Close() }()
		time.Sleep(time.Second)
		close(release)
		require.NoError(w, <-closed)
		moment()
		assert.Zero(w, w.net.OpenConns())
	})
}

// So may one that net/http does not take any more.
func TestConnTrackerClosesWhatComesLate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		host, release := w.net.Host("10.2.0.1"), make(chan struct{})
		tracker := newConnTracker(&config{connectTimeout: time.Hour, dial: func(_ context.Context, network, address string) (net.Conn, error) {
			<-release
			return host.DialContext(context.Background(), network, address)
		}})
		dialled, closed := make(chan error), make(chan struct{})
		go func() {
			_, err := tracker.dial(w.ctx, "tcp", w.server().Addr())
			dialled <- err
		}()
		go func() {
			time.Sleep(time.Second)
			tracker.close()
			close(closed)
		}()
		time.Sleep(2 * time.Second)
		close(release)
		assert.ErrorIs(w, <-dialled, ErrClosed)
		<-closed
		moment()
		assert.Zero(w, w.net.OpenConns())
		_, err := tracker.dial(w.ctx, "tcp", w.server().Addr())
		assert.ErrorIs(w, err, ErrClosed)
	})
}

// Connections are few, kept alive, and gone after Close.
func TestConnectionsAreKeptAndClosed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		for range 100 {
			require.NoError(w, ask(w, ns))
		}
		assert.EqualValues(w, 1, w.net.Dials())
		require.NoError(w, ns.Close())
		moment()
		assert.Zero(w, w.net.OpenConns())
	})
}
