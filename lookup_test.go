package nacos

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/mininacos"
)

// known makes a client on real sockets that knows a service of n instances, half of them in cluster hz.
func known(t testing.TB, n int, options ...Option) *NamingService {
	t.Helper()
	srv := mininacos.RunT(t)
	for i := range n {
		in := mininacos.NewInstance(fmt.Sprintf("10.9.%d.%d", i/250, i%250), 8080)
		in.Weight = float64(1 + i%3)
		if i%2 == 0 {
			in.Cluster = "hz"
		}
		require.NoError(t, srv.Register("", "pay", "orders", in))
	}
	ns, err := NewNamingService(append(options, WithServers(srv.Addr()))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	all, err := ns.GetAllInstances(t.Context(), "orders", Group("pay"))
	require.NoError(t, err)
	require.Len(t, all, n)
	return ns
}

// H1: a lookup of a known service allocates nothing, also with Group and one cluster.
func TestLookupsOfAKnownServiceAllocateNothing(t *testing.T) {
	leakcheck.Check(t)
	ns := known(t, 10)
	ctx := context.Background()
	handle := ns.Service("orders", Group("pay"))
	inCluster := ns.Service("orders", Group("pay"), Clusters("hz"))
	for name, lookup := range map[string]func() (Instance, error){
		"SelectOneHealthyInstance with Group": func() (Instance, error) {
			return ns.SelectOneHealthyInstance(ctx, "orders", Group("pay"))
		},
		"SelectOneHealthyInstance with Group and a cluster": func() (Instance, error) {
			return ns.SelectOneHealthyInstance(ctx, "orders", Group("pay"), Clusters("hz"))
		},
		"Service.SelectOne":           func() (Instance, error) { return handle.SelectOne(ctx) },
		"Service.SelectOne, clusters": func() (Instance, error) { return inCluster.SelectOne(ctx) },
	} {
		in, err := lookup()
		require.NoError(t, err, name)
		require.NotZero(t, in.Port)
		allocs := testing.AllocsPerRun(1000, func() {
			if _, err := lookup(); err != nil {
				panic(err)
			}
		})
		assert.Zero(t, allocs, name)
	}
}

// A lookup that fails costs a query no more than one a try of the update task (H2), whatever the callers do.
func TestLookupsDuringAnOutageAskNobody(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		w.server().Stop()
		_, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
		require.Error(w, err)
		before := ns.Stats().Queries
		for range 10_000 {
			_, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
			require.Error(w, err)
		}
		assert.Equal(w, before, ns.Stats().Queries)
		require.NoError(w, w.server().Restart(mininacos.KeepState))
		require.NoError(w, w.server().Register("", "", "orders", mininacos.NewInstance("10.9.0.1", 80)))
		time.Sleep(10 * time.Second)
		_, err = ns.SelectOneHealthyInstance(w.ctx, "orders")
		require.NoError(w, err)
	})
}

// H12: a real 2.3.2 takes a weight of NaN; the others stay in sight, and it counts as 1.
func TestWeightThatIsNoNumberSparesTheOtherInstances(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for port, weight := range []float64{1: math.NaN(), 2: 1} {
			in := mininacos.NewInstance("10.9.0.1", port)
			in.Weight = weight
			in.Metadata = map[string]string{MetadataBeatTimeout: "3600000", MetadataDeleteTimeout: "3600000"} // nobody beats
			if port > 0 {
				require.NoError(w, w.server().Register("", "", "orders", in))
			}
		}
		ns := w.client()
		var events record
		_, err := ns.Subscribe("orders", events.on)
		require.NoError(w, err)
		chosen := make(map[int]int)
		for range 1000 {
			one, err := ns.SelectOneHealthyInstance(w.ctx, "orders")
			require.NoError(w, err)
			chosen[one.Port]++
		}
		assert.InDelta(w, 500, chosen[1], 100)
		time.Sleep(10 * time.Minute) // with decoded polls among them
		assert.Len(w, events.all(), 1)
	})
}

func BenchmarkSelect(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		ns := known(b, n)
		handle := ns.Service("orders", Group("pay"))
		ctx := context.Background()
		b.Run(fmt.Sprintf("handle/instances=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := handle.SelectOne(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("facade/instances=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ns.SelectOneHealthyInstance(ctx, "orders", Group("pay")); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("parallel/instances=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := ns.SelectOneHealthyInstance(ctx, "orders", Group("pay")); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// A benchmark of its own shows the ratio, which takes both sizes turn by turn so that noise meets both.
func BenchmarkSelectRatio(b *testing.B) {
	small, large := known(b, 10).Service("orders", Group("pay")), known(b, 10_000).Service("orders", Group("pay"))
	ctx := context.Background()
	turn := func(s *Service) time.Duration {
		begun := time.Now()
		for range 10_000 {
			if _, err := s.SelectOne(ctx); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begun)
	}
	var few, many time.Duration
	for b.Loop() {
		few += turn(small)
		many += turn(large)
	}
	b.ReportMetric(float64(many)/float64(few), "x10000/10")
}
