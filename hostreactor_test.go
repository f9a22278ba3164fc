package nacos

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// place puts an instance at 10.9.0.1 that stays healthy without heartbeats into the server.
func (w *world) place(service string, port int, change ...func(*mininacos.Instance)) {
	w.Helper()
	in := mininacos.NewInstance("10.9.0.1", port)
	in.Metadata = map[string]string{MetadataBeatTimeout: "900000000", MetadataDeleteTimeout: "900000000"}
	for _, f := range change {
		f(&in)
	}
	require.NoError(w, w.server().Register("", "", service, in))
}

func (w *world) drop(service string, port int) {
	w.server().Deregister("", "", service, "10.9.0.1", port)
}

// asked returns the requests for lists of a service that the first server remembers.
func (w *world) asked(service string) (requests []*mininacos.Request) {
	for _, r := range w.server().RequestLog() {
		if r.API == mininacos.APIList && strings.HasSuffix(r.Param("serviceName"), "@@"+service) {
			requests = append(requests, r)
		}
	}
	return requests
}

// lists has every request for a list end in f's fault until heal is called.
func (w *world) lists(f func(*mininacos.Request) mininacos.Fault) (heal func()) {
	return w.server().Intercept(func(r *mininacos.Request) (none mininacos.Fault) {
		if r.API != mininacos.APIList {
			return none
		}
		return f(r)
	})
}

var unavailable = mininacos.Fault{Status: http.StatusInternalServerError}

func (w *world) refuse() (heal func()) {
	return w.lists(func(*mininacos.Request) mininacos.Fault { return unavailable })
}

// answer has every request for a list answered with this body.
func (w *world) answer(body string) (heal func()) {
	return w.lists(func(*mininacos.Request) mininacos.Fault {
		return mininacos.Fault{Status: http.StatusOK, Body: body, ContentType: "application/json"}
	})
}

// all returns the ports of all instances of a service that the client sees.
func (w *world) all(ns *NamingService, service string, options ...CallOption) []int {
	w.Helper()
	list, err := ns.GetAllInstances(w.ctx, service, options...)
	require.NoError(w, err)
	return ports(list)
}

// H1
func TestOneListForClustersInAnyOrder(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for i, cluster := range []string{"a", "b", "c"} {
			w.place("orders", i, func(in *mininacos.Instance) { in.Cluster = cluster })
		}
		ns := w.client()
		for _, clusters := range [][]string{{"b", "a"}, {"a", "b"}, {"a", "b", "a"}} {
			assert.Equal(t, []int{0, 1}, w.all(ns, "orders", Clusters(clusters...)))
		}
		require.Len(t, w.asked("orders"), 1)
		assert.Equal(t, "a,b", w.asked("orders")[0].Param("clusters"))
		assert.Equal(t, []int{0, 1, 2}, w.all(ns, "orders", Clusters()))
		assert.Equal(t, []int{0, 1, 2}, w.all(ns, "orders"))
		assert.Len(t, w.asked("orders"), 2)
		assert.Empty(t, w.all(ns, "orders", Group("other")))
		assert.Equal(t, 3, ns.Stats().Services)
	})
}

// H1: some servers list all clusters whatever they are asked for.
func TestClustersThatWereNotAskedForAreLeftOut(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answer(`{"name":"DEFAULT_GROUP@@orders","lastRefTime":1,"hosts":[{"ip":"10.9.0.1","port":1,"clusterName":"a"},{"ip":"10.9.0.1","port":2,"clusterName":"b"}]}`)
		ns := w.client()
		assert.Equal(t, []int{2}, w.all(ns, "orders", Clusters("c", "b")))
		assert.Equal(t, []int{1}, w.all(ns, "orders", Clusters("a"), NoSubscribe()))
		assert.Equal(t, []int{1, 2}, w.all(ns, "orders"))
	})
}

// H2
func TestFirstLookupsShareAQueryAndWaitOnTheirOwn(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		w.lists(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Delay: 2 * time.Second} })
		ns := w.client()
		begin := time.Now()
		var lookups sync.WaitGroup
		for i := range 30 {
			lookups.Go(func() {
				ctx, cancel := context.WithTimeout(w.ctx, time.Duration(i+1)*300*time.Millisecond+time.Microsecond)
				defer cancel()
				list, err := ns.GetAllInstances(ctx, "orders")
				if waits := time.Duration(i+1) * 300 * time.Millisecond; waits < 2*time.Second {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.InDelta(t, waits, time.Since(begin), float64(50*time.Millisecond))
					return
				}
				assert.NoError(t, err)
				assert.Equal(t, []int{1}, ports(list))
				assert.InDelta(t, 2*time.Second, time.Since(begin), float64(50*time.Millisecond))
			})
		}
		lookups.Wait()
		assert.Len(t, w.asked("orders"), 1)
	})
}

