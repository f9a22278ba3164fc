package nacos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// listOf makes a list of n servers named 1 to n, whose random choices are those of seed.
func listOf(t *testing.T, n int, seed uint64) *serverList {
	t.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("10.0.0.%d", i+1))
	}
	l, err := newServerList(names, "/nacos", newRandom(rand.NewPCG(seed, 1)))
	require.NoError(t, err)
	return l
}

// order are the servers that a request tries, by their index.
func order(l *serverList, sticky bool, api string, now time.Time) (got []int) {
	r := l.rotation(sticky)
	for s := r.next(api, 0, now); s != nil; s = r.next(api, 0, now) {
		got = append(got, slices.Index(l.servers, s))
	}
	return got
}

// P1: from a random start round the list, each server once; polls always from the same one.
func TestRotationVisitsEachServerOnce(t *testing.T) {
	leakcheck.Check(t)
	for n := 1; n <= 9; n++ {
		starts, polls := make([]int, n), make([]int, n)
		for seed := range uint64(40 * n) {
			l := listOf(t, n, seed)
			got := order(l, false, "list", time.Unix(1000, 0))
			require.Len(t, got, n)
			for i := range got {
				require.Equal(t, (got[0]+i)%n, got[i], "%d servers: %v", n, got)
			}
			starts[got[0]]++
			first := order(l, true, "list", time.Unix(1000, 0))
			require.Equal(t, first, order(l, true, "list", time.Unix(1000, 0)))
			polls[first[0]]++
		}
		assert.NotContains(t, starts, 0, "%d servers: never the first of a request: %v", n, starts)
		assert.NotContains(t, polls, 0, "%d servers: never the first of polls: %v", n, polls)
	}
}

// P7: servers under a penalty come last, in their order, and never fail to come.
func TestPenaltyMovesToTheEnd(t *testing.T) {
	leakcheck.Check(t)
	now := time.Unix(1000, 0)
	end := now.Add(10 * time.Second)
	for _, c := range []struct {
		name    string
		failing []int
		sticky  int
		at      time.Time
		want    []int
	}{
		{"none", nil, 1, now, []int{1, 2, 3, 0}},
		{"the first", []int{1}, 1, now, []int{2, 3, 0, 1}},
		{"another", []int{3}, 1, now, []int{1, 2, 0, 3}},
		{"two", []int{1, 3}, 1, now, []int{2, 0, 1, 3}},
		{"all", []int{0, 1, 2, 3}, 2, now, []int{2, 3, 0, 1}},
		{"until the end", []int{1}, 1, end.Add(-1), []int{2, 3, 0, 1}},
		{"not longer", []int{1}, 1, end, []int{1, 2, 3, 0}},
	} {
		l := listOf(t, 4, 1)
		l.stay(l.servers[c.sticky])
		for _, i := range c.failing {
			assert.True(t, l.failed(l.servers[i], end), "the first failure is news")
			assert.False(t, l.failed(l.servers[i], end), "the second is not")
		}
		assert.Equal(t, c.want, order(l, true, "list", c.at), c.name)
		for _, i := range c.failing {
			assert.True(t, l.answered(l.servers[i]), "the first answer is news")
			assert.False(t, l.answered(l.servers[i]), "the second is not")
		}
		assert.Equal(t, c.sticky, order(l, true, "list", c.at)[0], "%s: back at once", c.name)
	}
}

// P5: a server that lacks an API is asked for it last for a minute, after those that failed, and for others as ever.
func TestLackOfAnAPIIsForgotten(t *testing.T) {
	leakcheck.Check(t)
	l, now := listOf(t, 2, 1), time.Unix(1000, 0)
	l.stay(l.servers[0])
	l.lacks(l.servers[0], "update", now)
	l.failed(l.servers[1], now.Add(time.Hour))
	assert.Equal(t, []int{1, 0}, order(l, true, "update", now.Add(time.Minute-1)))
	l.answered(l.servers[1])
	assert.Equal(t, []int{0, 1}, order(l, true, "list", now))
	assert.Equal(t, []int{0, 1}, order(l, true, "update", now.Add(time.Minute)))
}

