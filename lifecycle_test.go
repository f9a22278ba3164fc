package nacos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// N5: Shutdown deregisters in parallel what is ephemeral; persistent instances outlive the process.
func TestShutdownDeregistersEphemeralInstancesInParallel(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		for i := range 64 {
			w.register(ns, fmt.Sprintf("s%d", i), NewInstance("10.9.0.1", 8000+i))
		}
		w.register(ns, "db", at(5432, persistent))
		w.server().Intercept(func(r *mininacos.Request) (f mininacos.Fault) {
			if r.API == mininacos.APIDeregister {
				f.Delay = time.Second
			}
			return f
		})
		begun := time.Now()
		require.NoError(w, ns.Shutdown(w.ctx))
		assert.Less(w, time.Since(begun), 3*time.Second, "64 take 2 rounds of 32, not 64 s")
		for i := range 64 {
			w.expect(w.server(), fmt.Sprintf("s%d", i))
		}
		require.Len(w, w.server().Instances("", "", "db"), 1)
		assert.Equal(w, 64, w.server().Requests()[mininacos.APIDeregister])
	})
}

// N5: WithDeregisterPersistent takes those away too.
func TestShutdownDeregistersPersistentInstancesWhenAskedTo(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithDeregisterPersistent())
		w.register(ns, "db", at(5432, persistent))
		require.NoError(w, ns.Shutdown(w.ctx))
		assert.Empty(w, w.server().Instances("", "", "db"))
	})
}

// N5: Shutdown returns by its deadline and says what it could not deregister.
func TestShutdownReturnsByItsDeadlineWithWhatFailed(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		ns := w.client()
		for i := range 3 {
			w.register(ns, "orders", NewInstance("10.9.0.1", 8000+i))
		}
		for i := range w.servers {
			w.net.BlackHole(serverIP(i), true)
		}
		ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
		defer cancel()
		begun := time.Now()
		err := ns.Shutdown(ctx)
		assert.LessOrEqual(w, time.Since(begun), 2*time.Second)
		var failure *APIError
		require.ErrorAs(w, err, &failure)
		assert.Equal(w, "deregister", failure.API)
		for i := range 3 {
			assert.ErrorContains(w, err, fmt.Sprintf("10.9.0.1:%d", 8000+i))
		}
		for i := range w.servers {
			w.net.BlackHole(serverIP(i), false)
		}
	})
}

// N5: Close deregisters nothing; the servers find out by themselves.
func TestCloseLeavesInstancesToExpire(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.register(ns, "orders", NewInstance("10.9.0.1", 8080))
		time.Sleep(time.Minute)
		require.NoError(w, ns.Close())
		w.expect(w.server(), "orders", "10.9.0.1:8080")
		w.server().ResetRequests()
		time.Sleep(40 * time.Second)
		assert.Empty(w, w.server().Instances("", "", "orders"))
		assert.Empty(w, w.server().Requests(), "nothing is sent after Close")
	})
}

// N5: whoever waits in a call when the client closes gets ErrClosed at once.
func TestCloseEndsCallsUnderWay(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "mine", NewInstance("10.9.0.1", 8080))
		w.server().Intercept(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Hang: true} })
		calls := map[string]func() error{
			"register":   func() error { _, err := ns.RegisterInstance(w.ctx, "a", NewInstance("10.9.0.1", 1)); return err },
			"update":     func() error { return reg.Update(w.ctx, NewInstance("10.9.0.1", 8080)) },
			"deregister": func() error { return ns.DeregisterInstance(w.ctx, "b", NewInstance("10.9.0.1", 2)) },
			"look up":    func() error { _, err := ns.SelectOneHealthyInstance(w.ctx, "c"); return err },
			"ask":        func() error { _, err := ns.GetAllInstances(w.ctx, "d", NoSubscribe()); return err },
			"status":     func() error { _, err := ns.GetServerStatus(w.ctx); return err },
			"services":   func() error { _, err := ns.GetServicesOfServer(w.ctx, 1, 1); return err },
			"watch": func() error {
				for _, err := range ns.Watch(w.ctx, "e") {
					return err
				}
				return errors.New("no element")
			},
		}
		var mu sync.Mutex
		got := make(map[string]error)
		for name, call := range calls {
			go func() {
				err := call()
				mu.Lock()
				defer mu.Unlock()
				got[name] = err
			}()
		}
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		require.NoError(w, ns.Close())
		synctest.Wait()
		assert.Less(w, time.Since(begun), 50*time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		require.Len(w, got, len(calls))
		for name, err := range got {
			assert.ErrorIs(w, err, ErrClosed, name)
			if failure := (*APIError)(nil); errors.As(err, &failure) {
				assert.False(w, failure.Retryable, name)
			}
		}
	})
}

