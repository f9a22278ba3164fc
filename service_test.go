package nacos

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos"
)

// mixed places instances that differ in everything a lookup looks at.
func (w *world) mixed(service string) {
	w.place(service, 1)
	w.place(service, 2, func(in *mininacos.Instance) { in.Healthy = false })
	w.place(service, 3, func(in *mininacos.Instance) { in.Weight = 0 })
	w.place(service, 4, func(in *mininacos.Instance) { in.Enabled = false }) // servers list no disabled ones
	w.place(service, 5, func(in *mininacos.Instance) { in.Weight = 0.001 })
	w.place(service, 6, func(in *mininacos.Instance) { in.Weight = 10000 })
	w.place(service, 7, func(in *mininacos.Instance) { in.Healthy, in.Weight = false, 0 })
}

func odd(in Instance) bool { return in.Port%2 == 1 }

// H11, by every way to ask
func TestWhatLookupsReturn(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mixed("orders")
		ns := w.client()
		for _, how := range [][]CallOption{nil, {NoSubscribe()}} {
			lookup := func(options ...CallOption) []int {
				list, err := ns.SelectInstances(w.ctx, "orders", append(options, how...)...)
				require.NoError(t, err)
				return ports(list)
			}
			assert.ElementsMatch(t, []int{1, 5, 6}, lookup())
			assert.Equal(t, []int{2}, lookup(Unhealthy()))
			assert.ElementsMatch(t, []int{1, 5}, lookup(Where(odd)))
			assert.Empty(t, lookup(Where(odd), Unhealthy()))
			assert.ElementsMatch(t, []int{1, 2, 3, 5, 6, 7}, w.all(ns, "orders", how...))
			assert.ElementsMatch(t, []int{1, 3, 5, 7}, w.all(ns, "orders", append(how, Where(odd))...))
			for range 50 {
				one, err := ns.SelectOneHealthyInstance(w.ctx, "orders", append(how, Where(odd))...)
				require.NoError(t, err)
				assert.Contains(t, []int{1, 5}, one.Port)
			}
		}
		handle, oddOnes := ns.Service("orders"), ns.Service("orders", Where(odd))
		for want, list := range map[string]func() ([]Instance, error){
			"[1 5 6]":       func() ([]Instance, error) { return handle.Select(w.ctx) },
			"[2]":           func() ([]Instance, error) { return handle.Select(w.ctx, Unhealthy()) },
			"[1 2 3 5 6 7]": func() ([]Instance, error) { return handle.Instances(w.ctx) },
			"[1 5]":         func() ([]Instance, error) { return oddOnes.Select(w.ctx) },
			"[1 3 5 7]":     func() ([]Instance, error) { return oddOnes.Instances(w.ctx) },
			"[5]": func() ([]Instance, error) {
				return oddOnes.Select(w.ctx, Where(func(in Instance) bool { return in.Port > 1 }))
			},
		} {
			got, err := list()
			require.NoError(t, err)
			numbers := ports(got)
			slices.Sort(numbers)
			assert.Equal(t, want, fmt.Sprint(numbers))
		}
		snap, err := oddOnes.Snapshot(w.ctx)
		require.NoError(t, err)
		assert.Len(t, snap.Instances, 4)
		one, err := oddOnes.SelectOne(w.ctx)
		require.NoError(t, err)
		assert.True(t, odd(one))
	})
}

// H12
func TestOneIsChosenByWeight(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		list := wire.ServiceInfo{Name: "DEFAULT_GROUP@@orders", HasHosts: true, LastRefTime: 1}
		for port, weight := range []float64{10000, 5000, 1, math.SmallestNonzeroFloat64, 0} {
			list.Hosts = append(list.Hosts, wire.Host{IP: "10.9.0.1", Port: port, Weight: weight, Healthy: true, Enabled: true})
		}
		w.answer(string(wire.AppendServiceInfo(nil, &list)))
		ns := w.client()
		handle := ns.Service("orders")
		for name, choose := range map[string]func() (Instance, error){
			"naming service": func() (Instance, error) { return ns.SelectOneHealthyInstance(w.ctx, "orders") },
			"filtered":       func() (Instance, error) { return ns.SelectOneHealthyInstance(w.ctx, "orders", Where(everyone)) },
			"handle":         func() (Instance, error) { return handle.SelectOne(w.ctx) },
		} {
			assertShares(t, name, []float64{10000, 5000, 1, 0, 0}, func() int {
				in, err := choose()
				require.NoError(t, err)
				return in.Port
			})
		}
	})
}

