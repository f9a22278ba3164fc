package nacos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// within is the world's context with a timeout; it ends with the test.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, d)
	w.Cleanup(cancel)
	return ctx
}

const slow = time.Second // more than any exchange needs, less than a try has

func TestN3_FirstRegistrationOfUnknownOutcomeIsTakenBack(t *testing.T) {
	for _, kind := range []func(*Instance){func(*Instance) {}, persistent} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			heal := w.fault(mininacos.APIRegister, mininacos.Fault{HangReply: true})
			_, err := ns.RegisterInstance(w.within(slow), "orders", instance(kind), Group("shop"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Zero(t, ns.Stats().Registrations)
			time.Sleep(settleTime + time.Millisecond)
			assert.Empty(t, w.server().Instances("", "shop", "orders"))
			assert.Equal(t, 1, w.server().Requests()[mininacos.APIDeregister])
			heal()
			reg, err := ns.RegisterInstance(w.ctx, "orders", instance(kind), Group("shop"))
			require.NoError(t, err)
			time.Sleep(time.Minute)
			assert.Len(t, w.server().Instances("", "shop", "orders"), 1)
			assert.Equal(t, StateLive, reg.State())
		})
	}
}

// A registration that comes while the one before is being taken back waits for that, so that the DELETE does
// not hit it.
func TestN3_RegistrationWhileTheOneBeforeIsTakenBack(t *testing.T) {
	for _, options := range [][]CallOption{nil, {KeepTrying()}} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			heal := w.fault(mininacos.APIRegister, mininacos.Fault{HangReply: true})
			w.fault(mininacos.APIDeregister, mininacos.Fault{Delay: slow})
			_, err := ns.RegisterInstance(w.within(slow), "orders", instance())
			require.Error(t, err)
			heal()
			reg := w.register(ns, "orders", instance(weight(2)), options...)
			time.Sleep(time.Minute)
			assert.Equal(t, []string{own + " weight=2 {}"}, w.stored("orders"))
			assert.Equal(t, StateLive, reg.State())
			assert.Equal(t, []*Registration{reg}, ns.Registrations())
		})
	}
}

func TestN3_RefusedFirstRegistrationLeavesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.fault(mininacos.APIRegister, mininacos.Fault{Status: 400, Body: "no"})
		_, err := ns.RegisterInstance(w.ctx, "orders", instance())
		var failure *APIError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, 400, failure.Status)
		time.Sleep(time.Minute)
		assert.Zero(t, ns.Stats().Registrations)
		assert.Equal(t, map[mininacos.API]int{mininacos.APIRegister: 1}, w.server().Requests())
	})
}

// What fails, whether the server acted or not, is undone: server and client end with the former values.
func TestN3_FailedChangeLeavesTheFormerRegistration(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault mininacos.Fault
	}{
		{"refused", mininacos.Fault{Status: 400, Body: "no"}},
		{"acted and hung", mininacos.Fault{HangReply: true}},
		{"hung", mininacos.Fault{Hang: true}},
		{"acted and cut", mininacos.Fault{DropReply: true}},
		{"acted and garbled", mininacos.Fault{CutBody: true}},
	} {
		for _, update := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					ns := w.client()
					reg := w.register(ns, "orders", instance(weight(2), meta("zone", "a")))
					heal := []func(){w.fault(mininacos.APIRegister, c.fault), w.fault(mininacos.APIUpdate, c.fault)}
					changed := instance(weight(7), meta("zone", "b"), disabled)
					var err error
					if update {
						err = reg.Update(w.within(slow), changed)
					} else {
						_, err = ns.RegisterInstance(w.within(slow), "orders", changed)
					}
					require.Error(t, err)
					time.Sleep(20 * time.Second)
					for _, h := range heal {
						h()
					}
					time.Sleep(3 * beatPeriod) // a try that hangs, and the pause after it
					want := []string{own + ` weight=2 {"zone":"a"}`}
					assert.Equal(t, want, w.stored("orders"))
					assert.Equal(t, 2.0, reg.Instance().Weight)
					assert.Equal(t, StateLive, reg.State())
					time.Sleep(time.Minute)
					assert.Equal(t, want, w.stored("orders"))
					assert.NoError(t, reg.Err())
					assert.Zero(t, ns.Stats().Renewals, "no server had lost it")
				})
			})
		}
	}
}

