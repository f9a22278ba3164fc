package nacos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos"
)

// staysGone fails the test unless the instance is gone from the server and nothing is said about it for a
// minute. Beats that stayed away would go unnoticed: a server forgets such an instance meanwhile.
func (w *world) staysGone(ns *NamingService) {
	w.Helper()
	moment()
	assert.Empty(w, w.stored("orders"))
	w.server().ResetRequests()
	for range 60 {
		time.Sleep(time.Second)
		require.Empty(w, w.stored("orders"))
	}
	assert.Empty(w, w.server().Requests())
	assert.Empty(w, ns.Registrations())
	assert.Zero(w, ns.Stats().Beats)
}

func TestB8_BeatUnderWayBringsNothingBack(t *testing.T) {
	const unknown = `{"code":20404,"clientBeatInterval":5000,"lightBeatEnabled":true}`
	for _, full := range []bool{true, false} {
		for name, f := range map[string]mininacos.Fault{
			"delayed":       {Delay: slow},
			"delayed reply": {DelayReply: slow},
			"hung":          {Hang: true},
			"hung reply":    {HangReply: true},
			"unknown":       {Delay: slow, Status: 200, Body: unknown, ContentType: "application/json"},
			"fails":         {Delay: slow, Status: 500},
		} {
			t.Run(fmt.Sprintf("%s full=%t", name, full), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					ns := w.client()
					reg := w.register(ns, "orders", instance())
					if !full {
						time.Sleep(2 * beatPeriod)
					}
					arrived := make(chan bool, 100)
					heal := w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
						if r.API != mininacos.APIBeat {
							return mininacos.Fault{}
						}
						arrived <- isFull(r)
						return f
					})
					require.Equal(t, full, <-arrived)
					time.Sleep(slow / 2)
					start := time.Now()
					require.NoError(t, reg.Deregister(w.ctx))
					assert.Less(t, time.Since(start), settleTime+50*time.Millisecond, "it does not wait for the answer")
					heal()
					w.staysGone(ns)
				})
			})
		}
	}
}

// lingering lets beats and registrations end only when they were answered, as if a cancelled one were still on
// its way.
type lingering struct{ beatTransport }

func (l lingering) register(ctx context.Context, group, service string, in Instance, within time.Duration) error {
	return l.beatTransport.register(context.WithoutCancel(ctx), group, service, in, within)
}

func (l lingering) beat(ctx context.Context, group, service string, in Instance, light bool, period time.Duration) (wire.BeatReply, error) {
	return l.beatTransport.beat(context.WithoutCancel(ctx), group, service, in, light, period)
}

func TestB8_DeregistrationIsSentWhenTheBeatHasEnded(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		ns.beats.transport = lingering{ns.beats.transport}
		reg := w.register(ns, "orders", instance())
		arrived := make(chan bool, 100)
		w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
			if r.API != mininacos.APIBeat {
				return mininacos.Fault{}
			}
			arrived <- isFull(r)
			return mininacos.Fault{Delay: slow}
		})
		require.True(t, <-arrived)
		require.ErrorIs(t, reg.Deregister(w.within(slow/4)), context.DeadlineExceeded)
		assert.Equal(t, StateLive, reg.State(), "nothing was sent")
		for len(arrived) < 3 {
			w.expect(w.server(), "orders", own)
			time.Sleep(slow)
		}
		for len(arrived) < 4 {
			moment()
		}
		require.NoError(t, reg.Deregister(w.ctx))
		w.staysGone(ns)
	})
}

// The beat was told that the server does not know the instance; its registration is under way or waits.
func TestB8_RegisteringAgainEndsWithDeregistration(t *testing.T) {
	for name, f := range map[string]mininacos.Fault{
		"delayed": {Delay: slow}, "delayed reply": {DelayReply: slow}, "hung": {Hang: true}, "hung reply": {HangReply: true},
		"fails": {Status: 500}, "cut": {DropReply: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				ns := w.client()
				reg := w.register(ns, "orders", instance())
				time.Sleep(2 * beatPeriod)
				posts := w.watch(mininacos.APIRegister)
				heal := w.fault(mininacos.APIRegister, f)
				require.NoError(t, w.server().Restart(mininacos.LoseState))
				for len(posts.all()) == 0 {
					time.Sleep(100 * time.Millisecond)
				}
				assert.Equal(t, StateRegistering, reg.State())
				start := time.Now()
				require.NoError(t, reg.Deregister(w.ctx))
				assert.Less(t, time.Since(start), settleTime+50*time.Millisecond, "it does not wait for the answer")
				heal()
				w.staysGone(ns)
			})
		})
	}
}

// B2, B8: however often it was registered, one deregistration ends it.
func TestB8_RegisteredSeveralTimesThenDeregistered(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		first := w.register(ns, "orders", instance())
		for i := range 3 {
			time.Sleep(3 * time.Second)
			assert.Same(t, first, w.register(ns, "orders", instance(weight(float64(i+2)))))
			assert.Len(t, ns.Registrations(), 1)
		}
		assert.Equal(t, []string{own + " weight=4 {}"}, w.stored("orders"))
		beats := w.watch(mininacos.APIBeat)
		time.Sleep(10 * beatPeriod)
		assert.InDelta(t, 10, len(beats.all()), 1, "only one of them beats")
		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
		w.staysGone(ns)
	})
}

