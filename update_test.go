package nacos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

func TestUpdateChangesTheServersInstance(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance(meta("zone", "a", "version", "1")))
		for _, c := range []struct {
			in   Instance
			want string
		}{
			{instance(weight(2), meta("zone", "a", "version", "1")), ` weight=2 {"version":"1","zone":"a"}`},
			{instance(weight(2), meta("zone", "b", "version", "1")), ` weight=2 {"version":"1","zone":"b"}`},
			{instance(meta("zone", "b")), ` weight=1 {"zone":"b"}`}, // a key is gone
			{instance(disabled), ` weight=1 {} disabled`},
			{instance(weight(3)), ` weight=3 {}`},
		} {
			require.NoError(t, reg.Update(w.ctx, c.in))
			assert.Equal(t, []string{own + c.want}, w.stored("orders"))
			assert.Equal(t, c.in.Weight, reg.Instance().Weight)
		}
		require.NoError(t, ns.UpdateInstance(w.ctx, "orders", instance(weight(4))))
		assert.Equal(t, 4.0, reg.Instance().Weight)
		w.register(ns, "orders", instance(weight(5)))
		want := []string{own + " weight=5 {}"}
		assert.Equal(t, want, w.stored("orders"), "a registration wins over an earlier update")
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(beatPeriod + moments)
		assert.Equal(t, want, w.stored("orders"))
	})
}

// An update of what the background is about to register, or loses meanwhile, leaves nothing to wait for.
func TestUpdateOfAnInstanceThatServersDoNotHave(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		heal := w.fault(mininacos.APIRegister, mininacos.Fault{Status: 503})
		reg := w.register(ns, "orders", instance(), KeepTrying())
		time.Sleep(time.Minute)
		heal()
		require.NoError(t, reg.Update(w.ctx, instance(weight(2))))
		assert.Equal(t, []string{own + " weight=2 {}"}, w.stored("orders"))
		time.Sleep(2 * beatPeriod) // light beats, which are not held up, from now on
		heal = w.fault(mininacos.APIUpdate, mininacos.Fault{DelayReply: beatPeriod + time.Second})
		time.AfterFunc(slow, func() { w.server().Deregister("", "", "orders", "10.9.0.1", 8080) })
		require.NoError(t, reg.Update(w.ctx, instance(weight(3))))
		heal()
		moment()
		w.staysAs("orders", " weight=3 {}")
		assert.Equal(t, StateLive, reg.State())
	})
}

// A full beat beside a change could bring back what was before it.
func TestFullBeatsWaitForAChange(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns, beats := w.client(), w.watch(mininacos.APIBeat)
		w.fault(mininacos.APIBeat, reply(`{"clientBeatInterval":1000,"lightBeatEnabled":false}`))
		reg := w.register(ns, "orders", instance())
		time.Sleep(3 * beatPeriod)
		w.fault(mininacos.APIUpdate, mininacos.Fault{Delay: beatPeriod})
		before := len(beats.all())
		require.NoError(t, reg.Update(w.ctx, instance(weight(2))))
		assert.Len(t, beats.all(), before)
		time.Sleep(beatPeriod)
		assert.InDelta(t, before+6, len(beats.all()), 1)
	})
}

func TestUpdateRefusals(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		reg := w.register(ns, "orders", instance())
		w.server().ResetRequests()
		for _, in := range []Instance{
			NewInstance("10.9.0.2", 8080), NewInstance("10.9.0.1", 8081), instance(func(in *Instance) { in.Cluster = "east" }),
			instance(persistent), instance(weight(-1)), instance(meta(MetadataBeatInterval, "60000")), {},
		} {
			var wrong *ArgumentError
			assert.ErrorAs(t, reg.Update(w.ctx, in), &wrong, in.String())
		}
		assert.Equal(t, 1.0, reg.Instance().Weight)
		assert.Equal(t, StateLive, reg.State())
		require.NoError(t, reg.Deregister(w.ctx))
		assert.ErrorIs(t, reg.Update(w.ctx, instance()), ErrDeregistered)
		assert.Zero(t, w.server().Requests()[mininacos.APIUpdate])

		again := w.register(ns, "orders", instance())
		assert.NotSame(t, reg, again)
		assert.NoError(t, reg.Deregister(w.ctx))
		assert.ErrorIs(t, reg.Update(w.ctx, instance()), ErrDeregistered, "the handle of the former one")
		assert.Equal(t, StateLive, again.State())
	})
}

// Servers keep what an update laid over an instance for a minute after its deregistration.
func TestB2_FormerUpdateDoesNotOutliveDeregistration(t *testing.T) {
	for _, pause := range []time.Duration{0, 30 * time.Second, 5 * time.Minute} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			reg := w.register(ns, "orders", instance())
			require.NoError(t, reg.Update(w.ctx, instance(weight(7), disabled)))
			require.NoError(t, reg.Deregister(w.ctx))
			time.Sleep(pause)
			w.register(ns, "orders", instance(weight(3)))
			assert.Equal(t, []string{own + " weight=3 {}"}, w.stored("orders"))
			updates := w.server().Requests()[mininacos.APIUpdate]
			require.NoError(t, ns.DeregisterInstance(w.ctx, "orders", instance()))
			time.Sleep(5 * time.Minute)
			w.register(ns, "orders", instance(weight(4)))
			assert.Equal(t, updates, w.server().Requests()[mininacos.APIUpdate], "by now nothing lies over it")
			w.staysAs("orders", " weight=4 {}")
		})
	}
}

// staysAs fails the test unless the server has the instance so for a minute.
func (w *world) staysAs(service, want string) {
	w.Helper()
	for range 12 {
		require.Equal(w, []string{own + want}, w.stored(service))
		time.Sleep(beatPeriod)
	}
}
