package mininacos

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Protection as a real 2.3.2 showed it, for .1 unhealthy and .2 healthy unless said otherwise. Threshold: -1 stands for none ever set.
func TestS6_ProtectionThreshold(t *testing.T) {
	sick, well := "10.1.1.1:80 DEFAULT w1 unhealthy", "10.1.1.2:80 DEFAULT w1"
	safe1, safe2 := "10.1.1.1:80 DEFAULT w1 protected", "10.1.1.2:80 DEFAULT w1 protected"
	for _, tc := range []struct {
		name        string
		threshold   float32
		healthyOnly string
		alone       bool // .1 is the only one
		want        []string
	}{
		{"no threshold, none healthy", -1, "false", true, []string{sick}},
		{"threshold 0, none healthy", 0, "false", true, []string{safe1}},
		{"threshold 0, none healthy, healthy only", 0, "true", true, []string{}},
		{"threshold 0, half healthy", 0, "false", false, []string{sick, well}},
		{"threshold 0, half healthy, healthy only", 0, "true", false, []string{well}},
		{"threshold 1", 1, "false", false, []string{safe1, safe2}},
		{"threshold 1, healthy only", 1, "true", false, []string{safe2}},
		{"threshold 0.5, half healthy", 0.5, "false", false, []string{safe1, safe2}},
		{"threshold 0.4, half healthy", 0.4, "false", false, []string{sick, well}},
		{"negative threshold counts as 0", -2, "false", false, []string{sick, well}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := onMemnet(t)
			c.register("s", "10.1.1.1", "healthy", "false")
			if !tc.alone {
				c.register("s", "10.1.1.2")
			}
			if tc.threshold != -1 {
				require.NoError(t, c.srv.SetProtectThreshold("", "", "s", tc.threshold))
			}
			require.Equal(t, tc.want, c.list("s", "healthyOnly", tc.healthyOnly), tc.name)
			require.Empty(t, c.list("s", "clusters", "zz"), tc.name)
		})
	}
}

// A list says the time it was answered at by its server's clock, whatever was encoded before, and shows each change at once.
func TestS6_ListIsFreshAndCarriesTheServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t, WithClockOffset(-time.Hour))
		c.register("s", "10.1.1.1")
		stamp := func(offset time.Duration) string {
			return fmt.Sprintf(`"lastRefTime":%d,`, time.Now().Add(offset).UnixMilli())
		}
		for range 3 {
			time.Sleep(1234 * time.Millisecond)
			require.Contains(t, c.ok("GET", wire.PathInstanceList, "serviceName", "s"), stamp(-time.Hour))
			require.Contains(t, c.ok("GET", wire.PathInstanceList, "serviceName", "unknown"), stamp(-time.Hour))
		}
		c.srv.SetClockOffset(time.Minute)
		require.Contains(t, c.ok("GET", wire.PathInstanceList, "serviceName", "s"), stamp(time.Minute))

		one, two := "10.1.1.1:80 DEFAULT w1", "10.1.1.2:80 DEFAULT w1"
		require.Equal(t, []string{one}, c.list("s"))
		c.register("s", "10.1.1.2")
		require.Equal(t, []string{one, two}, c.list("s"))
		require.NoError(t, c.srv.SetHealthy("", "", "s", "10.1.1.1", 80, false))
		require.Equal(t, []string{two}, c.list("s", "healthyOnly", "true"))
		c.lightBeat("s", "10.1.1.1")
		require.Equal(t, []string{one, two}, c.list("s", "healthyOnly", "true"))
		c.register("s", "10.1.1.1") // keeps its place
		require.Equal(t, []string{one, two}, c.list("s"))
		c.deregister("s", "10.1.1.1")
		require.Equal(t, []string{two}, c.list("s"))
	})
}

// Lists of known and unknown services alike say how long to keep them.
func TestS6_CacheMillis(t *testing.T) {
	for _, tc := range []struct {
		opts []Option
		want string
	}{
		{nil, `"cacheMillis":10000,`},
		{[]Option{WithCacheMillis(2500*time.Millisecond + 999*time.Microsecond)}, `"cacheMillis":2500,`},
		{[]Option{WithCacheMillis(999 * time.Millisecond)}, `"cacheMillis":1000,`},
		{[]Option{WithCacheMillis(-time.Hour)}, `"cacheMillis":1000,`},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := onMemnet(t, tc.opts...)
			c.register("s", "10.1.1.1")
			require.Contains(t, c.ok("GET", wire.PathInstanceList, "serviceName", "s"), tc.want)
			require.Contains(t, c.ok("GET", wire.PathInstanceList, "serviceName", "unknown"), tc.want)
		})
	}
}

// Clients choose the clusters of a list, so what is kept of encoded lists is bounded.
func TestS6_EncodedListsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		c.register("s", "10.1.1.1")
		for i := range 10 * mostLists {
			require.Empty(t, c.list("s", "clusters", fmt.Sprint("c", i)))
		}
		require.LessOrEqual(t, len(c.srv.reg.services[keyOf("", "", "s")].lists), mostLists)
	})
}

// Many instances come and go in any order: those left are listed in the order they registered in.
func TestS6_OrderOfRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		rnd := seeded(3)
		var want []string
		for i := range 500 {
			ip := fmt.Sprintf("10.1.%d.%d", i/250, i%250)
			require.NoError(t, c.srv.Register("", "", "s", NewInstance(ip, 80)))
			want = append(want, ip+":80")
			for len(want) > 3 && rnd.Uint64()%3 == 0 {
				at := int(rnd.Uint64() % uint64(len(want)))
				ip, _, _ := strings.Cut(want[at], ":")
				c.srv.Deregister("", "", "s", ip, 80)
				want = append(want[:at:at], want[at+1:]...)
			}
		}
		var got []string
		for _, in := range c.srv.Instances("", "", "s") {
			got = append(got, in.Addr())
		}
		require.Equal(t, want, got)
	})
}
