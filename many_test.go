package nacos

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

const many = 10_000

func registerMany(t testing.TB, ns *NamingService) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < many; i += 16 {
				if _, err := ns.RegisterInstance(t.Context(), fmt.Sprintf("s%d", i%100), NewInstance("10.9.0.1", 1+i)); err != nil {
					t.Errorf("register: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// B7: 10,000 registrations need no goroutine each.
func TestTenThousandRegistrationsNeedFewGoroutines(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		registerMany(w.T, ns)
		most := 0
		for range 100 { // 10 s, so every instance beats twice; at odd times, to meet the bursts too
			time.Sleep(100*time.Millisecond + 7*time.Microsecond)
			most = max(most, clientGoroutines())
		}
		workers := ns.cfg.beatWorkers
		assert.LessOrEqual(w, most, workers*3+20)
		stats := ns.Stats()
		assert.Equal(w, many, stats.Beats)
		assert.GreaterOrEqual(w, stats.BeatsSent, uint64(2*many*9/10))
		assert.Zero(w, stats.BeatsFailed)
		require.NoError(w, ns.Shutdown(w.ctx))
		assert.Empty(w, w.server().Instances("", "", "s1"))
	})
}

// clientGoroutines counts by their stacks the goroutines that a client may have started: those of this
// package, of timer pools (the server's too, they cannot be told apart) and of HTTP connections.
func clientGoroutines() int {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	count := 0
	for stack := range strings.SplitSeq(strings.TrimRight(string(buf), "\x00"), "\n\n") {
		for _, mark := range []string{"nacos.(*", "internal/timerpool.", "net/http.(*persistConn)."} {
			if strings.Contains(stack, mark) {
				count++
				break
			}
		}
	}
	return count
}

// agreeable answers every request as a server would, without one, so that memory is the client's alone.
type agreeable struct{}

func (agreeable) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

// B7: a registration costs less than 4 KiB beyond the data of its instance.
func TestTenThousandRegistrationsNeedLittleMemory(t *testing.T) {
	leakcheck.Check(t)
	ns, err := NewNamingService(WithServers("nowhere"), WithRoundTripper(agreeable{}))
	require.NoError(t, err)
	before := heap()
	registerMany(t, ns)
	each := float64(heap()-before) / many
	require.NoError(t, ns.Close())
	assert.Less(t, each, 4096.0, "bytes a registration")
	t.Logf("%.0f bytes a registration", each)
}

func heap() int64 {
	var m runtime.MemStats
	for range 3 { // what earlier tests left behind goes in turns: finalizers, pools
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) + int64(m.StackInuse)
}
