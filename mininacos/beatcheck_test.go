package mininacos

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Measured on 2.3.2, looking every 0.2 s: without beats unhealthy after 15.7 to 20.8 s, gone after 30.6 to 35.8 s, as the
// check runs every 5 s from the registration of the ip:port.
func TestS3_SilentInstanceTurnsUnhealthyThenGoes(t *testing.T) {
	for _, phase := range []time.Duration{0, 700 * time.Millisecond, 2500 * time.Millisecond, 4990 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := onMemnet(t)
			c.register("s", "10.1.1.2") // the service is older than the instance
			time.Sleep(phase)
			c.register("s", "10.1.1.1", "clusterName", "c1")
			changes := watch(c, "s", 40*time.Second)
			var unhealthy, gone time.Duration
			for _, ch := range changes {
				switch {
				case strings.Contains(ch.list, "10.1.1.1:80 c1 w1 unhealthy"):
					unhealthy = max(unhealthy, 1)
					if unhealthy == 1 {
						unhealthy = ch.after
					}
				case unhealthy > 0 && gone == 0 && !strings.Contains(ch.list, "10.1.1.1"):
					gone = ch.after
				}
			}
			between(t, "unhealthy", unhealthy, 15*time.Second, 20800*time.Millisecond)
			between(t, "gone", gone, 30*time.Second, 35800*time.Millisecond)
		})
	}
}

// Measured with a beat time-out of 3 s and a delete time-out of 6 s: 5.6 s and 10.7 s.
func TestS3_PreservedMetadataOverridesTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		c.register("s", "10.1.1.1", "metadata",
			`{"preserved.heart.beat.interval":"1000","preserved.heart.beat.timeout":"3000","preserved.ip.delete.timeout":"6000"}`)
		changes := watch(c, "s", 12*time.Second)
		require.Len(t, changes, 3, changes)
		require.Contains(t, changes[1].list, "unhealthy")
		between(t, "unhealthy", changes[1].after, 3*time.Second, 5600*time.Millisecond)
		require.Empty(t, changes[2].list)
		between(t, "gone", changes[2].after, 6*time.Second, 10700*time.Millisecond)
	})
}

// Measured: time-outs laid over by PUT count too (2 s / 4 s: gone 9.2 s after the last beat), and what is no number is 0 to
// the check (gone with the next check after 4.1 s) while lists show the default.
func TestS3_TimeoutsOfOverlayAndOfNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		c.register("s", "10.1.1.1")
		c.update("s", "10.1.1.1", "metadata", `{"preserved.heart.beat.interval":"1000","preserved.heart.beat.timeout":"2000","preserved.ip.delete.timeout":"4000"}`)
		require.Contains(t, c.lightBeat("s", "10.1.1.1"), `"clientBeatInterval":1000`)
		changes := watch(c, "s", 12*time.Second)
		require.Empty(t, changes[len(changes)-1].list)
		between(t, "gone", changes[len(changes)-1].after, 4*time.Second, 9200*time.Millisecond)

		c.register("n", "10.1.1.1", "metadata", `{"preserved.heart.beat.timeout":"abc","preserved.ip.delete.timeout":"-5"}`)
		body := c.ok("GET", wire.PathInstanceList, "serviceName", "n")
		require.Contains(t, body, `"instanceHeartBeatTimeOut":15000,"ipDeleteTimeout":30000`)
		changes = watch(c, "n", 6*time.Second)
		require.Empty(t, changes[len(changes)-1].list)
		between(t, "gone", changes[len(changes)-1].after, 0, 5100*time.Millisecond)
	})
}

// Measured: a beat makes an unhealthy instance healthy at once. A full beat that names no service, or another, is answered
// 10200 and refreshes nothing; one with the bare name counts as one of DEFAULT_GROUP. A light beat goes by the parameters.
func TestS3_WhatCountsAsBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		full := func(service, name string) {
			beat := `{"ip":"10.1.1.1","port":80,"weight":1,"serviceName":"` + name + `","cluster":"DEFAULT","metadata":{}}`
			require.Contains(t, c.ok("PUT", wire.PathBeat, "serviceName", service, "beat", beat), `"code":10200`)
		}
		services := []string{"grouped", "bare", "none", "other", "light"}
		for _, s := range services {
			c.register(s, "10.1.1.1")
		}
		for range 7 {
			time.Sleep(3 * time.Second)
			full("grouped", "DEFAULT_GROUP@@grouped")
			full("bare", "bare")
			full("none", "")
			full("other", "DEFAULT_GROUP@@grouped")
			c.lightBeat("light", "10.1.1.1", "clusterName", "no-such-cluster")
		}
		healthy := []string{"10.1.1.1:80 DEFAULT w1"}
		unhealthy := []string{"10.1.1.1:80 DEFAULT w1 unhealthy"}
		require.Equal(t, healthy, c.list("grouped"))
		require.Equal(t, healthy, c.list("bare"))
		require.Equal(t, unhealthy, c.list("none"))
		require.Equal(t, unhealthy, c.list("other"))
		require.Equal(t, healthy, c.list("light"))
		full("other", "DEFAULT_GROUP@@other")
		require.Equal(t, healthy, c.list("other"), "one beat")
	})
}

