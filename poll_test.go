package nacos

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// gaps returns the times between the requests for lists of a service.
func (w *world) gaps(service string) (gaps []time.Duration) {
	requests := w.asked(service)
	for i := 1; i < len(requests); i++ {
		gaps = append(gaps, requests[i].Time.Sub(requests[i-1].Time))
	}
	return gaps
}

// assertGaps compares times with what they should be but for the network's microseconds.
func (w *world) assertGaps(service string, want ...time.Duration) {
	w.Helper()
	rounded := w.gaps(service)
	for i := range rounded {
		rounded[i] = rounded[i].Round(time.Millisecond)
	}
	assert.Equal(w, want, rounded)
}

// H3
func TestPollsAreDueACacheTimeAfterTheLastWasSent(t *testing.T) {
	const body = `{"name":"DEFAULT_GROUP@@orders","hosts":[],"lastRefTime":1,%s"clusters":""}`
	for name, c := range map[string]struct {
		field   string
		options []Option
		want    time.Duration
	}{
		"as the server says": {`"cacheMillis":3000,`, nil, 3 * time.Second},
		"absent":             {"", nil, 10 * time.Second},
		"absent, own":        {"", []Option{WithPollInterval(4 * time.Second)}, 4 * time.Second},
		"zero":               {`"cacheMillis":0,`, nil, 10 * time.Second},
		"below zero":         {`"cacheMillis":-5,`, nil, 10 * time.Second},
		"too short":          {`"cacheMillis":1,`, nil, time.Second},
		"short, own":         {`"cacheMillis":1,`, []Option{WithMinPollInterval(700 * time.Millisecond)}, 700 * time.Millisecond},
		"absurd":             {`"cacheMillis":9223372036854775807,`, nil, time.Hour},
	} {
		inWorld(t, 1, func(w *world) {
			w.lists(func(*mininacos.Request) mininacos.Fault {
				return mininacos.Fault{Delay: 400 * time.Millisecond, Status: http.StatusOK, Body: fmt.Sprintf(body, c.field)}
			})
			ns := w.client(c.options...)
			_, err := ns.Subscribe("orders", func(Event) {})
			require.NoError(t, err)
			time.Sleep(3*c.want + 3*time.Second/2)
			gaps := w.gaps("orders")
			require.GreaterOrEqual(t, len(gaps), 3, name)
			for i, gap := range gaps[:3] {
				want := c.want
				if i == 0 {
					want = time.Second
				}
				assert.InDelta(t, want, gap, float64(2*time.Millisecond), "%s: %d", name, i)
			}
		})
	}
}

// H3: the first poll delay is an option, and an answer that is late does not shift what follows.
func TestPollsDoNotDriftWhenAnswersAreLate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.lists(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{DelayReply: 3 * time.Second} })
		ns := w.client(WithFirstPollDelay(5 * time.Second))
		_, err := ns.Subscribe("orders", func(Event) {})
		require.NoError(t, err)
		time.Sleep(36 * time.Second)
		w.assertGaps("orders", 5*time.Second, 10*time.Second, 10*time.Second, 10*time.Second)
	})
}

// assertBackedOff says that each gap lies between the half and the whole of its bound: the jitter.
func (w *world) assertBackedOff(gaps []time.Duration, bounds ...time.Duration) {
	w.Helper()
	require.GreaterOrEqual(w, len(gaps), len(bounds))
	for i, bound := range bounds {
		assert.LessOrEqual(w, gaps[i], bound+5*time.Millisecond, i)
		assert.GreaterOrEqual(w, gaps[i], bound/2, i)
	}
}

