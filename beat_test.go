package nacos

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

const (
	own        = "10.9.0.1:8080" // where instance() is
	beatPeriod = 5 * time.Second // what servers ask for by default
)

// instance is the one most tests register, with what they change.
func instance(change ...func(*Instance)) Instance { return at(8080, change...) }

func persistent(in *Instance) { in.Ephemeral = false }

func weight(w float64) func(*Instance) { return func(in *Instance) { in.Weight = w } }

// meta sets the metadata, given as keys and values.
func meta(kv ...string) func(*Instance) {
	m := make(map[string]string)
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(in *Instance) { in.Metadata = NewMetadata(m) }
}

// stored tells in lines what the server knows of a service, disabled and unhealthy instances too.
func (w *world) stored(service string) []string {
	lines := []string{}
	for _, in := range w.server().Instances("", "", service) {
		line := fmt.Sprintf("%s weight=%g %s", in.Addr(), in.Weight, NewMetadata(in.Metadata))
		if !in.Enabled {
			line += " disabled"
		}
		if !in.Healthy {
			line += " unhealthy"
		}
		lines = append(lines, line)
	}
	return lines
}

// traffic remembers the requests of one API that reach any server, in order.
type traffic struct {
	mu   sync.Mutex
	list []*mininacos.Request
}

// watch remembers requests from now on and lets them pass. It sees nothing that an earlier fault ends.
func (w *world) watch(api mininacos.API) *traffic {
	var t traffic
	w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
		if r.API == api {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.list = append(t.list, r)
		}
		return mininacos.Fault{}
	})
	return &t
}

func (t *traffic) all() []*mininacos.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*mininacos.Request(nil), t.list...)
}

// gaps are the times between one request and the next.
func (t *traffic) gaps() (out []time.Duration) {
	list := t.all()
	for i := 1; i < len(list); i++ {
		out = append(out, list[i].Time.Sub(list[i-1].Time))
	}
	return out
}

// fault makes something happen to every request of one API.
func (w *world) fault(api mininacos.API, f mininacos.Fault) (remove func()) {
	return w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
		if r.API == api {
			return f
		}
		return mininacos.Fault{}
	})
}

// reply is the fault by which a server answers ok with this body and does nothing.
func reply(body string) mininacos.Fault {
	return mininacos.Fault{Status: 200, Body: body, ContentType: "application/json"}
}

func isFull(r *mininacos.Request) bool { return r.Param("beat") != "" }

func TestB1_BeatIntervalIsTheMetadatasElseTheOptions(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []Option
		meta    string
		first   time.Duration // the period before the first reply
		later   time.Duration // what the server asks for: it goes by the metadata too
	}{
		{"default", nil, "", 5 * time.Second, 5 * time.Second},
		{"metadata", nil, "1000", time.Second, time.Second},
		{"option", []Option{WithBeatInterval(2 * time.Second)}, "", 2 * time.Second, 5 * time.Second},
		{"metadata wins", []Option{WithBeatInterval(2 * time.Second)}, "3000", 3 * time.Second, 3 * time.Second},
		{"no number", nil, "soon", 5 * time.Second, 5 * time.Second},
		{"too short", nil, "1", 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				beats, ns := w.watch(mininacos.APIBeat), w.client(c.options...)
				in := instance()
				if c.meta != "" {
					in = instance(meta(MetadataBeatInterval, c.meta))
				}
				start := time.Now()
				w.register(ns, "orders", in)
				time.Sleep(8 * c.later)
				first := beats.all()[0].Time.Sub(start)
				assert.LessOrEqual(t, first, c.first+5*time.Millisecond)
				assert.Greater(t, first, c.first*7/10)
				for _, gap := range beats.gaps()[1:] {
					assert.InDelta(t, c.later.Seconds(), gap.Seconds(), 0.11*c.later.Seconds())
				}
			})
		})
	}
}

func TestB1_UpdateChangesTheInterval(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns, beats := w.client(), w.watch(mininacos.APIBeat)
		reg := w.register(ns, "orders", instance(meta(MetadataBeatInterval, "12000")))
		time.Sleep(time.Minute)
		for len(beats.all()) < 6 {
			time.Sleep(time.Second)
		}
		before := len(beats.all())
		require.NoError(t, reg.Update(w.ctx, instance(meta(MetadataBeatInterval, "1000"))))
		time.Sleep(6 * time.Second)
		assert.InDelta(t, before+6, len(beats.all()), 1)
	})
}