// H12
func TestNoInstanceTellsWhy(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for i, service := range []string{"sick", "idle", "filtered"} {
			w.place(service, 1, func(in *mininacos.Instance) { in.Healthy = i > 0 })
			w.place(service, 2, func(in *mininacos.Instance) { in.Healthy = i > 0 })
		}
		w.place("idle", 1, func(in *mininacos.Instance) { in.Weight = 0 })
		w.place("idle", 2, func(in *mininacos.Instance) { in.Weight = 0 })
		ns := w.client()
		for service, want := range map[string]struct {
			total, healthy int
			text           string
		}{
			"nobody":   {0, 0, "the list is empty"},
			"sick":     {2, 0, "all 2 are unhealthy"},
			"idle":     {2, 2, "none of 2 (2 healthy) is enabled"},
			"filtered": {2, 2, "none of 2 (2 healthy) is enabled"},
		} {
			for _, options := range [][]CallOption{nil, {Where(func(Instance) bool { return false })}} {
				if service == "filtered" && options == nil {
					continue
				}
				_, err := ns.SelectOneHealthyInstance(w.ctx, service, options...)
				var none *NoInstanceError
				require.ErrorAs(t, err, &none, service)
				assert.Equal(t, NoInstanceError{Service: service, Group: DefaultGroup, Total: want.total, Healthy: want.healthy, Source: SourcePoll}, *none)
				assert.ErrorContains(t, err, DefaultGroup+"@@"+service+": "+want.text)
			}
			list, err := ns.SelectInstances(w.ctx, service, Where(func(Instance) bool { return false }))
			assert.NoError(t, err)
			assert.NotNil(t, list)
			assert.Empty(t, list)
		}
	})
}

// H13
func TestSnapshotsTellWhereAListIsFrom(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		w.server().SetClockOffset(time.Hour)
		ns := w.client()
		handle := ns.Service("orders", Clusters("DEFAULT", "b"))
		asked := time.Now()
		for _, ask := range []func() (ServiceSnapshot, error){
			func() (ServiceSnapshot, error) { return handle.Snapshot(w.ctx) },
			func() (ServiceSnapshot, error) {
				return ns.GetService(w.ctx, "orders", Clusters("b", "DEFAULT"), Where(everyone))
			},
			func() (ServiceSnapshot, error) {
				return ns.GetService(w.ctx, "orders", Clusters("b", "DEFAULT"), NoSubscribe())
			},
		} {
			snap, err := ask()
			require.NoError(t, err)
			assert.Equal(t, ServiceName{Group: DefaultGroup, Service: "orders", Clusters: []string{"DEFAULT", "b"}}, snap.ServiceName)
			assert.Equal(t, []int{1}, ports(snap.Instances))
			assert.Equal(t, SourcePoll, snap.Source)
			assert.WithinDuration(t, asked, snap.Confirmed, time.Millisecond)
			assert.Less(t, snap.Age, time.Millisecond)
			assert.WithinDuration(t, asked.Add(time.Hour), snap.ReferenceTime, time.Millisecond)
			assert.False(t, snap.Protected || snap.ReachedProtectionThreshold)
		}
		time.Sleep(5 * time.Second)
		w.server().Stop()
		time.Sleep(time.Minute)
		snap, err := handle.Snapshot(w.ctx)
		require.NoError(t, err)
		assert.Equal(t, 64*time.Second, snap.Age.Round(time.Second), "the last answer was that of the poll at 1 s")
	})
}

func TestSnapshotsTellOfTheProtectionThreshold(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.place("orders", 1)
		w.place("orders", 2)
		ns := w.client()
		var r record
		_, err := ns.Subscribe("orders", r.on)
		require.NoError(t, err)
		for _, reached := range []bool{false, true, false} {
			threshold := float32(0)
			if reached {
				threshold = 1
			}
			require.NoError(t, w.server().SetProtectThreshold("", "", "orders", threshold))
			time.Sleep(11 * time.Second)
			snap, err := ns.GetService(w.ctx, "orders")
			require.NoError(t, err)
			assert.Equal(t, reached, snap.ReachedProtectionThreshold)
		}
		assert.Len(t, r.all(), 1, "the same instances, all healthy before and after")
	})
}

