package nacos

import (
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// edges are the values an option takes at most and at least, and those just beyond.
type edges struct{ good, bad []Option }

func durations(with func(time.Duration) Option, low, high time.Duration) edges {
	e := edges{[]Option{with(low), with(high)}, []Option{with(low - 1), with(math.MinInt64)}}
	if high < Forever {
		e.bad = append(e.bad, with(high+1), with(Forever))
	}
	return e
}

func counts(with func(int) Option, high int) edges {
	return edges{[]Option{with(1), with(high)}, []Option{with(0), with(-1), with(math.MinInt), with(high + 1), with(math.MaxInt)}}
}

func texts(with func(string) Option, good, bad []string) (e edges) {
	for _, text := range good {
		e.good = append(e.good, with(text))
	}
	for _, text := range bad {
		e.bad = append(e.bad, with(text))
	}
	return e
}

var optionEdges = map[string]edges{
	"WithServers": texts(func(a string) Option { return WithServers("10.0.0.1", a) },
		[]string{"nacos", "nacos:1", "10.0.0.2:65535", "[2001:db8::1]:80", "2001:db8::1", "[::1]", "https://nacos/ctx", "http://nacos:80", "a.b-c.d"},
		[]string{"", " ", "nacos:0", "nacos:65536", "nacos:x", "nacos:", "na cos", "ftp://nacos", "http://", "http://u:p@nacos", "http://nacos?a=b",
			"nacos/nacos", "a,b", "-a", "10.0.0.256", "10.0.0.1:80:80", "nacos\n", "http://nacos/%zz"}),
	"WithContextPath": texts(WithContextPath, []string{"", "/", "nacos", "/a/b/"}, []string{"/a?b", "/a#b", "/a%20b", "/a\x00", "/\xff"}),
	"WithNamespace":   texts(WithNamespace, []string{"", "public", "8e2a-01"}, []string{" ", " dev", "dev ", "d\nev", "d\xffv"}),
	"WithAppName":     texts(WithAppName, []string{"", "shop"}, []string{"a\tb", "\xff"}),

	"WithConnectTimeout":  durations(WithConnectTimeout, time.Millisecond, time.Hour),
	"WithRequestTimeout":  durations(WithRequestTimeout, time.Millisecond, time.Hour),
	"WithServerPenalty":   durations(WithServerPenalty, 0, time.Hour),
	"WithCloseTimeout":    durations(WithCloseTimeout, time.Millisecond, time.Hour),
	"WithBeatInterval":    durations(WithBeatInterval, 100*time.Millisecond, 15*time.Second-time.Millisecond),
	"WithBeatGrid":        durations(WithBeatGrid, 0, time.Minute),
	"WithPollInterval":    durations(WithPollInterval, time.Millisecond, time.Hour),
	"WithMinPollInterval": durations(WithMinPollInterval, time.Millisecond, time.Hour),
	"WithFirstPollDelay":  durations(WithFirstPollDelay, time.Millisecond, time.Hour),
	"WithMaxPollBackoff":  durations(WithMaxPollBackoff, time.Millisecond, time.Hour),
	"WithIdleExpiry":      durations(WithIdleExpiry, time.Millisecond, Forever),
	"WithEmptyProtection": durations(WithEmptyProtection, 0, Forever),

	"WithMaxTries":    counts(WithMaxTries, 100),
	"WithBeatWorkers": counts(WithBeatWorkers, 10_000),
	"WithPollWorkers": counts(WithPollWorkers, 10_000),
	"WithMaxServices": counts(WithMaxServices, math.MaxInt32),

	"WithLogger":       {nil, []Option{WithLogger(nil)}},
	"WithDialer":       {nil, []Option{WithDialer(nil)}},
	"WithRoundTripper": {nil, []Option{WithRoundTripper(nil)}},
	"WithRandomSource": {[]Option{WithRandomSource(fixed(1))}, []Option{WithRandomSource(nil)}},

	"WithoutServerAdoption":    {[]Option{WithoutServerAdoption()}, nil},
	"WithDeregisterPersistent": {[]Option{WithDeregisterPersistent()}, nil},
}

// N1, N2: a value out of range is refused by name, and a constructor that fails starts nothing.
func TestOptionsRefuseWhatIsOutOfRange(t *testing.T) {
	leakcheck.Check(t)
	for name, e := range optionEdges {
		for i, o := range e.good {
			ns, err := NewNamingService(o)
			if assert.NoError(t, err, "%s %d", name, i) {
				assert.NoError(t, ns.Close())
			}
		}
		for i, o := range e.bad {
			ns, err := NewNamingService(WithServers("10.0.0.1"), o, Option{})
			assert.Nil(t, ns)
			assertArgument(t, err, "option "+name, "%s %d", name, i)
		}
	}
}

// assertArgument says that err is an *ArgumentError about that argument, with a rule.
func assertArgument(t *testing.T, err error, argument string, message ...any) {
	t.Helper()
	var wrong *ArgumentError
	if assert.ErrorAs(t, err, &wrong, message...) {
		assert.Equal(t, argument, wrong.Argument, message...)
		assert.NotEmpty(t, wrong.Rule, message...)
		assert.Contains(t, wrong.Error(), wrong.Rule, message...)
	}
}

// N1
func TestOptionsThatDoNotFit(t *testing.T) {
	leakcheck.Check(t)
	_, err := NewNamingService(WithServers("nacos"), Option{})
	assertArgument(t, err, "option 2")
	_, err = NewNamingService(WithDialer((&net.Dialer{}).DialContext), WithRoundTripper(agreeable{}))
	assertArgument(t, err, "option WithDialer")
}

// Every option that exists is in the table above.
func TestEveryOptionIsTested(t *testing.T) {
	leakcheck.Check(t)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	option := regexp.MustCompile(`(?m)^func (With\w+)\(.*\) Option \{`)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range option.FindAllStringSubmatch(string(text), -1) {
			assert.Contains(t, optionEdges, match[1], file)
			found++
		}
	}
	assert.Len(t, optionEdges, found)
}

