package nacos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// P8
func TestParseServer(t *testing.T) {
	leakcheck.Check(t)
	for address, want := range map[string]string{
		"nacos.example.com":            "http nacos.example.com:8848 /nacos",
		"nacos:80":                     "http nacos:80 /nacos",
		"10.0.0.1":                     "http 10.0.0.1:8848 /nacos",
		"10.0.0.1:18848":               "http 10.0.0.1:18848 /nacos",
		"::1":                          "http [::1]:8848 /nacos",
		"[::1]":                        "http [::1]:8848 /nacos",
		"[2001:db8::1]:99":             "http [2001:db8::1]:99 /nacos",
		"http://nacos":                 "http nacos:80 /nacos",
		"https://nacos":                "https nacos:443 /nacos",
		"https://nacos:8443/":          "https nacos:8443 /nacos",
		"http://10.0.0.1:8848/custom/": "http 10.0.0.1:8848 /custom",
		"http://[::1]:8848/a/b":        "http [::1]:8848 /a/b",
		"HTTP://nacos:1":               "http nacos:1 /nacos",
	} {
		s, err := parseServer(address, "/nacos")
		if assert.NoError(t, err, address) {
			assert.Equal(t, want, s.scheme+" "+s.host+" "+s.path, address)
		}
	}
	for _, address := range []string{
		"", " ", ":8848", "host:", "host:0", "host:65536", "host:port", "host:-1", "a b", "-host", "host/nacos", "host?x=1",
		"ftp://host", "://host", "http://", "http://host:0", "http://user:secret@host", "http://host?x=1", "http://host#f", "http://host/%2f",
		"a:1,b:1", "host:1/nacos", "[::1", "::1]", "[nohost]x", "host\n", "http://ho st",
	} {
		_, err := parseServer(address, "/nacos")
		var bad *ArgumentError
		if assert.ErrorAs(t, err, &bad, "%q", address) {
			assert.Equal(t, "server address", bad.Argument)
			assert.NotEmpty(t, bad.Rule)
			assert.NotContains(t, bad.Rule, "secret")
		}
	}
}

// three makes a list of servers a, b and c, whose random start is what the source gives.
func three(t *testing.T, seed uint64) *serverList {
	t.Helper()
	l, err := newServerList([]string{"a", "b", "c", "a"}, "/nacos", newRandom(rand.NewPCG(seed, 1)))
	require.NoError(t, err)
	require.Equal(t, 3, l.size(), "one that is given twice counts once")
	return l
}

// order returns the hosts in the order in which a rotation gives them.
func order(r *rotation, api string, limit int, now time.Time) string {
	text := ""
	for s := r.next(api, limit, now); s != nil; s = r.next(api, limit, now) {
		text += s.host[:1]
	}
	return text
}

// P1: from a random start round the list, each server once, and every server is the first at times.
func TestRotationReachesEveryServer(t *testing.T) {
	leakcheck.Check(t)
	for n := 1; n <= 9; n++ {
		names := make([]string, n)
		for i := range names {
			names[i] = string(rune('a' + i))
		}
		l, err := newServerList(names, "", newRandom(rand.NewPCG(1, 1)))
		require.NoError(t, err)
		firsts := make(map[byte]bool)
		for range 50 * n {
			got := order(l.rotation(false), "list", 0, time.Now())
			require.Len(t, got, n)
			firsts[got[0]] = true
			for i := 1; i < n; i++ {
				require.Equal(t, (int(got[i-1]-'a')+1)%n, int(got[i]-'a'), "the next one is the next in the list")
			}
		}
		assert.Len(t, firsts, n)
	}
}

// P7, B7, P5: who is passed over, and who comes last.
func TestRotationPassesOver(t *testing.T) {
	leakcheck.Check(t)
	now := time.Now()
	l := three(t, 1)
	l.stay(l.servers[0])
	sticky := func(api string, limit int, at time.Time) string {
		text := order(l.rotation(true), api, limit, at)
		for range text {
			for _, s := range l.servers {
				if limit > 0 && s.held > 0 {
					l.release(s)
				}
			}
		}
		return text
	}
	assert.Equal(t, "abc", sticky("list", 0, now))
	assert.True(t, l.failed(l.servers[0], now.Add(10*time.Second)), "news")
	assert.False(t, l.failed(l.servers[0], now.Add(10*time.Second)), "no news")
	assert.Equal(t, "bca", sticky("list", 0, now), "the failing one last, never excluded")
	assert.Equal(t, "abc", sticky("list", 0, now.Add(10*time.Second)), "for 10 s")
	assert.True(t, l.answered(l.servers[0]))
	assert.False(t, l.answered(l.servers[0]))
	assert.Equal(t, "abc", sticky("list", 0, now))

	l.lacks(l.servers[1], "list", now)
	assert.Equal(t, "ac", sticky("list", 0, now), "b said it has no such API")
	assert.Equal(t, "abc", sticky("beat", 0, now), "others it may have")
	assert.Equal(t, "abc", sticky("list", 0, now.Add(unsupportedFor)), "it may have been upgraded")
	assert.False(t, l.allLack("list", now))

	busy := l.rotation(true).next("beat", 1, now)
	assert.Equal(t, "a", busy.host[:1])
	assert.Equal(t, "bc", order(l.rotation(true), "beat", 1, now), "a holds as many as it may")
	l.release(busy)
}
