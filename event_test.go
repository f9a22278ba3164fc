package nacos

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// board is a service whose list a test sets, with a dispatcher that tells of it.
type board struct {
	topic topic
	d     *eventDispatcher
	logs  *observer.ObservedLogs
	snap  atomic.Pointer[snapshot]
	seq   uint64
}

// onBoard runs a test in a bubble, which ends only when every goroutine of the dispatcher has.
func onBoard(t *testing.T, test func(t *testing.T, b *board)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		b := &board{d: newEventDispatcher(zap.New(core)), logs: logs}
		b.topic = newTopic(serviceKey{group: "shop", name: "orders", clusters: "a,b"}, b.snap.Load)
		b.d.start()
		t.Cleanup(func() { b.close(context.Background()) })
		test(t, b)
	})
}

// hosts makes a list of instances with these ports.
func hosts(ports ...int) []Instance {
	list := []Instance{}
	for _, p := range ports {
		list = append(list, NewInstance("10.0.0.1", p))
	}
	return list
}

// put sets the list and tells of it; delivery goes on behind.
func (b *board) put(list ...Instance) {
	b.seq++
	b.snap.Store(&snapshot{hosts: list, source: SourcePoll, seq: b.seq, at: time.Now()})
	b.d.changed(&b.topic)
}

// set is put, and waits until everything is delivered.
func (b *board) set(ports ...int) {
	b.put(hosts(ports...)...)
	synctest.Wait()
}

// close ends the dispatcher and waits for the callbacks that run.
func (b *board) close(ctx context.Context) {
	b.d.end()
	_ = b.d.wait(ctx)
}

// record collects events.
type record struct {
	mu     sync.Mutex
	events []Event
}

func (r *record) on(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// all returns the events so far.
func (r *record) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// lines gives each event as "[initial] ports +added -removed ~modified".
func (r *record) lines() []string {
	lines := []string{}
	for _, e := range r.all() {
		lines = append(lines, line(e))
	}
	return lines
}

func line(e Event) string {
	text := fmt.Sprintf("%v +%v -%v ~%v", ports(e.Instances), ports(e.Added), ports(e.Removed), ports(e.Modified))
	if e.Initial {
		return "initial " + text
	}
	return text
}

func ports(list []Instance) []int {
	numbers := []int{}
	for _, in := range list {
		numbers = append(numbers, in.Port)
	}
	return numbers
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// E1

func TestChangedNeverBlocksAndCoalescesByTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newEventDispatcher(zap.NewNop()) // not started
		a := newTopic(serviceKey{name: "a"}, func() *snapshot { return nil })
		b := newTopic(serviceKey{name: "b"}, func() *snapshot { return nil })
		for range 1000 {
			d.changed(&a)
			d.changed(&b)
		}
		assert.Equal(t, []*topic{&a, &b}, d.queue)
		d.end()
		d.start()
		assert.False(t, d.started, "closed before it was started")
	})
}

func TestChangesWhileACallbackRunsArriveAsOneWithTheLatestList(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		gate := make(chan struct{})
		b.d.add(&b.topic, func(e Event) { r.on(e); <-gate }, nil)
		b.set(1, 2)
		for p := 3; p < 500; p++ {
			b.set(2, p)
		}
		b.set(2, 500)
		assert.Equal(t, []string{"initial [1 2] +[1 2] -[] ~[]"}, r.lines())
		close(gate)
		synctest.Wait()
		assert.Equal(t, []string{"initial [1 2] +[1 2] -[] ~[]", "[2 500] +[500] -[1] ~[]"}, r.lines())
	})
}

func TestNothingIsLostWhenReportersRace(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var rs [8]record
		for i := range rs {
			b.d.add(&b.topic, rs[i].on, nil)
		}
		var reporters sync.WaitGroup
		for p := range 200 {
			b.put(hosts(p)...)
			reporters.Go(func() { b.d.changed(&b.topic) })
		}
		reporters.Wait()
		synctest.Wait()
		for i := range rs {
			events := rs[i].all()
			seen := []Instance{}
			for n, e := range events {
				assert.Equal(t, n == 0, e.Initial)
				c := diff(seen, e.Instances)
				assert.Equal(t, c, changes{added: e.Added, removed: e.Removed, modified: e.Modified})
				seen = e.Instances
			}
			assert.Equal(t, []int{199}, ports(seen))
		}
	})
}