// N1: no request before the first call, and none at all without one.
func TestTheConstructorAsksNobody(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		time.Sleep(time.Hour)
		assert.Empty(t, w.server().Requests())
		assert.Zero(t, w.net.Dials())
		require.NoError(t, ns.Close())
	})
}

func TestOptionsReachTheServer(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithNamespace("dev"), WithAppName("shop & co"), WithServers("http://"+w.server().Addr()+"/nacos"), WithContextPath("/other"))
		_, err := ns.GetAllInstances(w.ctx, "orders")
		require.NoError(t, err)
		_, err = w.client(WithNamespace("")).GetAllInstances(w.ctx, "orders")
		require.NoError(t, err)
		requests := w.asked("orders")
		require.Len(t, requests, 2)
		assert.Equal(t, []string{"dev", "shop & co"}, []string{requests[0].Param("namespaceId"), requests[0].Param("app")})
		assert.Equal(t, []string{"public", ""}, []string{requests[1].Param("namespaceId"), requests[1].Param("app")})
	})
}

// The list of addresses is copied.
func TestOptionsKeepNothingOfTheCallers(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		addresses := w.cluster.Addrs()
		option := WithServers(addresses...)
		ns := w.client(option)
		addresses[0] = "changed"
		_, err := ns.GetServerStatus(w.ctx)
		assert.NoError(t, err)
	})
}

// H1: options of calls add up to one key.
func TestGather(t *testing.T) {
	leakcheck.Check(t)
	c, err := gather("Test", math.MaxUint16, []CallOption{Group("g"), Clusters("b", "a", "b"), Unhealthy(), NoSubscribe(), KeepTrying(), Where(everyone)})
	require.NoError(t, err)
	assert.Equal(t, serviceKey{"g", "s", "a,b"}, c.key("s"))
	assert.True(t, c.has(optUnhealthy) && c.has(optNoSubscribe) && c.has(optKeepTrying) && c.where != nil)
	c, err = gather("Test", math.MaxUint16, []CallOption{Group("g"), Clusters("b"), Group("h"), Clusters()})
	require.NoError(t, err)
	assert.Equal(t, serviceKey{"h", "s", ""}, c.key("s"), "the last one counts")
	names := []string{"b", "a"}
	_, err = gather("Test", math.MaxUint16, []CallOption{Clusters(names...)})
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "a"}, names, "the caller's slice is not sorted")

	options := []CallOption{Group("g"), Clusters("b"), Where(everyone)}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = gather("Test", math.MaxUint16, options) }))
}