func TestB1_IntervalNotBelowTheTimeoutsIsRefused(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns, slow, quick := w.client(), w.client(WithBeatInterval(10*time.Second)), w.client(WithBeatInterval(time.Second))
		for _, c := range []struct {
			name string
			ns   *NamingService
			in   Instance
			ok   bool
		}{
			{"below", ns, instance(meta(MetadataBeatInterval, "14999")), true},
			{"equal to the default timeout", ns, instance(meta(MetadataBeatInterval, "15000")), false},
			{"above both", ns, instance(meta(MetadataBeatInterval, "40000")), false},
			{"own timeouts", ns, instance(meta(MetadataBeatInterval, "40000", MetadataBeatTimeout, "60000", MetadataDeleteTimeout, "90000")), true},
			{"default interval, shorter timeout", ns, instance(meta(MetadataBeatTimeout, "5000")), false},
			{"default interval, shorter removal", ns, instance(meta(MetadataDeleteTimeout, "5000")), false},
			{"the option's interval, shorter timeout", slow, instance(meta(MetadataBeatTimeout, "8000")), false},
			{"the option's interval, shorter removal", slow, instance(meta(MetadataDeleteTimeout, "10000")), false},
			{"servers do not know of the option's interval", quick, instance(meta(MetadataBeatTimeout, "5000")), false},
			{"the option's interval does not count", slow, instance(meta(MetadataBeatTimeout, "8000", MetadataBeatInterval, "1000")), true},
		} {
			w.server().ResetRequests()
			reg, err := c.ns.RegisterInstance(w.ctx, "orders", c.in)
			if c.ok {
				require.NoError(t, err, c.name)
				require.NoError(t, reg.Deregister(w.ctx))
				continue
			}
			var wrong *ArgumentError
			require.ErrorAs(t, err, &wrong, c.name)
			assert.Contains(t, err.Error(), MetadataBeatTimeout)
			assert.Empty(t, w.server().Requests(), c.name)
		}
		_, err := NewNamingService(WithBeatInterval(15 * time.Second))
		assert.Error(t, err)
	})
}

func TestB3_FirstBeatHasABodyThenTheLatestReplyDecides(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		beats, ns := w.watch(mininacos.APIBeat), w.client()
		w.register(ns, "orders", instance(weight(2), meta("zone", "a")))
		time.Sleep(22 * time.Second)
		w.fault(mininacos.APIBeat, reply(`{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":false}`))
		time.Sleep(15 * time.Second)
		var full []bool
		for _, r := range beats.all() {
			full = append(full, isFull(r))
		}
		require.GreaterOrEqual(t, len(full), 6)
		n := 0
		for n = 1; n < len(full) && !full[n]; n++ { // light as long as the server offered it
		}
		assert.True(t, full[0], "the server has not offered light beats yet")
		assert.GreaterOrEqual(t, n, 4)
		assert.NotContains(t, full[n:], false, "the latest reply offers none")
		require.Less(t, n, len(full))
		body := beats.all()[0].Param("beat")
		for _, part := range []string{`"weight":2`, `"zone":"a"`, `"serviceName":"DEFAULT_GROUP@@orders"`} {
			assert.Contains(t, body, part)
		}
	})
}

// A full beat makes a server that does not know the instance create it enabled.
func TestB3_DisabledInstanceStaysDisabledWhenServersForgetIt(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		other := NewInstance("10.9.0.2", 8080)
		w.register(ns, "orders", other)
		time.Sleep(beatPeriod + time.Second) // its first reply offers light beats, to everybody
		beats := w.watch(mininacos.APIBeat)
		reg := w.register(ns, "orders", instance(disabled, weight(3), meta("zone", "a")))
		want := own + ` weight=3 {"zone":"a"} disabled`
		for range 3 {
			require.NoError(t, w.server().Restart(mininacos.LoseState))
			for range 8 {
				time.Sleep(time.Second)
				for _, line := range w.stored("orders") {
					assert.Contains(t, []string{want, "10.9.0.2:8080 weight=1 {}"}, line)
				}
			}
			assert.Contains(t, w.stored("orders"), want)
			assert.Equal(t, StateLive, reg.State())
		}
		n := 0
		for _, r := range beats.all() {
			if r.Param("ip") == "10.9.0.1" {
				n++
				assert.False(t, isFull(r))
			}
		}
		assert.NotZero(t, n)
	})
}

func TestB4_ServersIntervalReplacesTheDelayWithinBounds(t *testing.T) {
	for asked, want := range map[int64]time.Duration{
		1: 100 * time.Millisecond, 250: 250 * time.Millisecond, 1000: time.Second, 60_000: time.Minute,
		1_000_000_000: 5 * time.Minute, 9_000_000_000_000_000_000: 5 * time.Minute,
		0: beatPeriod, -7: beatPeriod, // no interval
	} {
		inWorld(t, 1, func(w *world) {
			beats, ns := w.watch(mininacos.APIBeat), w.client()
			w.fault(mininacos.APIBeat, reply(fmt.Sprintf(`{"clientBeatInterval":%d,"lightBeatEnabled":true}`, asked)))
			w.register(ns, "orders", instance())
			time.Sleep(beatPeriod + 7*want)
			gaps := beats.gaps()
			require.GreaterOrEqual(t, len(gaps), 6, "%d ms", asked)
			assert.LessOrEqual(t, gaps[0], want+time.Millisecond, "%d ms: the second beat finds its place within the period", asked)
			for _, gap := range gaps[1:] {
				assert.InDelta(t, want.Seconds(), gap.Seconds(), 0.11*want.Seconds(), "%d ms", asked)
			}
		})
	}
}