// While a change cannot be made, the instance is kept alive as it was.
func TestN3_BeatsGoOnWhileTheServerRefusesAChange(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance())
		heal := w.fault(mininacos.APIRegister, mininacos.Fault{Status: 400, Body: "metadata too long"})
		w.register(ns, "orders", instance(weight(2)), KeepTrying())
		time.Sleep(slow)
		for range 120 {
			require.Equal(t, []string{own + " weight=1 {}"}, w.stored("orders"))
			require.Equal(t, StateUpdating, reg.State())
			require.ErrorContains(t, reg.Err(), "metadata too long")
			time.Sleep(time.Second)
		}
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(beatPeriod)
		assert.Equal(t, StateRegistering, reg.State())
		heal()
		time.Sleep(beatPeriod + moments)
		assert.Equal(t, []string{own + " weight=2 {}"}, w.stored("orders"))
		assert.Equal(t, StateLive, reg.State())
	})
}

func TestN3_KeepTryingGoesOnThroughAnOutage(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.server().Stop()
		start := time.Now()
		reg := w.register(ns, "orders", instance(weight(2)), KeepTrying())
		assert.Zero(t, time.Since(start))
		assert.Equal(t, StateRegistering, reg.State())
		time.Sleep(10 * time.Minute)
		assert.Equal(t, StateRegistering, reg.State())
		assert.Error(t, reg.Err())
		assert.Zero(t, reg.LastBeat())
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(beatPeriod + moments)
		assert.Equal(t, []string{own + " weight=2 {}"}, w.stored("orders"))
		assert.Equal(t, StateLive, reg.State())
		assert.NoError(t, reg.Err())
		assert.Zero(t, ns.Stats().Renewals, "it is the first registration")
		time.Sleep(time.Minute)
		w.expect(w.server(), "orders", own)
	})
}

func TestN3_DeregisteringEndsKeepTrying(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.server().Stop()
		reg := w.register(ns, "orders", instance(), KeepTrying())
		time.Sleep(time.Minute)
		require.NoError(t, reg.Deregister(w.ctx), "no server was reached, so there is nothing to remove")
		assert.Equal(t, StateGone, reg.State())
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(time.Minute)
		assert.Empty(t, w.stored("orders"))
		assert.Empty(t, ns.Registrations())
	})
}

// Of several wishes the last one counts, whatever is under way when it comes.
func TestN3_KeepTryingWhileACallIsUnderWay(t *testing.T) {
	none := func(*world, *NamingService) error { return nil }
	register := func(w *world, ns *NamingService) error {
		_, err := ns.RegisterInstance(w.ctx, "orders", instance(weight(5)))
		return err
	}
	leave := func(w *world, ns *NamingService) error { return ns.DeregisterInstance(w.ctx, "orders", instance()) }
	for _, c := range []struct {
		name   string
		before bool // registered before
		call   func(*world, *NamingService) error
		fault  mininacos.Fault // of what is under way
		fails  bool
	}{
		{"first registration", false, register, mininacos.Fault{DelayReply: slow}, false},
		{"first registration that arrives late", false, register, mininacos.Fault{Delay: slow}, false},
		{"first registration that fails", false, register, mininacos.Fault{Delay: slow, Status: 400}, true},
		{"registration again", true, register, mininacos.Fault{DelayReply: slow}, false},
		{"registration again that fails", true, register, mininacos.Fault{Delay: slow, Status: 400}, true},
		{"deregistration", true, leave, mininacos.Fault{Delay: slow}, false},
		{"deregistration that is done", true, leave, mininacos.Fault{DelayReply: slow}, false},
		{"deregistration that fails", true, leave, mininacos.Fault{Delay: slow, Status: 400}, true},
		{"nothing", true, none, mininacos.Fault{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				ns := w.client()
				if c.before {
					w.register(ns, "orders", instance(weight(4)))
				}
				once := true // of the call alone
				w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
					if !once {
						return mininacos.Fault{}
					}
					once = false
					return c.fault
				})
				result := make(chan error, 1)
				go func() { result <- c.call(w, ns) }()
				time.Sleep(slow / 2)
				reg := w.register(ns, "orders", instance(weight(6)), KeepTrying())
				assert.Equal(t, c.fails, <-result != nil)
				time.Sleep(2 * time.Second)
				want := []string{own + " weight=6 {}"}
				assert.Equal(t, want, w.stored("orders"))
				assert.Equal(t, StateLive, reg.State())
				assert.Equal(t, []*Registration{reg}, ns.Registrations())
				time.Sleep(time.Minute)
				assert.Equal(t, want, w.stored("orders"))
				assert.Zero(t, ns.Stats().Renewals, "no server had lost it")
			})
		})
	}
}

