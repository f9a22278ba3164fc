package mininacos

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/internal/wire"
)

// Each fault does what it says, on memnet and on real sockets.
func TestS8_Faults(t *testing.T) {
	leakcheck.Check(t)
	everywhere(t, func(t *testing.T, c *client) {
		const d = 30 * time.Millisecond
		register := []string{"serviceName", "s", "ip", "10.1.1.1", "port", "80"}
		c.register("big", "10.1.1.1", "metadata", "a=1")
		for _, tc := range []struct {
			name  string
			fault Fault
			done  bool // the request had its effect
			check func(a answer, err error, took time.Duration)
		}{
			{"none", Fault{}, true, func(a answer, err error, _ time.Duration) {
				require.NoError(t, err)
				require.Equal(t, "ok", a.body)
			}},
			{"delay", Fault{Delay: d}, true, func(a answer, err error, took time.Duration) {
				require.NoError(t, err)
				require.Equal(t, "ok", a.body)
				require.GreaterOrEqual(t, took, d)
			}},
			{"refuse", Fault{Refuse: true}, false, func(_ answer, err error, _ time.Duration) { require.Error(t, err) }},
			{"garbage", Fault{Garbage: true}, false, func(_ answer, err error, _ time.Duration) { require.Error(t, err) }},
			{"status", Fault{Status: 503, Body: "server is DOWN", ContentType: typeText}, false, func(a answer, err error, _ time.Duration) {
				require.NoError(t, err)
				require.Equal(t, answer{503, typeText, "server is DOWN"}, a)
			}},
			{"status without type, late", Fault{Delay: d, Status: 200}, false, func(a answer, err error, took time.Duration) {
				require.NoError(t, err)
				require.Equal(t, answer{200, "", ""}, a)
				require.GreaterOrEqual(t, took, d)
			}},
			{"delay reply", Fault{DelayReply: d}, true, func(a answer, err error, took time.Duration) {
				require.NoError(t, err)
				require.Equal(t, "ok", a.body)
				require.GreaterOrEqual(t, took, d)
			}},
			{"drop reply", Fault{DropReply: true}, true, func(_ answer, err error, _ time.Duration) { require.Error(t, err) }},
			{"cut body", Fault{CutBody: true}, true, func(a answer, err error, _ time.Duration) {
				require.Error(t, err)
				require.Equal(t, 200, a.status)
				require.Equal(t, "o", a.body)
			}},
		} {
			c.srv.Deregister("", "", "s", "10.1.1.1", 80)
			remove := c.srv.Intercept(func(r *Request) Fault {
				if r.API == APIRegister && r.Param("serviceName") == "s" {
					return tc.fault
				}
				return Fault{}
			})
			start := time.Now()
			a, err := c.try("POST", wire.PathInstance, register...)
			tc.check(a, err, time.Since(start))
			remove()
			remove()
			require.Equal(t, tc.done, len(c.srv.Instances("", "", "s")) == 1, tc.name)
		}
		remove := c.srv.Intercept(func(*Request) Fault { return Fault{CutBody: true} })
		a, err := c.try("GET", wire.PathInstanceList, "serviceName", "big")
		require.Error(t, err)
		require.NotEmpty(t, a.body)
		require.False(t, json.Valid([]byte(a.body)))
		remove()
		require.Len(t, c.list("big"), 1)
	})
}

// What hangs ends with its client or with the server, which waits for nobody.
func TestS8_HangingRequestsEnd(t *testing.T) {
	leakcheck.Check(t)
	everywhere(t, func(t *testing.T, c *client) {
		for _, fault := range []Fault{{Hang: true}, {HangReply: true}, {Delay: time.Hour}, {DelayReply: time.Hour}} {
			entered := make(chan struct{}, 10)
			remove := c.srv.Intercept(func(*Request) Fault {
				entered <- struct{}{}
				return fault
			})
			call := func(ctx context.Context) <-chan error {
				result := make(chan error, 1)
				req, err := http.NewRequestWithContext(ctx, "GET", c.srv.URL()+wire.PathMetrics, nil)
				require.NoError(t, err)
				go func() {
					resp, err := c.http.Do(req)
					if err == nil {
						resp.Body.Close()
					}
					result <- err
				}()
				<-entered
				return result
			}
			ctx, cancel := context.WithCancel(context.Background())
			result := call(ctx)
			cancel()
			require.ErrorIs(t, <-result, context.Canceled)

			result = call(context.Background())
			start := time.Now()
			c.srv.Stop()
			require.Error(t, <-result)
			require.Less(t, time.Since(start), 5*time.Second)
			remove()
			require.NoError(t, c.srv.Restart(KeepState))
			c.ok("GET", wire.PathMetrics)
		}
	})
}

// The first interceptor whose fault is not zero wins; all see the requests no earlier one took.
func TestS8_FirstInterceptorWins(t *testing.T) {
	leakcheck.Check(t)
	everywhere(t, func(t *testing.T, c *client) {
		var seen []string
		add := func(name string, status int) func() {
			return c.srv.Intercept(func(r *Request) Fault {
				seen = append(seen, name)
				return Fault{Status: status}
			})
		}
		defer add("a", 0)()
		removeB := add("b", 502)
		defer add("c", 503)()
		require.Equal(t, 502, c.do("GET", wire.PathMetrics).status)
		require.Equal(t, []string{"a", "b"}, seen)
		removeB()
		require.Equal(t, 503, c.do("GET", wire.PathMetrics).status)
		require.Equal(t, []string{"a", "b", "a", "c"}, seen)
	})
}