func TestAnOlderSnapshotIsIgnored(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		s := b.d.add(&b.topic, r.on, nil)
		b.set(1)
		b.set(2)
		s.offer(&snapshot{hosts: hosts(1), seq: 1})
		s.offer(&snapshot{hosts: hosts(3), seq: 2})
		synctest.Wait()
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "[2] +[2] -[1] ~[]"}, r.lines())
	})
}

// E2

func TestEventsComeInOrderAndNeverTwoAtOnce(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var running, most atomic.Int32
		var r record
		b.d.add(&b.topic, func(e Event) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			r.on(e)
			running.Add(-1)
		}, nil)
		for p := 1; p <= 100; p++ {
			b.put(hosts(p)...)
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, most.Load())
		all := []int{}
		for _, e := range r.all() {
			all = append(all, e.Instances[0].Port)
		}
		assert.True(t, slices.IsSorted(all), "%v", all)
		assert.Less(t, len(all), 50)
		assert.Equal(t, 100, all[len(all)-1])
	})
}

func TestASlowSubscriberDelaysNoOther(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		b.d.add(&b.topic, func(Event) { time.Sleep(time.Hour) }, nil)
		b.d.add(&b.topic, r.on, nil)
		begun := time.Now()
		b.set(1)
		b.set(2)
		b.set(3)
		assert.Len(t, r.lines(), 3)
		assert.Zero(t, time.Since(begun))
	})
}

func TestNoGoroutineWhileNoCallbackRuns(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 100 {
			b.d.add(&b.topic, func(Event) {}, nil)
		}
		b.set(1)
		assert.Less(t, runtime.NumGoroutine(), before+50)
	})
}

func TestAPanicIsLoggedOnceWithItsStackAndTheSubscriptionLives(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r, other record
		b.d.add(&b.topic, func(e Event) {
			r.on(e)
			panicIn(e)
		}, nil)
		b.d.add(&b.topic, other.on, nil)
		b.set(1)
		b.set(2)
		want := []string{"initial [1] +[1] -[] ~[]", "[2] +[2] -[1] ~[]"}
		assert.Equal(t, want, r.lines())
		assert.Equal(t, want, other.lines())
		logged := b.logs.All()
		require.Len(t, logged, 2)
		assert.Equal(t, zap.ErrorLevel, logged[0].Level)
		fields := logged[0].ContextMap()
		assert.Equal(t, "shop@@orders clusters a,b", fields["service"])
		assert.Equal(t, "no such order", fields["panic"])
		assert.Contains(t, fields["stack"], "panicIn")
	})
}

func panicIn(Event) { panic(errors.New("no such order")) }

func TestAPanickingFilterLosesNoInitialEvent(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		b.d.add(&b.topic, r.on, func(in Instance) bool { return in.Port/(in.Port-1) >= 0 })
		b.set(1)
		b.set(2)
		assert.Equal(t, []string{"initial [2] +[2] -[] ~[]"}, r.lines())
		assert.Equal(t, 1, b.logs.Len())
	})
}

func TestACallbackThatEndsItsGoroutineLosesNothing(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		gate := make(chan struct{})
		s := b.d.add(&b.topic, func(e Event) {
			r.on(e)
			<-gate
			runtime.Goexit()
		}, nil)
		b.set(1)
		b.set(2)
		close(gate)
		synctest.Wait()
		b.set(3)
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "[2] +[2] -[1] ~[]", "[3] +[3] -[2] ~[]"}, r.lines())
		s.Unsubscribe()
		assert.True(t, isClosed(s.Done()))
	})
}

// E3

func TestOneInitialEvent(t *testing.T) {
	t.Run("once the list is known", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board) {
			var r record
			b.d.add(&b.topic, r.on, nil)
			b.d.changed(&b.topic)
			synctest.Wait()
			assert.Empty(t, r.lines())
			b.set(1)
			b.set(1)
			assert.Equal(t, []string{"initial [1] +[1] -[] ~[]"}, r.lines())
		})
	})
	t.Run("at once when it is known already", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board) {
			var first, second record
			b.d.add(&b.topic, first.on, nil)
			b.set(1, 2)
			b.d.add(&b.topic, second.on, nil)
			synctest.Wait()
			assert.Equal(t, []string{"initial [1 2] +[1 2] -[] ~[]"}, first.lines())
			assert.Equal(t, first.lines(), second.lines())
		})
	})
	t.Run("also of an empty list", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board) {
			var r record
			b.d.add(&b.topic, r.on, nil)
			b.set()
			b.set()
			b.set(1)
			assert.Equal(t, []string{"initial [] +[] -[] ~[]", "[1] +[1] -[] ~[]"}, r.lines())
		})
	})
}

