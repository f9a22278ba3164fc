package nacos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// console changes the instance at the server as somebody in front of its console would.
func (w *world) console(change func(*mininacos.Instance)) {
	w.Helper()
	in := mininacos.NewInstance("10.9.0.1", 8080)
	change(&in)
	require.NoError(w, w.server().Update("", "", "orders", in))
}

func heavier(in *mininacos.Instance) {
	in.Weight, in.Metadata = 7, map[string]string{"zone": "b"}
}

// adoption is the time in which a list with a change comes in and is trusted.
const adoption = 30 * time.Second

// adopter is a client that registered the instance and looks its own service up.
func (w *world) adopter(options ...Option) (*NamingService, *Registration) {
	w.Helper()
	ns := w.client(options...)
	reg := w.register(ns, "orders", instance(weight(2), meta("zone", "a", "version", "1")))
	_, err := ns.Subscribe("orders", func(Event) {})
	require.NoError(w, err)
	return ns, reg
}

func TestB11_ConsoleChangeIsAdoptedAndSurvivesTheServersLoss(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		_, reg := w.adopter()
		time.Sleep(adoption)
		w.console(heavier)
		time.Sleep(adoption)
		assert.Equal(t, 7.0, reg.Instance().Weight)
		assert.Equal(t, `{"version":"1","zone":"b"}`, reg.Instance().Metadata.String())
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(beatPeriod + moments)
		w.staysAs("orders", ` weight=7 {"version":"1","zone":"b"}`)
	})
}

// Servers of 3.0 and 3.1 have no API for updates, but a console: what it changed does not keep the instance from
// being registered again.
func TestB11_AdoptedInstanceComesBackOnAServerWithoutUpdates(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns, reg := w.adopter()
		time.Sleep(adoption)
		w.console(heavier)
		time.Sleep(adoption)
		w.server().Intercept(func(r *mininacos.Request) (f mininacos.Fault) {
			if r.API == mininacos.APIUpdate {
				f.Status = 410
			}
			return f
		})
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(beatPeriod + moments)
		assert.Equal(t, StateLive, reg.State())
		w.staysAs("orders", ` weight=7 {"version":"1","zone":"b"}`)
		w.register(ns, "orders", instance(weight(3)))
		require.ErrorIs(t, reg.Update(w.ctx, instance(weight(4))), ErrAPIUnavailable, "who asks for an update is told")
	})
}

func TestB11_WithoutServerAdoptionTheRegistrationStays(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		_, reg := w.adopter(WithoutServerAdoption())
		w.console(heavier)
		time.Sleep(adoption)
		assert.Equal(t, 2.0, reg.Instance().Weight)
		require.NoError(t, w.server().Restart(mininacos.LoseState))
		time.Sleep(beatPeriod + moments)
		w.staysAs("orders", ` weight=2 {"version":"1","zone":"a"}`)
	})
}

// What the application says next wins over the console, also where servers keep the console's change.
func TestB11_TheNextCallEndsAdoption(t *testing.T) {
	for _, name := range []string{"update", "register", "keep trying"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				ns, reg := w.adopter()
				w.console(heavier)
				time.Sleep(adoption)
				require.Equal(t, 7.0, reg.Instance().Weight)
				in := instance(weight(3), meta("zone", "c"))
				switch name {
				case "update":
					require.NoError(t, reg.Update(w.ctx, in))
				case "register":
					w.register(ns, "orders", in)
				default:
					w.register(ns, "orders", in, KeepTrying())
					moment()
				}
				w.staysAs("orders", ` weight=3 {"zone":"c"}`)
				assert.Equal(t, 3.0, reg.Instance().Weight, "the lists since then show no more than that")
			})
		})
	}
}

func TestB11_HealthAndEnabledAreNeverAdopted(t *testing.T) {
	for _, first := range []func(*Instance){disabled, func(*Instance) {}} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			in := instance(first)
			reg := w.register(ns, "orders", in)
			_, err := ns.Subscribe("orders", func(Event) {})
			require.NoError(t, err)
			time.Sleep(2 * beatPeriod)
			w.console(func(i *mininacos.Instance) { i.Weight, i.Enabled = 7, !in.Enabled })
			require.NoError(t, w.server().SetHealthy("", "", "orders", "10.9.0.1", 8080, false))
			time.Sleep(adoption)
			assert.Equal(t, in.Enabled, reg.Instance().Enabled)
			assert.True(t, reg.Instance().Healthy)
			require.NoError(t, w.server().Restart(mininacos.LoseState))
			time.Sleep(beatPeriod + moments)
			found := w.server().Instances("", "", "orders")
			require.Len(t, found, 1)
			assert.Equal(t, in.Enabled, found[0].Enabled)
		})
	}
}

// A list that was asked for before a change, or shortly after it, shows what was before: servers lag.
func TestB11_ListsOfBeforeAChangeAreNoConsoleChange(t *testing.T) {
	for _, interval := range []string{"5000", "100"} {
		inWorld(t, 1, func(w *world) {
			ns := w.client()
			old := instance(weight(2), meta(MetadataBeatInterval, interval))
			reg := w.register(ns, "orders", old)
			time.Sleep(adoption)
			sent := time.Now()
			require.NoError(t, reg.Update(w.ctx, instance(weight(3), meta(MetadataBeatInterval, interval))))
			for range 6 {
				ns.beats.adopt(DefaultGroup, "orders", []Instance{old}, sent)
				assert.Equal(t, 3.0, reg.Instance().Weight)
				time.Sleep(100 * time.Millisecond)
				sent = time.Now()
			}
			time.Sleep(adoption)
			ns.beats.adopt(DefaultGroup, "orders", []Instance{old}, time.Now())
			assert.Equal(t, 2.0, reg.Instance().Weight, "by now it is a change")
			other := old
			other.Port = 8081
			ns.beats.adopt(DefaultGroup, "orders", []Instance{other}, time.Now())
			assert.Len(t, ns.Registrations(), 1)
		})
	}
}