// H3
func TestPollsBackOffWhileTheyFail(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("known", 1)
		ns := w.client(WithMaxTries(1))
		for _, service := range []string{"known", "unknown"} {
			if service == "unknown" {
				w.refuse()
			}
			_, err := ns.Subscribe(service, func(Event) {})
			require.NoError(t, err)
			moment()
		}
		time.Sleep(15 * time.Minute)
		known, unknown := w.gaps("known"), w.gaps("unknown")
		assert.InDelta(t, time.Second, known[0], float64(5*time.Millisecond))
		w.assertBackedOff(known[1:], 20*time.Second, 40*time.Second, time.Minute, time.Minute, time.Minute, time.Minute, time.Minute)
		assert.InDelta(t, time.Second, unknown[0], float64(5*time.Millisecond))
		w.assertBackedOff(unknown[1:], 4*time.Second, 8*time.Second, 16*time.Second, 32*time.Second, time.Minute, time.Minute, time.Minute)
		assert.Equal(t, []int{1}, w.all(ns, "known"), "the last list counts on")
	})
}

// H3: the first answer after failures ends the back-off; an empty list is no failure.
func TestAnAnswerEndsTheBackOff(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxTries(1), WithMaxPollBackoff(20*time.Second))
		_, err := ns.Subscribe("orders", func(Event) {})
		require.NoError(t, err)
		moment()
		heal := w.refuse()
		time.Sleep(5 * time.Minute)
		gaps := w.gaps("orders")
		w.assertBackedOff(gaps[len(gaps)-5:], 20*time.Second, 20*time.Second, 20*time.Second, 20*time.Second, 20*time.Second)
		heal()
		time.Sleep(20 * time.Second)
		w.server().ResetRequests()
		time.Sleep(41 * time.Second)
		w.assertGaps("orders", 10*time.Second, 10*time.Second, 10*time.Second)
	})
}

// H3: what failed before an answer counts no more.
func TestBackOffBeginsAnew(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxTries(1))
		_, err := ns.Subscribe("orders", func(Event) {})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		for range 2 {
			heal := w.refuse()
			w.server().ResetRequests()
			time.Sleep(5 * time.Minute)
			w.assertBackedOff(w.gaps("orders"), 20*time.Second, 40*time.Second, time.Minute)
			heal()
			time.Sleep(70 * time.Second)
		}
	})
}

// H5
func TestABadBodyChangesNothing(t *testing.T) {
	const host = `{"ip":"10.9.0.1","port":1,"weight":1,"healthy":true,"enabled":true,"clusterName":"DEFAULT","metadata":{}}`
	list := func(name, hosts string) string {
		return `{"name":"` + name + `","cacheMillis":1000,"hosts":` + hosts + `,"lastRefTime":1}`
	}
	inWorld(t, 1, func(w *world) {
		w.place("orders", 7)
		ns := w.client(WithMaxTries(1), WithMaxPollBackoff(time.Second))
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		for what, body := range map[string]string{
			"nothing":               ``,
			"no JSON":               `<html>proxy</html>`,
			"null":                  `null`,
			"an array":              `[]`,
			"no fields":             `{}`,
			"cut off":               list("DEFAULT_GROUP@@orders", `[`+host)[:90],
			"no hosts":              `{"name":"DEFAULT_GROUP@@orders","lastRefTime":1}`,
			"hosts null":            list("DEFAULT_GROUP@@orders", `null`),
			"hosts of another kind": list("DEFAULT_GROUP@@orders", `{}`),
			"no name":               `{"hosts":[],"lastRefTime":1}`,
			"empty name":            list("", `[]`),
			"another service":       list("DEFAULT_GROUP@@payments", `[]`),
			"another group":         list("other@@orders", `[]`),
			"one host without ip":   list("DEFAULT_GROUP@@orders", `[`+host+`,{"port":2}]`),
			"one host of another":   list("DEFAULT_GROUP@@orders", `[`+host+`,7]`),
			"one port of letters":   list("DEFAULT_GROUP@@orders", `[`+host+`,{"ip":"10.9.0.1","port":"x"}]`),
			"one port out of range": list("DEFAULT_GROUP@@orders", `[`+host+`,{"ip":"10.9.0.1","port":65536}]`),
		} {
			failed := ns.Stats().QueriesFailed
			heal := w.answer(body)
			time.Sleep(21 * time.Second)
			assert.Greater(t, ns.Stats().QueriesFailed, failed, what)
			assert.Equal(t, []int{7}, w.all(ns, "orders"), what)
			heal()
			time.Sleep(11 * time.Second)
		}
		assert.Len(t, r.all(), 1)

		w.answer(list("orders", `[`+host+`]`)) // 1.x sends the bare name
		time.Sleep(11 * time.Second)
		assert.Equal(t, []int{1}, w.all(ns, "orders"))
	})
}

