package nacos

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

const crewSize = 50

// crew is a client with many registrations and subscriptions, and a watch over its heartbeats as they
// arrive at the servers.
type crew struct {
	*world
	ns     *NamingService
	regs   []*Registration
	events []*record

	mu    sync.Mutex
	heard map[string]time.Time     // address to when a server last heard of it
	worst map[string]time.Duration // address to the longest silence
}

// newCrew registers an instance of each service and subscribes to each.
func newCrew(w *world) *crew {
	c := &crew{world: w, ns: w.client(), heard: make(map[string]time.Time), worst: make(map[string]time.Duration)}
	w.cluster.Intercept(c.hear)
	for i := range crewSize {
		name := fmt.Sprintf("service-%d", i)
		c.regs = append(c.regs, w.register(c.ns, name, NewInstance("10.9.0.1", 8000+i)))
		r := new(record)
		c.events = append(c.events, r)
		_, err := c.ns.Subscribe(name, r.on)
		require.NoError(w, err)
	}
	return c
}

func (c *crew) hear(r *mininacos.Request) mininacos.Fault {
	if r.API == mininacos.APIBeat || r.API == mininacos.APIRegister {
		c.mu.Lock()
		defer c.mu.Unlock()
		at := r.Param("ip") + ":" + r.Param("port")
		if last, ok := c.heard[at]; ok {
			c.worst[at] = max(c.worst[at], r.Time.Sub(last))
		}
		c.heard[at] = r.Time
	}
	return mininacos.Fault{}
}

// longestSilence returns the longest time for which the servers heard nothing of an instance, up to now, and
// begins anew.
func (c *crew) longestSilence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := time.Duration(0)
	for at, last := range c.heard {
		longest = max(longest, c.worst[at], time.Since(last))
	}
	clear(c.worst)
	return longest
}

// expectAll fails the test unless the server lists every instance as healthy.
func (c *crew) expectAll(s *mininacos.Server) {
	c.Helper()
	for i := range crewSize {
		c.expect(s, fmt.Sprintf("service-%d", i), fmt.Sprintf("10.9.0.1:%d", 8000+i))
	}
}

// B1, B4: for six hours (one under the race detector), or as long as NACOS_DAY says, nobody is silent for longer than 1.2 periods.
func TestDayWithoutSilence(t *testing.T) {
	day := 6 * time.Hour
	if raceDetector {
		day = time.Hour
	}
	if text := os.Getenv("NACOS_DAY"); text != "" {
		var err error
		day, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	inWorld(t, 3, func(w *world) {
		c := newCrew(w)
		for begun := time.Now(); time.Since(begun) < day; {
			time.Sleep(10 * time.Minute)
			if silence := c.longestSilence(); silence > 6*time.Second {
				w.Fatalf("an instance was silent for %s, 1.2 periods are 6s", silence)
			}
		}
		c.expectAll(w.server())
		for _, r := range c.events {
			require.Len(w, r.all(), 1, "nothing changed, so there is only the initial event")
		}
		stats := c.ns.Stats()
		assert.Equal(w, []int{crewSize, crewSize, crewSize, crewSize}, []int{stats.Registrations, stats.Beats, stats.Services, stats.Subscriptions})
		assert.Zero(w, stats.BeatsFailed+stats.QueriesFailed+stats.Renewals)
		assert.InEpsilon(w, day.Seconds()/5*crewSize, stats.BeatsSent, 0.01, "one beat a period")
		require.NoError(w, c.ns.Close())
	})
}

// B5: a server that restarts empty has everybody back within a period and a second.
func TestServerThatRestartsEmptyHasAllInstancesBack(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		c := newCrew(w)
		for _, down := range []time.Duration{0, 12 * time.Second, 3 * time.Minute} {
			time.Sleep(time.Minute)
			w.server().Stop()
			time.Sleep(down)
			require.NoError(w, w.server().Restart(mininacos.LoseState))
			time.Sleep(6 * time.Second)
			c.expectAll(w.server())
			for _, r := range c.regs {
				require.Equal(w, StateLive, r.State())
				require.NoError(w, r.Err())
			}
		}
		assert.EqualValues(w, 3*crewSize, c.ns.Stats().Renewals)
	})
}

// P1, P5, P7: servers vanish and return one by one; as long as one is left no request fails.
func TestNoRequestFailsWhileOneServerIsLeft(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		c := newCrew(w)
		var failures []error
		ask := func() {
			_, err := c.ns.GetAllInstances(w.ctx, "service-1", NoSubscribe())
			failures = append(failures, err)
			_, err = c.ns.GetServicesOfServer(w.ctx, 1, 10)
			failures = append(failures, err)
			failures = append(failures, c.regs[2].Update(w.ctx, c.regs[2].Instance()))
			_, err = c.ns.RegisterInstance(w.ctx, "more", NewInstance("10.9.0.2", 80))
			failures = append(failures, err)
		}
		for left := range w.servers { // all but this one vanish one after the other, and return
			for i, s := range w.servers {
				if i != left {
					s.Stop()
					ask()
					time.Sleep(15 * time.Second)
					ask()
				}
			}
			for i, s := range w.servers {
				if i != left {
					require.NoError(w, s.Restart(mininacos.KeepState))
					ask()
					time.Sleep(15 * time.Second)
				}
			}
		}
		require.NoError(w, errors.Join(failures...))
		stats := c.ns.Stats()
		assert.Zero(w, stats.BeatsFailed)
		assert.Zero(w, stats.QueriesFailed)
		assert.LessOrEqual(w, c.longestSilence(), 6*time.Second)
		c.expectAll(w.server())
	})
}

// B7: one of three servers swallows everything and nobody's beat is later than 1.5 periods.
func TestBlackHoleDelaysNoBeatBeyondOneAndAHalfPeriods(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		c := newCrew(w)
		time.Sleep(time.Minute)
		c.longestSilence()
		for i := range w.servers {
			w.net.BlackHole(serverIP(i), true)
			time.Sleep(5 * time.Minute)
			if silence := c.longestSilence(); silence > 7500*time.Millisecond {
				w.Errorf("an instance was silent for %s while server %d was a black hole, 1.5 periods are 7.5s", silence, i)
			}
			w.net.BlackHole(serverIP(i), false)
			time.Sleep(time.Minute)
		}
		c.expectAll(w.server())
	})
}

// H3: after an outage lists follow as soon as heartbeats show that a server is back, however long polls would
// have waited.
func TestListsFollowAsSoonAsAServerIsBack(t *testing.T) {
	for _, vanish := range []func(w *world){
		func(w *world) { w.server().Stop() },
		func(w *world) { w.net.BlackHole(serverIP(0), true) },
	} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			w.register(ns, "mine", NewInstance("10.9.0.1", 80))
			var events record
			_, err := ns.Subscribe("orders", events.on)
			require.NoError(w, err)
			moment()
			vanish(w)
			_, err = ns.SelectOneHealthyInstance(w.ctx, "unseen")
			require.Error(w, err)
			time.Sleep(10 * time.Minute)
			w.net.BlackHole(serverIP(0), false)
			require.NoError(w, w.server().Restart(mininacos.KeepState))
			for _, service := range []string{"orders", "unseen"} {
				require.NoError(w, w.server().Register("", "", service, mininacos.NewInstance("10.9.0.2", 80)))
			}
			time.Sleep(7 * time.Second) // one period, the second within which polls spread, one to try again
			_, err = ns.SelectOneHealthyInstance(w.ctx, "unseen")
			require.NoError(w, err)
			assert.Len(w, events.all(), 2)
		})
	}
}