// A caller who cancels with a cause finds both in the error, whatever the call was waiting for.
func TestCauseOfACancelledContextIsTold(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.server().Intercept(func(*mininacos.Request) mininacos.Fault { return mininacos.Fault{Hang: true} })
		why := errors.New("the user went away")
		for _, after := range []time.Duration{0, time.Second} {
			ctx, cancel := context.WithCancelCause(w.ctx)
			time.AfterFunc(after, func() { cancel(why) })
			time.Sleep(time.Millisecond)
			_, err := ns.GetServerStatus(ctx)
			assert.ErrorIs(w, err, context.Canceled)
			assert.ErrorIs(w, err, why)
			_, err = ns.SelectOneHealthyInstance(ctx, "orders")
			assert.ErrorIs(w, err, context.Canceled)
			assert.ErrorIs(w, err, why)
		}
	})
}

// N5, E5: callbacks that run are waited for up to the limit, and none starts any more.
func TestCloseWaitsForCallbacksWithinItsLimit(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		release, started := make(chan struct{}), make(chan struct{})
		sub, err := ns.Subscribe("orders", func(Event) { close(started); <-release })
		require.NoError(w, err)
		<-started
		begun := time.Now()
		err = ns.Close()
		assert.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, 5*time.Second, time.Since(begun).Round(time.Millisecond))
		close(release)
		<-sub.Done()
		require.NoError(w, ns.Close(), "all is over now")
	})
}

// N5: what is over is not late, though the context of the call ended long ago.
func TestShutdownOfWhatIsOverTakesAnyContext(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		require.NoError(w, ns.Close())
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		for range 20 {
			require.NoError(w, ns.Shutdown(ctx))
		}
	})
}

// N5, E5: closing inside a callback does not wait for that callback.
func TestShutdownInsideACallback(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.register(ns, "orders", NewInstance("10.9.0.1", 8080))
		result := make(chan error, 1)
		_, err := ns.Subscribe("orders", func(Event) { result <- ns.Shutdown(w.ctx) })
		require.NoError(w, err)
		begun := time.Now()
		require.NoError(w, <-result)
		assert.Less(w, time.Since(begun), time.Second)
		w.expect(w.server(), "orders")
	})
}

// N5: any number of Shutdown and Close at once, each returns when all is over.
func TestShutdownAndCloseTogether(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		for i := range 10 {
			w.register(ns, "orders", NewInstance("10.9.0.1", 8000+i))
		}
		var ended atomic.Int32
		for i := range 10 {
			go func() {
				err := ns.Shutdown(w.ctx)
				if i%2 == 1 {
					err = ns.Close()
				}
				if err == nil {
					ended.Add(1)
				}
			}()
		}
		time.Sleep(time.Second)
		assert.EqualValues(w, 10, ended.Load())
		w.expect(w.server(), "orders")
	})
}

// N5: calls made while the client closes either work or fail with ErrClosed, and nothing is left running.
func TestCallsRacingWithClose(t *testing.T) {
	for round := range 20 {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for k := range 50 {
						_, err := ns.RegisterInstance(w.ctx, "orders", NewInstance("10.9.0.1", 8000+i))
						_, lookupErr := ns.SelectInstances(w.ctx, fmt.Sprintf("s%d", k))
						sub, subErr := ns.Subscribe(fmt.Sprintf("s%d", k), func(Event) {})
						if subErr == nil && k%2 == 0 {
							sub.Unsubscribe()
						}
						for _, err := range []error{err, lookupErr, subErr} {
							if err != nil && !errors.Is(err, ErrClosed) {
								w.Errorf("neither done nor closed: %v", err)
							}
						}
					}
				})
			}
			time.Sleep(time.Duration(round) * 20 * time.Microsecond)
			require.NoError(w, ns.Shutdown(w.ctx))
			wg.Wait()
			w.expect(w.server(), "orders")
		})
	}
}

// N5, L: after Close no line is logged.
func TestNothingIsLoggedAfterClose(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		log, logs := logged()
		ns := w.client(log)
		w.register(ns, "orders", NewInstance("10.9.0.1", 8080))
		_, err := ns.Subscribe("orders", func(Event) {})
		require.NoError(w, err)
		time.Sleep(time.Second)
		w.server().Stop()
		require.NoError(w, ns.Close())
		before := logs.Len()
		time.Sleep(time.Hour)
		assert.Equal(w, before, logs.Len())
	})
}

// L: an hour without news is an hour without a line, and lookups never log.
func TestNothingIsLoggedPeriodically(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		log, logs := logged()
		ns := w.client(log)
		w.register(ns, "orders", NewInstance("10.9.0.1", 8080))
		_, err := ns.Subscribe("orders", func(Event) {})
		require.NoError(w, err)
		time.Sleep(30 * time.Second)
		before := logs.Len()
		for range 60 {
			time.Sleep(time.Minute)
			_, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
			require.NoError(w, err)
		}
		assert.Equal(w, before, logs.Len(), "%v", logs.All())
	})
}