// H5
func TestAValidEmptyListIsApplied(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client()
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		w.drop("orders", 1)
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "[] +[] -[1] ~[]"}, r.lines())
		assert.Empty(t, w.all(ns, "orders"))
	})
}

// H5
func TestEmptyProtectionHoldsAListBackForTheGraceTime(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		w.place("orders", 2)
		option, logs := logged()
		ns := w.client(WithEmptyProtection(25*time.Second), option)
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		time.Sleep(32 * time.Second)
		unprotected := w.protected(ns, "orders", false)

		// Polls come at 31 s, 41 s and so on. At 41 s the list is empty, at 51 s it is back.
		w.drop("orders", 1)
		w.drop("orders", 2)
		time.Sleep(10 * time.Second)
		held := w.protected(ns, "orders", true)
		assert.Equal(t, []int{1, 2}, ports(held.Instances))
		assert.Equal(t, unprotected.Confirmed, held.Confirmed, "no server says that this is the list")
		assert.Equal(t, unprotected.ReferenceTime, held.ReferenceTime)
		assert.Equal(t, unprotected.Age+10*time.Second, held.Age)
		w.place("orders", 1)
		w.place("orders", 2)
		time.Sleep(10 * time.Second)
		assert.Less(t, w.protected(ns, "orders", false).Age, 2*time.Second)

		// Wholly unhealthy at 61 s; the grace ends at 86 s, between two polls.
		for port := range 2 {
			require.NoError(t, w.server().SetHealthy("", "", "orders", "10.9.0.1", port+1, false))
		}
		time.Sleep(33 * time.Second)
		w.protected(ns, "orders", true)
		_, err = ns.SelectOneHealthyInstance(w.ctx, "orders")
		assert.NoError(t, err)
		assert.Len(t, r.all(), 1)
		time.Sleep(2 * time.Second)
		w.protected(ns, "orders", false)
		var none *NoInstanceError
		_, err = ns.SelectOneHealthyInstance(w.ctx, "orders")
		assert.ErrorAs(t, err, &none)
		assert.Equal(t, []string{"initial [1 2] +[1 2] -[] ~[]", "[1 2] +[] -[] ~[1 2]"}, r.lines())

		// A list without healthy instances is not held back again.
		w.drop("orders", 1)
		w.drop("orders", 2)
		time.Sleep(11 * time.Second)
		assert.Empty(t, w.protected(ns, "orders", false).Instances)
		assert.Equal(t, 2, logs.FilterMessage("empty list held back").Len())
		w.assertGaps("orders", append([]time.Duration{time.Second}, slices.Concat(slices.Repeat([]time.Duration{10 * time.Second}, 8),
			[]time.Duration{5 * time.Second, 10 * time.Second})...)...)
	})
}

// protected returns what the client knows of a service, whose flag must be as given.
func (w *world) protected(ns *NamingService, service string, want bool) ServiceSnapshot {
	w.Helper()
	snap, err := ns.GetService(w.ctx, service)
	require.NoError(w, err)
	assert.Equal(w, want, snap.Protected)
	return snap
}