// Neither the time beats take nor rounding adds up, and beats of many instances go out together.
func TestB4_DueTimesStayOnTheirGridForHours(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		beats, ns := w.watch(mininacos.APIBeat), w.client()
		const (
			instances = 8
			latency   = 20 * time.Millisecond // also what a new connection adds now and then
			hour      = 30 * time.Minute      // long enough: a drift of the latency would be 7 s
		)
		w.net.SetLink("", "", memnet.Link{Latency: latency})
		for i := range instances {
			w.register(ns, "orders", NewInstance("10.9.0.1", 8080+i))
		}
		time.Sleep(11 * time.Second) // all have found their places
		start := len(beats.all())
		time.Sleep(hour)
		list := beats.all()[start:]
		assert.InDelta(t, instances*int(hour/beatPeriod), len(list), instances)
		first := make(map[string]time.Time)
		for _, r := range list {
			port := r.Param("port")
			if first[port].IsZero() {
				first[port] = r.Time
			}
			assertPhase(t, first[port], r.Time, beatPeriod, latency+time.Millisecond)
			assertPhase(t, list[0].Time, r.Time, 500*time.Millisecond, latency+time.Millisecond) // one grid for all
		}
	})
}

// assertPhase fails unless at is a whole number of periods away from start, but for tolerance.
func assertPhase(t *testing.T, start, at time.Time, period, tolerance time.Duration) {
	t.Helper()
	off := at.Sub(start) % period
	assert.LessOrEqual(t, min(off, period-off), tolerance)
}

func TestB5_ForgottenInstanceIsRegisteredAgainAtOnceAsItWas(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance(weight(2.5), meta("zone", "a", "version", "1")), Group("shop"))
		time.Sleep(2 * beatPeriod) // light beats from now on
		beats, posts := w.watch(mininacos.APIBeat), w.watch(mininacos.APIRegister)
		w.server().Deregister("", "shop", "orders", "10.9.0.1", 8080)
		time.Sleep(beatPeriod + moments)
		require.Len(t, posts.all(), 1)
		assert.Less(t, posts.all()[0].Time.Sub(beats.all()[len(beats.all())-1].Time), 10*time.Millisecond)
		found := w.server().Instances("", "shop", "orders")
		require.Len(t, found, 1)
		assert.Equal(t, 2.5, found[0].Weight)
		assert.Equal(t, map[string]string{"zone": "a", "version": "1"}, found[0].Metadata)
		assert.Equal(t, StateLive, reg.State())
		assert.EqualValues(t, 1, ns.Stats().Renewals)
	})
}

func TestB5_CodesOfABeatReply(t *testing.T) {
	for code, again := range map[string]bool{
		`"code":20404,`: true, `"code":21003,`: true, `"code":10200,`: false, ``: false,
	} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			reg := w.register(ns, "orders", instance())
			posts := w.watch(mininacos.APIRegister)
			w.fault(mininacos.APIBeat, reply(`{`+code+`"clientBeatInterval":5000,"lightBeatEnabled":true}`))
			time.Sleep(2*beatPeriod + time.Second)
			assert.Equal(t, again, len(posts.all()) > 0, code)
			assert.NoError(t, reg.Err(), code)
			assert.Less(t, time.Since(reg.LastBeat()), beatPeriod+time.Second, code)
		})
	}
}

func TestB5_RegisteringAgainGoesOnWithBackoffUntilItSucceeds(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		log, logs := logged()
		ns := w.client(log)
		reg := w.register(ns, "orders", instance(meta("zone", "a")))
		time.Sleep(2 * beatPeriod)
		posts := w.watch(mininacos.APIRegister)
		heal := w.fault(mininacos.APIRegister, mininacos.Fault{Status: 503})
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(time.Minute)
		assert.Equal(t, StateRegistering, reg.State())
		assert.Error(t, reg.Err())
		assert.Empty(t, w.stored("orders"), "no beat brings it in another way")
		// Bursts are the three tries at the only server; between them the pauses grow up to the period.
		assert.InDelta(t, 60/5*3, len(posts.all()), 24)
		assert.Equal(t, 1, logs.FilterMessage("registration fails, it is tried again").Len(), "once per change")
		heal()
		time.Sleep(beatPeriod)
		assert.Equal(t, []string{own + ` weight=1 {"zone":"a"}`}, w.stored("orders"))
		assert.Equal(t, StateLive, reg.State())
		assert.NoError(t, reg.Err())
		time.Sleep(time.Minute)
		w.expect(w.server(), "orders", own)
	})
}