// Deregistering cancels a registration that the background makes, and waits for one of a caller.
func TestB8_DeregistrationWaitsForACallUnderWay(t *testing.T) {
	for name, f := range map[string]mininacos.Fault{"late": {Delay: slow}, "late reply": {DelayReply: slow}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				ns := w.client()
				w.fault(mininacos.APIRegister, f)
				done := make(chan error, 1)
				go func() {
					_, err := ns.RegisterInstance(w.ctx, "orders", instance())
					done <- err
				}()
				moment()
				require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
				require.NoError(t, <-done)
				w.staysGone(ns)
			})
		})
	}
}

// Many goroutines register, update and deregister one instance while servers are slow and fail; beats are
// fast, so that they meet every step. Whatever came last, server and client agree in the end.
func TestB8_ServerEndsAsTheLastCallsSay(t *testing.T) {
	for seed := range uint64(4) {
		for _, faulty := range []bool{false, true} {
			inWorld(t, 2, func(w *world) {
				ns := w.client(WithRequestTimeout(2 * time.Second))
				rnd := rand.New(&lockedSource{src: rand.NewPCG(seed, 1)})
				heal := w.cluster.Intercept(func(*mininacos.Request) mininacos.Fault { return mishap(rnd, faulty) })
				var callers sync.WaitGroup
				var calls, failed atomic.Int64
				for range 6 {
					callers.Go(func() {
						for range 12 {
							calls.Add(1)
							if err := w.anyCall(ns, rnd); err != nil && !errors.Is(err, ErrDeregistered) {
								failed.Add(1)
							}
							time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
						}
					})
				}
				callers.Wait()
				heal()
				if !faulty {
					assert.Zero(t, failed.Load(), "of %d calls", calls.Load())
				}
				time.Sleep(time.Minute) // what nobody keeps alive is gone by then
				w.agree(ns, seed)

				w.register(ns, "orders", instance(weight(9)))
				time.Sleep(2 * time.Second)
				w.agree(ns, seed)
				require.Len(t, ns.Registrations(), 1)
				require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
				w.staysGone(ns)
			})
		}
	}
}

// anyCall makes one call about the instance, with a context that may end soon.
func (w *world) anyCall(ns *NamingService, rnd *rand.Rand) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Duration(200+rnd.IntN(20_000))*time.Millisecond)
	defer cancel()
	in := instance(weight(float64(rnd.IntN(50))), meta(MetadataBeatInterval, "100", "n", fmt.Sprint(rnd.IntN(100))))
	var err error
	switch rnd.IntN(5) {
	case 0, 1:
		_, err = ns.RegisterInstance(ctx, "orders", in)
	case 2:
		_, err = ns.RegisterInstance(ctx, "orders", in, KeepTrying())
	case 3:
		for _, reg := range ns.Registrations() {
			err = reg.Update(ctx, in)
		}
	default:
		err = ns.DeregisterInstance(ctx, "orders", in)
	}
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // the caller's own doing
	}
	return err
}

// mishap draws what happens to a request: mostly nothing but a delay.
func mishap(rnd *rand.Rand, faulty bool) mininacos.Fault {
	d := time.Duration(rnd.IntN(150)) * time.Millisecond
	n := rnd.IntN(12)
	if !faulty {
		n %= 3
	}
	switch n {
	case 0:
		return mininacos.Fault{Delay: d}
	case 1:
		return mininacos.Fault{DelayReply: d}
	case 3:
		return mininacos.Fault{Delay: d, HangReply: true}
	case 4:
		return mininacos.Fault{Hang: true}
	case 5:
		return mininacos.Fault{Delay: d, DropReply: true}
	case 6:
		return mininacos.Fault{Delay: d, Status: 500}
	case 7:
		return mininacos.Fault{Delay: d, Status: 400}
	default:
		return mininacos.Fault{}
	}
}

// agree fails the test unless the server has exactly what the client keeps registered.
func (w *world) agree(ns *NamingService, seed uint64) {
	w.Helper()
	want := []string{}
	for _, reg := range ns.Registrations() {
		switch state := reg.State(); state {
		case StateLive:
			in := reg.Instance()
			want = append(want, fmt.Sprintf("%s weight=%g %s", in.Addr(), in.Weight, in.Metadata))
			assert.NoError(w, reg.Err(), "seed %d", seed)
		case StateLeaving: // a failed deregistration: the server forgets it
		default:
			assert.Fail(w, "not settled", "seed %d: %s: %v", seed, state, reg.Err())
		}
	}
	assert.Equal(w, want, w.stored("orders"), "seed %d", seed)
}

// lockedSource is a source for several goroutines.
type lockedSource struct {
	mu  sync.Mutex
	src rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Uint64()
}