// H2: the query goes on when the one who was first gives up.
func TestTheFirstQueryOutlivesItsCaller(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		w.lists(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Delay: 500 * time.Millisecond} })
		ns := w.client()
		ctx, cancel := context.WithCancel(w.ctx)
		time.AfterFunc(time.Millisecond, cancel)
		_, err := ns.GetAllInstances(ctx, "orders")
		assert.ErrorIs(t, err, context.Canceled)
		time.Sleep(600 * time.Millisecond)
		assert.Equal(t, []int{1}, w.all(ns, "orders"))
		assert.Len(t, w.asked("orders"), 1)
	})
}

// H2, H3
func TestAFailedFirstQueryIsAnsweredFromMemoryUntilTheNextTry(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		heal := w.refuse()
		ns := w.client(WithMaxTries(1))
		_, first := ns.GetAllInstances(w.ctx, "orders")
		var failure *APIError
		require.ErrorAs(t, first, &failure)
		assert.Equal(t, http.StatusInternalServerError, failure.Status)
		begin := time.Now()
		for range 100 {
			_, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
			assert.Equal(t, first, err)
		}
		assert.Zero(t, time.Since(begin))
		assert.Len(t, w.asked("orders"), 1)
		heal()
		time.Sleep(time.Second + 2*time.Millisecond)
		assert.Equal(t, []int{1}, w.all(ns, "orders"))
		assert.Len(t, w.asked("orders"), 2)
		assert.Equal(t, uint64(1), ns.Stats().QueriesFailed)
	})
}

// H2, N5: Close ends the wait for a first query.
func TestCloseEndsTheWaitForAFirstQuery(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.lists(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Hang: true} })
		ns := w.client()
		time.AfterFunc(time.Second, func() { assert.NoError(t, ns.Close()) })
		begin := time.Now()
		_, err := ns.GetAllInstances(w.ctx, "orders")
		assert.ErrorIs(t, err, ErrClosed)
		assert.ErrorContains(t, err, "list DEFAULT_GROUP@@orders")
		assert.InDelta(t, time.Second, time.Since(begin), float64(10*time.Millisecond))
	})
}

// H2: between the end of a failed query and the first list there is no moment without either.
func TestALookupWhileTheFirstListIsTakenOver(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		heal := w.refuse()
		ns := w.client(WithMaxTries(1))
		var during []error
		ns.hosts.onList = func(string, string, []Instance, time.Time) {
			_, err := ns.GetAllInstances(w.ctx, "orders")
			during = append(during, err)
		}
		_, first := ns.GetAllInstances(w.ctx, "orders")
		require.Error(t, first)
		heal()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []error{first}, during)
		assert.Equal(t, []int{1}, w.all(ns, "orders"))
	})
}

// H2
func TestLookupsBeyondTheLimitAskEachTimeAndSubscriptionsAreNeverRefused(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxServices(2))
		for _, service := range []string{"a", "b", "c", "d"} {
			w.place(service, 1)
			for range 3 {
				assert.Equal(t, []int{1}, w.all(ns, service))
			}
		}
		handle := ns.Service("c")
		snap, err := handle.Snapshot(w.ctx)
		require.NoError(t, err)
		assert.Zero(t, snap.Age)
		assert.Equal(t, 2, ns.Stats().Services)
		assert.Equal(t, []int{1, 1, 4, 3}, []int{len(w.asked("a")), len(w.asked("b")), len(w.asked("c")), len(w.asked("d"))})

		var r record
		sub, err := ns.Subscribe("c", r.on)
		require.NoError(t, err)
		moment()
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]"}, r.lines())
		for range 3 {
			assert.Equal(t, []int{1}, w.all(ns, "c"))
		}
		assert.Len(t, w.asked("c"), 5)
		sub.Unsubscribe()
		time.Sleep(6 * time.Minute)
		assert.Zero(t, ns.Stats().Services)
		assert.Equal(t, []int{1}, w.all(ns, "d"))
		assert.Equal(t, 1, ns.Stats().Services, "there is room again")
	})
}

