package mininacos

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
)

// What a real 2.3.2 listed (each step 0.7 s after the one before; seen through /instance/list):
//
//	register w=5 a=1              w5 a=1
//	PUT w=9 b=2                   w9 a=1 b=2     metadata is merged over
//	register w=3 a=3 b=9          w9 a=3 b=2     the overlay wins key by key, the rest is the new registration's
//	full beat w=4 z=z             w9 a=3 b=2     a beat of a known instance changes nothing
//	PUT                           w1 a=3 b=9     a PUT replaces the overlay; what it does not say is the default
//	PUT w=9 b=2                   w9 a=3 b=2
//	deregister, register w=3 a=3  w9 a=3 b=2     also when registered after 3 s or 50 s
//	75 s of beats                 w9 a=3 b=2     registering stopped its expiry
//	deregister, 75 s later
//	register w=3 a=3              w3 a=3         gone
func TestS6_OverlayTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		const ip = "10.5.0.1"
		listed := func(want string) {
			t.Helper()
			require.Equal(t, []string{ip + ":80 DEFAULT " + want}, c.list("s"))
		}
		c.register("s", ip, "weight", "5", "metadata", `{"a":"1"}`)
		listed("w5 a=1")
		c.update("s", ip, "weight", "9", "metadata", `{"b":"2"}`)
		listed("w9 a=1 b=2")
		c.register("s", ip, "weight", "3", "metadata", `{"a":"3","b":"9"}`)
		listed("w9 a=3 b=2")
		c.ok("PUT", wire.PathBeat, "serviceName", "s", "beat", `{"ip":"`+ip+`","port":80,"weight":4,"serviceName":"s","cluster":"DEFAULT","metadata":{"z":"z"}}`)
		listed("w9 a=3 b=2")
		c.update("s", ip)
		listed("w1 a=3 b=9")
		c.update("s", ip, "weight", "9", "metadata", `{"b":"2"}`)
		for _, away := range []time.Duration{0, 3 * time.Second, 50 * time.Second} {
			c.deregister("s", ip)
			require.Empty(t, c.list("s"))
			time.Sleep(away)
			c.register("s", ip, "weight", "3", "metadata", `{"a":"3"}`)
			listed("w9 a=3 b=2")
		}
		for range 25 {
			time.Sleep(3 * time.Second)
			c.lightBeat("s", ip)
		}
		listed("w9 a=3 b=2")
		c.deregister("s", ip)
		time.Sleep(75 * time.Second)
		c.register("s", ip, "weight", "3", "metadata", `{"a":"3"}`)
		listed("w3 a=3")
	})
}

// What a real 2.3.2 listed:
//
//	register; PUT enabled=false; register enabled=true; full beat   nothing, all along
//	PUT w=2                                                         w2: enabled again, by default
//	register enabled=false w=4                                      nothing
//	PUT a=b                                                         w1 a=b: enabled, and weight 1 (the default again)
//	PUT w=8 of an unknown instance; register it w=2                 w8
func TestS6_OverlayOfEnabledAndOfUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		const ip = "10.5.0.1"
		c.register("s", ip)
		c.update("s", ip, "enabled", "false")
		require.Empty(t, c.list("s"))
		c.register("s", ip, "enabled", "true")
		require.Empty(t, c.list("s"))
		c.lightBeat("s", ip)
		require.Empty(t, c.list("s"))
		require.Len(t, c.srv.Instances("", "", "s"), 1)
		c.update("s", ip, "weight", "2")
		require.Equal(t, []string{ip + ":80 DEFAULT w2"}, c.list("s"))

		c.register("e", ip, "enabled", "false", "weight", "4")
		require.Empty(t, c.list("e"))
		c.update("e", ip, "metadata", `{"a":"b"}`)
		require.Equal(t, []string{ip + ":80 DEFAULT w1 a=b"}, c.list("e"))

		c.register("u", "10.5.0.2")
		c.update("u", ip, "weight", "8")
		require.Equal(t, []string{"10.5.0.2:80 DEFAULT w1"}, c.list("u"))
		c.register("u", ip, "weight", "2")
		require.Equal(t, []string{"10.5.0.2:80 DEFAULT w1", ip + ":80 DEFAULT w8"}, c.list("u"))
	})
}

// What a real 2.3.2 listed for one ip:port in two clusters: instances are known by ip:port, overlays by cluster too.
//
//	register c1 w=2; PUT c1 w=9   c1 w9
//	register c2 w=3               c2 w3   it has moved
//	register c1 w=4               c1 w9
//	light beat, cluster zz        10200   goes by ip:port
//	DELETE, cluster zz            nothing
//	register c1 w=4               c1 w9
func TestS6_SameIPAndPortInTwoClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		const ip = "10.5.0.1"
		c.register("s", ip, "clusterName", "c1", "weight", "2")
		c.update("s", ip, "clusterName", "c1", "weight", "9")
		require.Equal(t, []string{ip + ":80 c1 w9"}, c.list("s"))
		c.register("s", ip, "clusterName", "c2", "weight", "3")
		require.Equal(t, []string{ip + ":80 c2 w3"}, c.list("s"))
		require.Empty(t, c.list("s", "clusters", "c1"))
		c.register("s", ip, "clusterName", "c1", "weight", "4")
		require.Equal(t, []string{ip + ":80 c1 w9"}, c.list("s", "clusters", "c1"))
		require.Contains(t, c.lightBeat("s", ip, "clusterName", "zz"), `"code":10200`)
		c.deregister("s", ip, "clusterName", "zz")
		require.Empty(t, c.list("s"))
		c.register("s", ip, "clusterName", "c1", "weight", "4")
		require.Equal(t, []string{ip + ":80 c1 w9"}, c.list("s"))
	})
}

// An instance that went for want of beats leaves its overlay for a minute as well; the list an overlay changed is not an old
// one.
func TestS6_OverlayOutlivesExpiredInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		const ip = "10.5.0.1"
		for _, tc := range []struct {
			away time.Duration
			want string
		}{{30 * time.Second, "w9"}, {66 * time.Second, "w3"}} {
			c.register("s", ip)
			c.update("s", ip, "weight", "9")
			for len(c.list("s")) > 0 {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(tc.away)
			c.register("s", ip, "weight", "3")
			require.Equal(t, []string{ip + ":80 DEFAULT " + tc.want}, c.list("s"))
		}
	})
}

func TestS6_MergeMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // pure
		m := func(kv ...string) map[string]string {
			out := make(map[string]string)
			for i := 0; i < len(kv); i += 2 {
				out[kv[i]] = kv[i+1]
			}
			return out
		}
		for _, tc := range []struct{ base, over, want map[string]string }{
			{nil, nil, nil},
			{m("a", "1"), nil, m("a", "1")},
			{nil, m("a", "1"), m("a", "1")},
			{m("a", "1", "c", "3"), m("b", "2", "c", "4"), m("a", "1", "b", "2", "c", "4")},
			{m("b", "1"), m("a", "2", "b", "3", "c", "4"), m("a", "2", "b", "3", "c", "4")},
			{m("a", "1", "z", "9"), m("m", "5"), m("a", "1", "m", "5", "z", "9")},
		} {
			require.Equal(t, wire.NewMetadata(tc.want), merge(wire.NewMetadata(tc.base), wire.NewMetadata(tc.over)))
		}
	})
}