// H5
func TestEmptyProtectionForever(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client(WithEmptyProtection(Forever))
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		moment()
		w.drop("orders", 1)
		time.Sleep(3 * time.Hour)
		w.protected(ns, "orders", true)
		late, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		late.Unsubscribe()
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "initial [1] +[1] -[] ~[]"}, r.lines())
		w.place("orders", 2)
		time.Sleep(10 * time.Second)
		assert.Equal(t, []int{2}, ports(w.protected(ns, "orders", false).Instances))
		assert.Equal(t, "[2] +[2] -[1] ~[]", r.lines()[2])

		assert.Empty(t, w.all(ns, "nobody"), "the first list is never held back")
		w.protected(ns, "nobody", false)
	})
}

// H7
func TestOnlyChangesAreToldAndTakenOver(t *testing.T) {
	host := func(port int, extra string) string {
		return fmt.Sprintf(`{"ip":"10.9.0.1","port":%d,"weight":1,"healthy":true,"enabled":true,"clusterName":"DEFAULT"%s}`, port, extra)
	}
	list := func(hosts ...string) string {
		return `{"name":"DEFAULT_GROUP@@orders","cacheMillis":1000,"hosts":[` + strings.Join(hosts, ",") + `],"lastRefTime":12}`
	}
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		for _, step := range []struct{ body, event string }{
			{list(host(1, ""), host(2, "")), "[1 2] +[1 2] -[] ~[]"},
			{list(host(2, ""), host(1, "")), ""}, // another order
			{list(host(2, `,"instanceId":"x"`), host(1, `,"ephemeral":false`)), ""},
			{list(host(1, `,"metadata":{"k":"v"}`), host(3, "")), "[1 3] +[3] -[2] ~[1]"},
			{list(host(3, ""), host(1, `,"metadata":{"k":"v"}`)), ""},
			{list(), "[] +[] -[1 3] ~[]"},
		} {
			before := len(r.all())
			heal := w.answer(step.body)
			time.Sleep(10 * time.Second)
			heal()
			if events := r.lines()[before:]; step.event != "" {
				assert.Len(t, events, 1, step.body)
				assert.Contains(t, events[0], step.event)
			} else {
				assert.Empty(t, events, step.body)
			}
		}
	})
}

// H7: what is no change for subscribers is still what lookups give.
func TestIDAndKindAreTakenOverWithoutAnEvent(t *testing.T) {
	const list = `{"name":"DEFAULT_GROUP@@orders","cacheMillis":1000,"lastRefTime":12,"hosts":[` +
		`{"ip":"10.9.0.1","port":1,"weight":1,"healthy":true,"enabled":true,"clusterName":"DEFAULT","instanceId":"%s","ephemeral":%t}]}`
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		for _, step := range []struct {
			id        string
			ephemeral bool
		}{{"a", true}, {"b", true}, {"b", false}} {
			heal := w.answer(fmt.Sprintf(list, step.id, step.ephemeral))
			time.Sleep(3 * time.Second)
			one, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
			require.NoError(t, err)
			assert.Equal(t, step.ephemeral, one.Ephemeral)
			assert.Equal(t, step.id, one.ID)
			heal()
		}
		assert.Len(t, r.all(), 1)
	})
}

// H7
func TestAnUnchangedListIsDecodedEveryThirtiethPoll(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client()
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		time.Sleep(time.Second / 2)
		for poll := range 70 { // at 1 s, 11 s, ...
			time.Sleep(min(10, time.Duration(1+9*poll)) * time.Second)
			full := uint64((poll + 1) / 30)
			stats := ns.Stats()
			assert.Equal(t, uint64(2+poll), stats.Queries)
			assert.Equal(t, uint64(1+poll)-full, stats.QueriesUnchanged, poll)
			snap, err := ns.GetService(w.ctx, "orders")
			require.NoError(t, err)
			assert.InDelta(t, time.Second/2, snap.Age, float64(time.Millisecond), "an answer without news confirms the list too")
			assert.WithinDuration(t, snap.Confirmed, snap.ReferenceTime, time.Millisecond)
		}
		w.place("orders", 2)
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "[1 2] +[2] -[] ~[]"}, r.lines())
	})
}