// H11: a list that was returned is the caller's own.
func TestReturnedListsAreTheCallersOwn(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for port := range 4 {
			w.place("orders", port, func(in *mininacos.Instance) { in.Healthy = port < 3 })
		}
		ns := w.client()
		handle := ns.Service("orders", Clusters("DEFAULT", "b"))
		asks := []func() ([]Instance, error){
			func() ([]Instance, error) { return ns.GetAllInstances(w.ctx, "orders") },
			func() ([]Instance, error) { return ns.SelectInstances(w.ctx, "orders") },
			func() ([]Instance, error) { return ns.SelectInstances(w.ctx, "orders", Unhealthy()) },
			func() ([]Instance, error) {
				snap, err := ns.GetService(w.ctx, "orders")
				return snap.Instances, err
			},
			func() ([]Instance, error) { return handle.Select(w.ctx) },
			func() ([]Instance, error) { return handle.Instances(w.ctx) },
			func() ([]Instance, error) {
				snap, err := handle.Snapshot(w.ctx)
				snap.Clusters[0] = "changed"
				return snap.Instances, err
			},
		}
		var first [][]Instance
		for round := range 2 {
			for i, ask := range asks {
				list, err := ask()
				require.NoError(t, err)
				if round == 0 {
					first = append(first, slices.Clone(list))
				}
				assert.Equal(t, first[i], list, i)
				slices.Reverse(list)
				for n := range list {
					list[n].IP, list[n].Weight, list[n].Metadata = "changed", 0, Metadata{}
				}
				_ = append(list, at(99))
			}
		}
		snap, err := handle.Snapshot(w.ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"DEFAULT", "b"}, snap.Clusters)
		_, err = handle.SelectOne(w.ctx)
		assert.NoError(t, err)
	})
}

// H9: what a handle tells of a list is of that list, also when it is not kept.
func TestAHandleBeyondTheLimitTellsOfTheAnswerItGot(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxServices(1))
		handle := ns.Service("orders")
		_, err := handle.Snapshot(w.ctx)
		require.NoError(t, err)
		time.Sleep(6 * time.Minute)
		assert.Empty(t, w.all(ns, "other"), "takes the place of the list that the handle had")
		snap, err := handle.Snapshot(w.ctx)
		require.NoError(t, err)
		assert.Zero(t, snap.Age)
		assert.WithinDuration(t, time.Now(), snap.ReferenceTime, time.Second)
	})
}

func TestNamesOfServices(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		var want []string
		for i := range 250 {
			want = append(want, fmt.Sprintf("s%03d", i))
			w.place(want[i], 1)
		}
		ns := w.client()
		collect := func(options ...CallOption) (names []string) {
			for name, err := range ns.Services(w.ctx, options...) {
				require.NoError(t, err)
				names = append(names, name)
			}
			return names
		}
		for range 2 {
			w.server().ResetRequests()
			assert.ElementsMatch(t, want, collect())
			assert.Equal(t, 3, w.server().Requests()[mininacos.APIServiceList])
		}
		assert.Empty(t, collect(Group("none")))
		w.server().ResetRequests()
		for range ns.Services(w.ctx) {
			break
		}
		assert.Equal(t, 1, w.server().Requests()[mininacos.APIServiceList])

		page, err := ns.GetServicesOfServer(w.ctx, 3, 100)
		require.NoError(t, err)
		assert.Equal(t, 250, page.Count)
		assert.Len(t, page.Names, 50)
		page, err = ns.GetServicesOfServer(w.ctx, 4, 100)
		require.NoError(t, err)
		assert.Empty(t, page.Names)

		w.server().Intercept(func(r *mininacos.Request) (fault mininacos.Fault) {
			if r.Param("pageNo") == "2" {
				fault.Status = 403
			}
			return fault
		})
		names, errs := 0, 0
		for _, err := range ns.Services(w.ctx) {
			if err != nil {
				errs++
				var failure *APIError
				assert.ErrorAs(t, err, &failure)
			} else {
				names++
			}
		}
		assert.Equal(t, []int{100, 1}, []int{names, errs})
	})
}

func TestGetServerStatus(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxTries(1))
		status, err := ns.GetServerStatus(w.ctx)
		require.NoError(t, err)
		assert.Equal(t, StatusUp, status)
		w.server().Intercept(func(*mininacos.Request) mininacos.Fault {
			return mininacos.Fault{Status: 200, ContentType: "application/json", Body: `{"status":"DOWN"}`}
		})
		status, err = ns.GetServerStatus(w.ctx)
		require.NoError(t, err)
		assert.Equal(t, StatusDown, status)
		w.server().Stop()
		_, err = ns.GetServerStatus(w.ctx)
		var failure *APIError
		assert.ErrorAs(t, err, &failure)
		assert.True(t, failure.Retryable)
	})
}
