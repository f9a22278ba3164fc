package nacos

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sequences are the two ways to watch.
func sequences(ctx context.Context, ns *NamingService, service string, options ...CallOption) []iter.Seq2[Event, error] {
	return []iter.Seq2[Event, error]{ns.Watch(ctx, service, options...), ns.Service(service, options...).Watch(ctx)}
}

// E6
func TestWatch(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		ns := w.client()
		ctx, cancel := context.WithCancel(w.ctx)
		var ranges sync.WaitGroup
		var rs [4]record
		for i, seq := range sequences(ctx, ns, "orders", Where(odd)) {
			for twice := range 2 { // both at once
				ranges.Go(func() {
					for e, err := range seq {
						assert.NoError(t, err)
						rs[2*i+twice].on(e)
					}
				})
			}
		}
		time.Sleep(2 * time.Second)
		assert.Equal(t, 4, ns.Stats().Subscriptions, "each range subscribes")
		w.place("orders", 2)
		w.place("orders", 3)
		time.Sleep(10 * time.Second)
		cancel()
		ranges.Wait()
		for i := range rs {
			assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "[1 3] +[3] -[] ~[]"}, rs[i].lines())
		}
		assert.Zero(t, ns.Stats().Subscriptions)

		for _, seq := range sequences(w.ctx, ns, "orders") {
			for range 2 { // one after the other
				for e, err := range seq {
					assert.NoError(t, err)
					assert.True(t, e.Initial)
					assert.Equal(t, 1, ns.Stats().Subscriptions)
					break
				}
				assert.Zero(t, ns.Stats().Subscriptions, "break unsubscribes")
			}
		}
	})
}

// E6
func TestWatchEndsWhenTheServiceCloses(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		var ranges sync.WaitGroup
		count := func(seq iter.Seq2[Event, error]) (events int, errs []error) {
			for _, err := range seq {
				if err != nil {
					errs = append(errs, err)
				} else {
					events++
				}
			}
			return events, errs
		}
		for _, seq := range sequences(w.ctx, ns, "orders") {
			ranges.Go(func() {
				events, errs := count(seq)
				assert.Equal(t, 1, events)
				require.Len(t, errs, 1)
				assert.ErrorIs(t, errs[0], ErrClosed)
			})
		}
		moment()
		require.NoError(t, ns.Close())
		ranges.Wait()
		for _, seq := range sequences(w.ctx, ns, "orders") {
			events, errs := count(seq)
			assert.Zero(t, events)
			require.Len(t, errs, 1)
			assert.ErrorIs(t, errs[0], ErrClosed)
		}
	})
}

// E3, by way of a server: also an empty list is told once, and one that is known already at once.
func TestSubscribersGetTheListOnce(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxTries(1))
		heal := w.refuse()
		var early, late record
		_, err := ns.Subscribe("orders", early.on)
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		assert.Empty(t, early.all(), "nothing is known yet")
		heal()
		time.Sleep(30 * time.Second)
		assert.Equal(t, []string{"initial [] +[] -[] ~[]"}, early.lines())
		_, err = ns.Service("orders").Subscribe(late.on)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, early.lines(), late.lines(), "without asking a server")
		e := late.all()[0]
		assert.Equal(t, ServiceName{Group: DefaultGroup, Service: "orders"}, e.ServiceName)
		assert.Equal(t, SourcePoll, e.Source)
		assert.WithinDuration(t, time.Now(), e.Time, 30*time.Second)
	})
}

func TestGetSubscribeServices(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		assert.Empty(t, ns.GetSubscribeServices())
		var subs []*Subscription
		for _, s := range []*Service{ns.Service("b"), ns.Service("a", Clusters("y", "x")), ns.Service("a"), ns.Service("z", Group("A")), ns.Service("a")} {
			sub, err := s.Subscribe(func(Event) {})
			require.NoError(t, err)
			subs = append(subs, sub)
		}
		_ = w.all(ns, "looked-up-only")
		assert.Equal(t, []ServiceName{{Group: "A", Service: "z"}, {Group: DefaultGroup, Service: "a"},
			{Group: DefaultGroup, Service: "a", Clusters: []string{"x", "y"}}, {Group: DefaultGroup, Service: "b"}}, ns.GetSubscribeServices())
		for _, i := range []int{0, 1, 2} {
			subs[i].Unsubscribe()
		}
		assert.Equal(t, []ServiceName{{Group: "A", Service: "z"}, {Group: DefaultGroup, Service: "a"}}, ns.GetSubscribeServices())
		require.NoError(t, ns.Close())
		assert.Empty(t, ns.GetSubscribeServices())
	})
}