// H9
func TestAServiceThatNobodyUsesIsForgotten(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client()
		handle := ns.Service("orders")
		var r record
		for round := range 3 {
			list, err := handle.Instances(w.ctx)
			require.NoError(t, err)
			assert.Equal(t, []int{1}, ports(list), "the handle works again")
			time.Sleep(4 * time.Minute)
			assert.Equal(t, []int{1}, w.all(ns, "orders"))
			time.Sleep(4*time.Minute + 50*time.Second)
			assert.Equal(t, 1, ns.Stats().Services, "looked up within 5 minutes")
			time.Sleep(31 * time.Second)
			assert.Zero(t, ns.Stats().Services)
			w.server().ResetRequests()
			time.Sleep(time.Hour)
			assert.Empty(t, w.asked("orders"), "the task has stopped")
			if round == 1 {
				sub, err := handle.Subscribe(r.on)
				require.NoError(t, err)
				time.Sleep(time.Hour)
				assert.Equal(t, 1, ns.Stats().Services, "a subscription keeps it")
				sub.Unsubscribe()
				time.Sleep(4 * time.Minute)
				assert.Equal(t, 1, ns.Stats().Services, "its end counts as use")
				time.Sleep(2 * time.Minute)
				assert.Zero(t, ns.Stats().Services)
			}
		}
		assert.Len(t, r.all(), 1)
	})
}

// H9: lookups and subscriptions that meet the end of the list get it all the same.
func TestUseWhileTheListIsForgotten(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client(WithIdleExpiry(time.Millisecond))
		handle := ns.Service("orders")
		made := 0
		for range 100 {
			expires := time.Now().Add(2 * time.Second) // at the second poll
			_, err := handle.Instances(w.ctx)
			require.NoError(t, err)
			before := handle.entry.Load()
			var users sync.WaitGroup
			for range 3 {
				users.Go(func() {
					time.Sleep(time.Until(expires))
					list, err := handle.Instances(w.ctx)
					assert.NoError(t, err)
					assert.Equal(t, []int{1}, ports(list))
					one, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
					assert.NoError(t, err)
					assert.Equal(t, 1, one.Port)
				})
				users.Go(func() {
					time.Sleep(time.Until(expires))
					var r record
					sub, err := ns.Subscribe("orders", r.on)
					assert.NoError(t, err)
					moment()
					assert.Len(t, r.all(), 1)
					sub.Unsubscribe()
				})
			}
			users.Wait()
			if handle.entry.Load() != before {
				made++
			}
			time.Sleep(5 * time.Second)
			assert.Zero(t, ns.Stats().Services)
		}
		t.Logf("%d of 100 met a list that was just forgotten", made)
	}, mininacos.WithCacheMillis(time.Second))
}

// H10
func TestNoSubscribeLeavesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client()
		for i := range 3 {
			assert.Equal(t, []int{1}, w.all(ns, "orders", NoSubscribe()))
			snap, err := ns.GetService(w.ctx, "orders", NoSubscribe())
			require.NoError(t, err)
			assert.Zero(t, snap.Age)
			assert.Len(t, w.asked("orders"), 2*(i+1))
		}
		time.Sleep(time.Hour)
		assert.Len(t, w.asked("orders"), 6)
		assert.Zero(t, ns.Stats().Services)
		w.refuse()
		_, err := ns.SelectOneHealthyInstance(w.ctx, "orders", NoSubscribe())
		var failure *APIError
		assert.True(t, errors.As(err, &failure))
	})
}

// H13
func TestOtherQueriesDoNotChangeWhatASubscriberGets(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		w.place("orders", 2, func(in *mininacos.Instance) { in.Cluster = "b" })
		ns := w.client()
		var every, ofB record
		_, err := ns.Subscribe("orders", every.on)
		require.NoError(t, err)
		_, err = ns.Subscribe("orders", ofB.on, Clusters("b"))
		require.NoError(t, err)
		for range 40 {
			time.Sleep(time.Second)
			assert.Equal(t, []int{1}, w.all(ns, "orders", Clusters("DEFAULT")))
			assert.Empty(t, w.all(ns, "orders", Clusters("none")))
			assert.Equal(t, []int{2}, w.all(ns, "orders", Clusters("b"), NoSubscribe()))
			_, err = ns.SelectInstances(w.ctx, "orders", Unhealthy(), Where(func(Instance) bool { return false }))
			assert.NoError(t, err)
		}
		assert.Equal(t, []string{"initial [1 2] +[1 2] -[] ~[]"}, every.lines())
		assert.Equal(t, []string{"initial [2] +[2] -[] ~[]"}, ofB.lines())
		assert.Equal(t, []string{"b"}, ofB.all()[0].Clusters)
		assert.Equal(t, []ServiceName{{Group: DefaultGroup, Service: "orders"}, {Group: DefaultGroup, Service: "orders", Clusters: []string{"b"}}},
			ns.GetSubscribeServices())
	})
}