func TestAnEventCarriesServiceSourceAndTime(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		b.d.add(&b.topic, r.on, nil)
		time.Sleep(time.Minute)
		begun := time.Now()
		b.set(1)
		e := r.all()[0]
		assert.Equal(t, ServiceName{Group: "shop", Service: "orders", Clusters: []string{"a", "b"}}, e.ServiceName)
		assert.Equal(t, SourcePoll, e.Source)
		assert.True(t, begun.Equal(e.Time))
	})
}

func TestEventsTellModifiedInstances(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		b.d.add(&b.topic, r.on, nil)
		b.set(1, 2)
		list := hosts(1, 2)
		list[1].Healthy = false
		b.put(list...)
		synctest.Wait()
		assert.Equal(t, "[1 2] +[] -[] ~[2]", r.lines()[1])
		assert.False(t, r.all()[1].Modified[0].Healthy)
	})
}

func TestChangesThatCancelOutWhileACallbackRunsAreNoEvent(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		gate := make(chan struct{})
		b.d.add(&b.topic, func(e Event) { r.on(e); <-gate }, nil)
		b.set(1)
		b.set(1, 2)
		b.set(1)
		close(gate)
		synctest.Wait()
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]"}, r.lines())
	})
}

func TestAFilterBoundsWhatASubscriptionSees(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var even, healthy record
		b.d.add(&b.topic, even.on, func(in Instance) bool { return in.Port%2 == 0 })
		b.d.add(&b.topic, healthy.on, func(in Instance) bool { return in.Healthy })
		b.set(1, 2, 3)
		b.set(2, 3, 5) // odd ones only
		list := hosts(2, 3, 5)
		list[0].Healthy = false
		b.put(list...)
		synctest.Wait()
		assert.Equal(t, []string{"initial [2] +[2] -[] ~[]", "[2] +[] -[] ~[2]"}, even.lines())
		assert.Equal(t, []string{"initial [1 2 3] +[1 2 3] -[] ~[]", "[2 3 5] +[5] -[1] ~[]", "[3 5] +[] -[2] ~[]"}, healthy.lines())
	})
}

func TestAppendingToAListOfAnEventTouchesNoOther(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		b.d.add(&b.topic, func(e Event) { _ = append(e.Instances, NewInstance("10.9.9.9", 9)) }, nil)
		b.d.add(&b.topic, r.on, nil)
		list := hosts(1, 2)
		b.put(list[:1]...)
		synctest.Wait()
		assert.Equal(t, 2, list[1].Port)
		assert.Len(t, r.lines(), 1)
	})
}

// E4

func TestTheSameFunctionTwiceIsTwoSubscriptions(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		first := b.d.add(&b.topic, r.on, nil)
		b.d.add(&b.topic, r.on, nil)
		assert.Equal(t, 2, b.topic.listeners())
		b.set(1)
		assert.Len(t, r.lines(), 2)
		first.Unsubscribe()
		first.Unsubscribe()
		assert.Equal(t, 1, b.topic.listeners())
		assert.True(t, isClosed(first.Done()))
		b.set(2)
		assert.Len(t, r.lines(), 3)
	})
}

func TestUnsubscribeDoesNotWaitButDoneTells(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		s := b.d.add(&b.topic, func(e Event) { r.on(e); time.Sleep(time.Second) }, nil)
		b.set(1)
		b.set(2)
		begun := time.Now()
		s.Unsubscribe()
		assert.Zero(t, time.Since(begun))
		assert.False(t, isClosed(s.Done()))
		<-s.Done()
		assert.Equal(t, time.Second, time.Since(begun))
		b.set(3)
		assert.Len(t, r.lines(), 1, "neither what was pending nor what came later")
		assert.Empty(t, b.d.live)
	})
}