// B7: capped requests pass over a server that holds as many as it may; rotation says so when that left nobody.
func TestLimitPassesOverBusyServers(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct {
		name  string
		held  [3]int
		limit int
		lacks []int
		want  []int
		full  bool
	}{
		{"idle", [3]int{}, 2, nil, []int{0, 1, 2}, false},
		{"below the limit", [3]int{1, 1, 1}, 2, nil, []int{0, 1, 2}, false},
		{"one at it", [3]int{2, 0, 0}, 2, nil, []int{1, 2}, true},
		{"one above it", [3]int{0, 5, 0}, 2, nil, []int{0, 2}, true},
		{"all", [3]int{2, 2, 2}, 2, nil, nil, true},
		{"no limit", [3]int{9, 9, 9}, 0, nil, []int{0, 1, 2}, false},
		{"busy ones lack the API anyway", [3]int{2, 0, 0}, 2, []int{0}, []int{1, 2}, false},
	} {
		l, now := listOf(t, 3, 1), time.Unix(1000, 0)
		l.stay(l.servers[0])
		for i, held := range c.held {
			l.servers[i].held = held
		}
		for _, i := range c.lacks {
			l.lacks(l.servers[i], "beat", now)
		}
		r := l.rotation(true)
		var got []int
		for s := r.next("beat", c.limit, now); s != nil; s = r.next("beat", c.limit, now) {
			i := slices.Index(l.servers, s)
			got = append(got, i)
			if c.limit > 0 {
				assert.Equal(t, c.held[i]+1, s.held, "%s: counted in", c.name)
				l.release(s)
			}
			assert.Equal(t, c.held[i], s.held, "%s: counted out", c.name)
		}
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.full, r.full, c.name)
	}
}

// P8: the forms of a server address.
func TestParseServer(t *testing.T) {
	leakcheck.Check(t)
	for address, want := range map[string]string{
		"nacos":                            "http nacos:8848 /ctx",
		"nacos:80":                         "http nacos:80 /ctx",
		"nacos.example.com.:8848":          "http nacos.example.com.:8848 /ctx",
		"10.0.0.1":                         "http 10.0.0.1:8848 /ctx",
		"10.0.0.1:08849":                   "http 10.0.0.1:8849 /ctx",
		"::1":                              "http [::1]:8848 /ctx",
		"[::1]":                            "http [::1]:8848 /ctx",
		"[2001:DB8:0::1]:8849":             "http [2001:db8::1]:8849 /ctx",
		"fe80::1%eth0":                     "http [fe80::1%eth0]:8848 /ctx",
		"http://nacos":                     "http nacos:80 /ctx",
		"http://nacos/":                    "http nacos:80 /ctx",
		"https://nacos":                    "https nacos:443 /ctx",
		"HTTPS://nacos:8443":               "https nacos:8443 /ctx",
		"http://nacos:8848/":               "http nacos:8848 /ctx",
		"http://nacos:8848/my/nacos/":      "http nacos:8848 /my/nacos",
		"http://[::1]/x":                   "http [::1]:80 /x",
		"http://[fe80::1%25eth0]:8848/%7E": "http [fe80::1%eth0]:8848 /~",
	} {
		s, err := parseServer(address, "/ctx")
		if assert.NoError(t, err, address) {
			assert.Equal(t, want, s.scheme+" "+s.host+" "+s.path, address)
		}
	}
	for _, address := range []string{
		"", " ", " nacos", "nacos ", "nacos,other", "nacos:", "nacos:0", "nacos:65536", "nacos:-1", "nacos:+1", "nacos:x", ":8848",
		"nacos:88:48", "nacos/nacos", "na_cos", "-nacos", "na..cos", "::1:88488", "[::1", "[]", "[]:8848", "nacos?x", "nac\u00f6s", "nacos\n",
		"ftp://nacos", "://nacos", "http://", "http:///nacos", "http://:8848", "http://nacos:", "http://user:secret@nacos", "http://nacos/?a=b",
		"http://nacos?", "http://nacos#", "http://nacos/#f", "http://nacos/%25", "http://nacos/%zz", "http://na cos", "http//nacos", "http:nacos",
	} {
		_, err := newConfig([]Option{WithServers("good", address)})
		var wrong *ArgumentError
		if assert.ErrorAs(t, err, &wrong, "%q", address) {
			assert.Equal(t, "option WithServers", wrong.Argument)
			assert.NotContains(t, err.Error(), "secret", "a password is not repeated")
		}
	}
}

// P8: one server written in several ways is one server.
func TestDuplicateServersCountOnce(t *testing.T) {
	leakcheck.Check(t)
	l, err := newServerList([]string{"10.0.0.1", "10.0.0.1:8848", "http://10.0.0.1:8848/nacos/", "10.0.0.1:8849", "::1", "[0::1]:8848"}, "/nacos", newRandom(nil))
	require.NoError(t, err)
	assert.Equal(t, 3, l.size())
	assert.Equal(t, []ServerStats{{Address: "10.0.0.1:8848"}, {Address: "10.0.0.1:8849"}, {Address: "[::1]:8848"}}, l.stats())
}