// A full beat of an unknown instance registers it: enabled and healthy whatever the request says beside the beat, in the
// beat's cluster, else the parameter's, else DEFAULT; without weight with weight 0 (measured). One that names an illegal
// heartbeat is refused.
func TestS3_FullBeatRegisters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		beat := func(text string, more ...string) answer {
			return c.do("PUT", wire.PathBeat, append([]string{"serviceName", "s", "beat", text}, more...)...)
		}
		ok := `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`
		require.Equal(t, ok, beat(`{"ip":"10.1.1.1","port":80,"weight":2.5,"cluster":"c1","metadata":{"k":"v"}}`, "enabled", "false", "weight", "7", "healthy", "false").body)
		require.Equal(t, ok, beat(`{"ip":"10.1.1.2","port":80}`, "clusterName", "c2").body)
		require.Equal(t, ok, beat(`{"ip":"10.1.1.3","port":80,"weight":1,"cluster":""}`).body)
		bad := beat(`{"ip":"10.1.1.4","port":80,"metadata":{"preserved.heart.beat.interval":"9000","preserved.heart.beat.timeout":"3000"}}`)
		require.Equal(t, 500, bad.status)
		require.Equal(t, []string{"10.1.1.1:80 c1 w2.5 k=v", "10.1.1.2:80 c2 w0", "10.1.1.3:80 DEFAULT w1"}, c.list("s"))
		require.Contains(t, beat(`null`).body, "because \\\"rsInfo\\\" is null")
		require.Equal(t, 500, beat(`[]`).status)
	})
}

// A service's beat check is one task however many instances it has, from creation until the service goes, one to two minutes
// after its last instance (measured: 77 s).
func TestS2_OneBeatCheckPerServiceWhileItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		runs := countChecks(c.srv, "beat check", "s")
		for range 3 {
			for i := range 50 {
				require.NoError(t, c.srv.Register("", "", "s", NewInstance("10.1.1.1", 1+i)))
			}
		}
		time.Sleep(14*time.Second + time.Millisecond)
		require.Equal(t, 2, runs())
		for i := range 50 {
			c.srv.Deregister("", "", "s", "10.1.1.1", 1+i)
		}
		emptied := time.Now()
		for len(c.srv.Services("")) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		between(t, "service gone", time.Since(emptied), time.Minute, 2*time.Minute)
		before := runs()
		time.Sleep(time.Hour)
		require.Equal(t, before, runs(), "a task outlived its service")

		c.register("s", "10.1.1.1")
		time.Sleep(5*time.Second + time.Millisecond)
		require.Equal(t, before+1, runs(), "a service that is created again has its task")
	})
}

func TestS2_BeatCheckSurvivesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		var runs atomic.Int64
		setHook(c.srv, func(string, serviceKey) {
			if runs.Add(1) <= 4 { // the checks up to 20 s
				panic("for the test")
			}
		})
		c.register("s", "10.1.1.1")
		changes := watch(c, "s", 40*time.Second)
		require.Len(t, changes, 3, changes)
		require.Contains(t, changes[1].list, "unhealthy")
		between(t, "unhealthy", changes[1].after, 24*time.Second, 26*time.Second)
		require.Empty(t, changes[2].list)
		require.Greater(t, runs.Load(), int64(4))
	})
}

// setHook has f called in each check.
func setHook(srv *Server, f func(check string, k serviceKey)) {
	srv.reg.mu.Lock()
	defer srv.reg.mu.Unlock()
	srv.reg.hook = f
}

// countChecks counts the runs of a check for a service.
func countChecks(srv *Server, check, service string) (count func() int) {
	var n atomic.Int64
	setHook(srv, func(what string, k serviceKey) {
		if what == check && k.name == service {
			n.Add(1)
		}
	})
	return func() int { return int(n.Load()) }
}