func TestUnsubscribeInsideTheCallback(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		var s *Subscription
		s = b.d.add(&b.topic, func(e Event) {
			s.Unsubscribe()
			r.on(e)
		}, nil)
		b.set(1)
		assert.True(t, isClosed(s.Done()))
		b.set(2)
		assert.Len(t, r.lines(), 1)
		assert.Zero(t, b.topic.listeners())
	})
}

func TestUnsubscribeInTheFilterStartsNoCallback(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		var s *Subscription
		s = b.d.add(&b.topic, r.on, func(Instance) bool { s.Unsubscribe(); return true })
		b.set(1)
		assert.True(t, isClosed(s.Done()))
		assert.Empty(t, r.lines())
	})
}

func TestUnsubscribeByManyAtOnce(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		for range 50 {
			s := b.d.add(&b.topic, func(Event) {}, nil)
			for range 4 {
				go s.Unsubscribe()
			}
			b.put(hosts(int(b.seq))...)
		}
		synctest.Wait()
		assert.Zero(t, b.topic.listeners())
		assert.Empty(t, b.d.live)
	})
}

// E5

func TestCloseDeliversNothingMoreAndWaitsForCallbacks(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		s := b.d.add(&b.topic, func(e Event) { r.on(e); time.Sleep(3 * time.Second) }, nil)
		gone := b.d.add(&b.topic, func(Event) { time.Sleep(4 * time.Second) }, nil)
		b.set(1)
		b.set(2)
		gone.Unsubscribe() // its callback still runs
		begun := time.Now()
		b.close(context.Background())
		assert.Equal(t, 4*time.Second, time.Since(begun))
		assert.True(t, isClosed(s.Done()))
		b.set(3)
		assert.Len(t, r.lines(), 1)
		assert.Zero(t, b.topic.listeners())
		assert.Empty(t, b.d.live)
		s.Unsubscribe()
	})
}

func TestCloseWaitsNoLongerThanItsContext(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		s := b.d.add(&b.topic, func(Event) { time.Sleep(time.Minute) }, nil)
		b.set(1)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		b.close(ctx)
		assert.Equal(t, 5*time.Second, time.Since(begun))
		assert.False(t, isClosed(s.Done()))
		b.close(context.Background())
		assert.Equal(t, time.Minute, time.Since(begun), "a second call waits too")
	})
}

func TestCloseInsideACallbackWaitsForTheOthersOnly(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var took atomic.Int64
		b.d.add(&b.topic, func(Event) { time.Sleep(time.Second) }, nil)
		s := b.d.add(&b.topic, func(Event) {
			time.Sleep(time.Millisecond) // until the other one runs
			begun := time.Now()
			b.close(context.Background())
			took.Store(int64(time.Since(begun)))
		}, nil)
		b.put(hosts(1)...)
		<-s.Done()
		assert.Equal(t, 999*time.Millisecond, time.Duration(took.Load()))
	})
}

func TestCallbacksThatCloseAtOnceDoNotWaitForEachOther(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		for range 3 {
			b.d.add(&b.topic, func(Event) {
				time.Sleep(time.Second)
				b.close(context.Background())
				b.close(context.Background())
			}, nil)
		}
		b.set(1)
		begun := time.Now()
		b.close(context.Background()) // outside: waits for all three
		assert.Equal(t, time.Second, time.Since(begun))
		assert.Empty(t, b.d.live)
	})
}

func TestAddAfterClose(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		var r record
		b.set(1)
		b.close(context.Background())
		s := b.d.add(&b.topic, r.on, nil)
		assert.True(t, isClosed(s.Done()))
		b.set(2)
		s.Unsubscribe()
		assert.Empty(t, r.lines())
		assert.Zero(t, b.topic.listeners())
	})
}

func TestGoroutineID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := goroutineID()
		assert.NotZero(t, own)
		assert.Equal(t, own, goroutineID())
		other := make(chan uint64)
		go func() { other <- goroutineID() }()
		assert.NotEqual(t, own, <-other)
	})
}

// E6

// watching ranges over a sequence in a goroutine and collects what it gives.
type watching struct {
	record
	errs []error
	over chan struct{}
}