func TestB6_FailedBeatIsDueAgainWithinAPeriod(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance())
		time.Sleep(2 * beatPeriod)
		for _, f := range []mininacos.Fault{{Hang: true}, {Refuse: true}, {Garbage: true}, {HangReply: true}, {Delay: 2 * time.Second}, reply(`<html>`)} {
			heal, before := w.fault(mininacos.APIBeat, f), ns.Stats()
			time.Sleep(4 * beatPeriod)
			failed := ns.Stats().BeatsFailed - before.BeatsFailed
			assert.InDelta(t, 4, failed, 1, "%+v", f)
			assert.Error(t, reg.Err())
			assert.Equal(t, StateLive, reg.State())
			heal()
			time.Sleep(beatPeriod + 5*time.Second)
			assert.NoError(t, reg.Err(), "%+v", f)
			w.expect(w.server(), "orders", own)
		}
	})
}

// A beat asks each server, a quarter of its period long.
func TestB6_TriesOfABeatAreShort(t *testing.T) {
	for interval, try := range map[string]time.Duration{
		"5000": 1250 * time.Millisecond, "1000": 250 * time.Millisecond, "14000": 3 * time.Second,
	} {
		inWorld(t, 3, func(w *world) {
			ns, tries := w.client(), w.watch(mininacos.APIBeat)
			w.register(ns, "orders", instance(meta(MetadataBeatInterval, interval)))
			w.fault(mininacos.APIBeat, mininacos.Fault{Hang: true})
			for len(tries.all()) < 3 {
				time.Sleep(10 * time.Millisecond)
			}
			for _, gap := range tries.gaps()[:2] {
				assert.InDelta(t, try.Seconds(), gap.Seconds(), 0.01, interval)
			}
		})
	}
}

func TestB7_BlackHoledServerDelaysNobody(t *testing.T) {
	for instances, options := range map[int][]Option{
		100: nil,
		// So that those at the black hole take more time than all workers have.
		80: {WithServerPenalty(0), WithBeatWorkers(4)},
	} {
		inWorld(t, 3, func(w *world) {
			ns := w.client(options...)
			for i := range instances {
				w.register(ns, "orders", NewInstance("10.9.0.1", 8000+i))
			}
			beats := w.watch(mininacos.APIBeat)
			time.Sleep(2 * beatPeriod)
			w.net.BlackHole(serverIP(1), true)
			time.Sleep(time.Minute)
			last := make(map[string]time.Time)
			for _, r := range beats.all() {
				port := r.Param("port")
				if before := last[port]; !before.IsZero() {
					assert.LessOrEqual(t, r.Time.Sub(before), beatPeriod*3/2, port)
				}
				last[port] = r.Time
			}
			require.Len(t, last, instances)
			for port, at := range last {
				assert.LessOrEqual(t, time.Since(at), beatPeriod*3/2, port)
			}
		})
	}
}

func TestB9_PersistentInstanceNeverBeats(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance(persistent))
		time.Sleep(3 * time.Minute)
		assert.Zero(t, w.server().Requests()[mininacos.APIBeat])
		assert.Equal(t, StateLive, reg.State())
		stats := ns.Stats()
		assert.Equal(t, 1, stats.Registrations)
		assert.Zero(t, stats.Beats+int(stats.BeatsSent))
	})
}

func TestB10_Gauges(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		a := w.register(ns, "orders", instance())
		w.register(ns, "orders", NewInstance("10.9.0.2", 8080))
		w.register(ns, "stock", instance(persistent))
		gauges := func() [2]int { s := ns.Stats(); return [2]int{s.Registrations, s.Beats} }
		assert.Equal(t, [2]int{3, 2}, gauges())
		w.register(ns, "orders", instance(weight(2)))
		assert.Equal(t, [2]int{3, 2}, gauges(), "the same key again")
		time.Sleep(12 * time.Second)
		s := ns.Stats()
		assert.InDelta(t, 5, s.BeatsSent, 1)
		assert.EqualValues(t, w.server().Requests()[mininacos.APIBeat], s.BeatsSent)
		assert.Zero(t, s.BeatsFailed+s.Renewals)
		assert.WithinDuration(t, time.Now(), a.LastBeat(), beatPeriod+time.Second)
		require.NoError(t, a.Deregister(w.ctx))
		assert.Equal(t, [2]int{2, 1}, gauges())
	})
}

// moments is time enough for a few exchanges.
const moments = 10 * time.Millisecond