// The former wish may still be on its way, and even be answered, when the next one comes.
func TestN3_KeepTryingReplacesARegistrationUnderWay(t *testing.T) {
	for _, lingers := range []bool{false, true} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			if lingers {
				ns.beats.transport = lingering{ns.beats.transport}
			}
			heal := w.fault(mininacos.APIRegister, mininacos.Fault{Delay: slow})
			w.register(ns, "orders", instance(weight(5)), KeepTrying())
			time.Sleep(slow / 2)
			heal()
			reg := w.register(ns, "orders", instance(weight(6)), KeepTrying())
			moment()
			assert.Equal(t, StateRegistering, reg.State(), "the former one may arrive yet")
			time.Sleep(settleTime)
			if lingers {
				assert.Equal(t, StateRegistering, reg.State())
				time.Sleep(slow / 2)
			}
			assert.NoError(t, reg.Err())
			assert.Equal(t, StateLive, reg.State())
			w.staysAs("orders", " weight=6 {}")
		})
	}
}

func TestN4_DeregistrationNeedsNoGroupClusterAndKind(t *testing.T) {
	for _, kind := range []func(*Instance){func(*Instance) {}, persistent} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			reg := w.register(ns, "orders", instance(kind, func(in *Instance) { in.Cluster = "east" }), Group("shop"))
			require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
			assert.Empty(t, w.server().Instances("", "shop", "orders"))
			assert.Equal(t, StateGone, reg.State())
			assert.NoError(t, reg.Deregister(w.ctx), "twice")
			assert.Equal(t, 1, w.server().Requests()[mininacos.APIDeregister])
		})
	}
}

func TestN4_DeregistrationThatFitsSeveralIsRefused(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		east := func(in *Instance) { in.Cluster = "east" }
		a := w.register(ns, "orders", instance(), Group("a"))
		b := w.register(ns, "orders", instance(east), Group("b"))
		err := ns.DeregisterInstance(w.ctx, "orders", instance())
		var wrong *ArgumentError
		require.ErrorAs(t, err, &wrong)
		assert.Contains(t, err.Error(), "a@@orders")
		assert.Contains(t, err.Error(), "b@@orders")
		assert.Zero(t, w.server().Requests()[mininacos.APIDeregister])

		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance(east)), "only one is in that cluster")
		assert.Equal(t, [2]RegistrationState{StateLive, StateGone}, [2]RegistrationState{a.State(), b.State()})
		b = w.register(ns, "orders", instance(east), Group("b"))
		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance(), Group("a")))
		assert.Equal(t, [2]RegistrationState{StateGone, StateLive}, [2]RegistrationState{a.State(), b.State()})
	})
}