func (b *board) watching(seq iter.Seq2[Event, error], body func(Event) bool) *watching {
	w := &watching{over: make(chan struct{})}
	go func() {
		defer close(w.over)
		for e, err := range seq {
			if err != nil {
				w.errs = append(w.errs, err)
				continue
			}
			w.on(e)
			if !body(e) {
				break
			}
		}
	}()
	synctest.Wait()
	return w
}

func goOn(Event) bool { return true }

func TestWatchGivesEventsUntilItsContextEnds(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		ctx, cancel := context.WithCancel(t.Context())
		w := b.watching(b.d.watch(ctx, &b.topic, nil), goOn)
		b.set(1)
		b.set(1, 2)
		assert.Equal(t, 1, b.topic.listeners())
		cancel()
		<-w.over
		assert.Equal(t, []string{"initial [1] +[1] -[] ~[]", "[1 2] +[2] -[] ~[]"}, w.lines())
		assert.Empty(t, w.errs)
		assert.Zero(t, b.topic.listeners())
	})
}

func TestWatchOnAnEndedContextIsEmpty(t *testing.T) {
	for _, closed := range []bool{false, true} {
		onBoard(t, func(t *testing.T, b *board) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			b.set(1)
			if closed {
				b.close(context.Background())
			}
			w := b.watching(b.d.watch(ctx, &b.topic, nil), goOn)
			<-w.over
			assert.Empty(t, w.lines())
			assert.Empty(t, w.errs)
			assert.Zero(t, b.topic.listeners())
		})
	}
}

func TestWatchYieldsErrClosedOnce(t *testing.T) {
	t.Run("closed while it waits", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board) {
			w := b.watching(b.d.watch(t.Context(), &b.topic, nil), goOn)
			b.set(1)
			b.close(context.Background())
			<-w.over
			require.Len(t, w.errs, 1)
			assert.EqualError(t, w.errs[0], "nacos: watch shop@@orders clusters a,b: naming service is closed")
			assert.Len(t, w.lines(), 1)
		})
	})
	t.Run("closed in its body", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board) {
			w := b.watching(b.d.watch(t.Context(), &b.topic, nil), func(Event) bool {
				b.put(hosts(2)...)
				b.close(context.Background())
				return true
			})
			b.set(1)
			<-w.over
			require.Len(t, w.errs, 1)
			assert.EqualError(t, w.errs[0], "nacos: watch shop@@orders clusters a,b: naming service is closed")
			assert.Len(t, w.lines(), 1)
		})
	})
	t.Run("closed before", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board) {
			b.set(1)
			b.close(context.Background())
			w := b.watching(b.d.watch(t.Context(), &b.topic, nil), goOn)
			<-w.over
			require.Len(t, w.errs, 1)
			assert.EqualError(t, w.errs[0], "nacos: watch shop@@orders clusters a,b: naming service is closed")
			assert.Empty(t, w.lines())
		})
	})
}

func TestBreakingOutOfWatchUnsubscribes(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		seq := b.d.watch(t.Context(), &b.topic, nil)
		w := b.watching(seq, func(Event) bool { return false })
		b.set(1)
		<-w.over
		assert.Zero(t, b.topic.listeners())
		assert.Empty(t, b.d.live)
		again := b.watching(seq, goOn)
		<-again.over
		assert.Empty(t, again.lines())
		assert.Empty(t, again.errs)
	})
}

func TestAPanicInTheBodyOfWatchUnsubscribes(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		b.set(1)
		assert.PanicsWithError(t, "no such order", func() {
			for e := range b.d.watch(t.Context(), &b.topic, nil) {
				panicIn(e)
			}
		})
		assert.Zero(t, b.topic.listeners())
		assert.Zero(t, b.logs.Len(), "it is the caller's")
	})
}

func TestASlowWatchCoalesces(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board) {
		ctx, cancel := context.WithCancel(t.Context())
		w := b.watching(b.d.watch(ctx, &b.topic, func(in Instance) bool { return in.Port < 100 }), func(Event) bool {
			time.Sleep(time.Minute)
			return true
		})
		b.set(1, 2)
		for p := 3; p < 50; p++ {
			b.set(2, p, 100+p)
		}
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"initial [1 2] +[1 2] -[] ~[]", "[2 49] +[49] -[1] ~[]"}, w.lines())
		b.set(2, 49, 300) // nothing that passes the filter
		assert.Len(t, w.lines(), 2)
		cancel()
		<-w.over
	})
}
