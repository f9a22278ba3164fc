package mininacos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// seeded is a source that repeats.
func seeded(seed uint64) rand.Source { return rand.NewPCG(seed, 1) }

// client talks to a server over HTTP.
type client struct {
	t    testing.TB
	srv  *Server
	http *http.Client
}

// answer is what a client got.
type answer struct {
	status      int
	contentType string
	body        string
}

func newClient(t testing.TB, srv *Server, n Network) *client {
	tr := &http.Transport{DialContext: n.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &client{t: t, srv: srv, http: &http.Client{Transport: tr}}
}

// onMemnet is a server on a host of an in-memory network, its client on another; for a bubble.
func onMemnet(t testing.TB, opts ...Option) (*client, *memnet.Network) {
	network := memnet.New(1)
	srv := RunT(t, append([]Option{WithNetwork(network.Host("10.0.0.1"))}, opts...)...)
	return newClient(t, srv, network.Host("10.0.0.99")), network
}

// try makes a request; params are name, value, ...
func (c *client) try(method, path string, params ...string) (answer, error) {
	q := make(url.Values)
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.srv.URL()+path+"?"+q.Encode(), nil)
	require.NoError(c.t, err)
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(body)}, err
}

func (c *client) do(method, path string, params ...string) answer {
	c.t.Helper()
	a, err := c.try(method, path, params...)
	require.NoError(c.t, err)
	return a
}

// ok makes a request that must succeed.
func (c *client) ok(method, path string, params ...string) string {
	c.t.Helper()
	a := c.do(method, path, params...)
	require.Equal(c.t, http.StatusOK, a.status, a.body)
	return a.body
}

func (c *client) register(service, ip string, more ...string) {
	c.t.Helper()
	require.Equal(c.t, "ok", c.ok("POST", wire.PathInstance, append([]string{"serviceName", service, "ip", ip, "port", "80"}, more...)...))
}

func (c *client) deregister(service, ip string, more ...string) {
	c.t.Helper()
	require.Equal(c.t, "ok", c.ok("DELETE", wire.PathInstance, append([]string{"serviceName", service, "ip", ip, "port", "80"}, more...)...))
}

func (c *client) update(service, ip string, more ...string) {
	c.t.Helper()
	require.Equal(c.t, "ok", c.ok("PUT", wire.PathInstance, append([]string{"serviceName", service, "ip", ip, "port", "80"}, more...)...))
}

func (c *client) lightBeat(service, ip string, more ...string) string {
	c.t.Helper()
	return c.ok("PUT", wire.PathBeat, append([]string{"serviceName", service, "ip", ip, "port", "80"}, more...)...)
}

// list is what clients see of a service: ip:port cluster wWEIGHT [unhealthy] metadata, in the order sent.
func (c *client) list(service string, more ...string) []string {
	c.t.Helper()
	body := c.ok("GET", wire.PathInstanceList, append([]string{"serviceName", service}, more...)...)
	return show(c.t, body)
}

// watch waits, looking every 100 ms, and tells after how long each change of what is listed was seen.
func watch(c *client, service string, d time.Duration) (changes []change) {
	c.t.Helper()
	start := time.Now()
	last := "\x00"
	for time.Since(start) <= d {
		if now := strings.Join(c.list(service), "; "); now != last {
			changes = append(changes, change{time.Since(start), now})
			last = now
		}
		time.Sleep(100 * time.Millisecond) // in a bubble
	}
	return changes
}

type change struct {
	after time.Duration
	list  string
}

// show reduces a list as sent to what tests look at.
func show(t testing.TB, body string) []string {
	t.Helper()
	var list struct {
		Hosts []struct {
			IP          string
			Port        int
			ClusterName string
			Weight      float64
			Healthy     bool
			Metadata    map[string]string
		}
		ReachProtectionThreshold bool
	}
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	hosts := []string{}
	for _, h := range list.Hosts {
		text := fmt.Sprintf("%s:%d %s w%v", h.IP, h.Port, h.ClusterName, h.Weight)
		if !h.Healthy {
			text += " unhealthy"
		}
		for _, k := range slices.Sorted(maps.Keys(h.Metadata)) {
			text += " " + k + "=" + h.Metadata[k]
		}
		if list.ReachProtectionThreshold {
			text += " protected"
		}
		hosts = append(hosts, text)
	}
	return hosts
}

// between wants d within lo and hi.
func between(t testing.TB, what string, d, lo, hi time.Duration) {
	t.Helper()
	if d < lo || d > hi {
		t.Errorf("%s after %v, want %v to %v", what, d, lo, hi)
	}
}