func TestN4_UnknownInstanceIsChangedAndDeregisteredAsAsked(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		other := mininacos.NewInstance("10.9.0.1", 8080)
		other.Ephemeral = false
		require.NoError(t, w.server().Register("", "shop", "orders", other))
		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance(persistent)))
		assert.Len(t, w.server().Instances("", "shop", "orders"), 1, "another group was asked for")
		require.NoError(t, ns.UpdateInstance(w.ctx, "orders", instance(persistent, weight(4)), Group("shop")))
		assert.Equal(t, 4.0, w.server().Instances("", "shop", "orders")[0].Weight)
		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance(persistent), Group("shop")))
		assert.Empty(t, w.server().Instances("", "shop", "orders"))
	})
}

// A registration that ended before its turn came is no registration.
func TestN4_GivenUpRegistrationDoesNotCount(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		heal := w.fault(mininacos.APIRegister, mininacos.Fault{Delay: slow, Status: 400})
		first := make(chan error, 1)
		go func() {
			_, err := ns.RegisterInstance(w.ctx, "orders", instance())
			first <- err
		}()
		moment()
		_, err := ns.RegisterInstance(w.within(slow/2), "orders", instance())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Error(t, <-first)
		heal()
		ns.beats.mu.Lock()
		assert.Empty(t, ns.beats.services, "nothing is kept")
		ns.beats.mu.Unlock()
		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
		assert.Equal(t, 1, w.server().Requests()[mininacos.APIDeregister])
	})
}

func TestFailedDeregistrationMayBeRepeated(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance())
		heal := w.fault(mininacos.APIDeregister, mininacos.Fault{Status: 503})
		require.Error(t, reg.Deregister(w.ctx))
		assert.Equal(t, StateLeaving, reg.State())
		assert.Error(t, reg.Err())
		assert.ErrorIs(t, reg.Update(w.ctx, instance()), ErrDeregistered)
		assert.Equal(t, 1, ns.Stats().Registrations)
		assert.Zero(t, ns.Stats().Beats)
		beats := w.server().Requests()[mininacos.APIBeat]
		time.Sleep(10 * time.Second)
		assert.Equal(t, beats, w.server().Requests()[mininacos.APIBeat], "the heartbeats have ended")
		heal()
		require.NoError(t, reg.Deregister(w.ctx))
		assert.Empty(t, w.stored("orders"))
		assert.Equal(t, StateGone, reg.State())
	})
}

// Calls about one instance take turns, and each waits no longer than its context.
func TestCallsTakeTurnsWithinTheirContexts(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance())
		heal := w.fault(mininacos.APIUpdate, mininacos.Fault{Hang: true})
		hung := make(chan error, 1)
		go func() { hung <- reg.Update(w.within(3*time.Second), instance(weight(2))) }()
		moment()
		start := time.Now()
		ctx, cancel := context.WithCancelCause(w.ctx)
		time.AfterFunc(slow, func() { cancel(errors.New("enough")) })
		assert.ErrorContains(t, reg.Update(ctx, instance(weight(3))), "enough")
		assert.Less(t, time.Since(start), slow+50*time.Millisecond)
		assert.ErrorIs(t, reg.Deregister(w.within(slow)), context.DeadlineExceeded)
		require.Error(t, <-hung)
		heal()
		time.Sleep(time.Minute) // nothing but the hung call has begun
		assert.Equal(t, []string{own + " weight=1 {}"}, w.stored("orders"))
		assert.Equal(t, StateLive, reg.State())
		require.NoError(t, reg.Update(w.ctx, instance(weight(4))))
	})
}

// A registration whose context ended before it had its turn leaves nothing that later calls would find.
func TestN4_RegistrationThatNeverBeganIsForgotten(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		for range 20 { // the turn is free and the context has ended: which comes first is chance
			_, err := ns.beats.register(ended, DefaultGroup, "orders", instance(), false)
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, ns.beats.services)
		}
		moment()
		require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
		assert.Equal(t, 1, w.server().Requests()[mininacos.APIDeregister], "sent as asked")
	})
}
