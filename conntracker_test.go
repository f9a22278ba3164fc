package nacos

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// P8: a name that points elsewhere is followed, also by connections that are never idle.
func TestNameIsResolvedAnew(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.net.AddName("nacos", serverIP(0))
		ns := w.client(WithServers("nacos"))
		w.cluster.Intercept(always(mininacos.Fault{Delay: 5 * time.Second}))
		ctx, stop := context.WithCancel(w.ctx)
		var busy sync.WaitGroup
		for i := range 3 {
			busy.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				for ctx.Err() == nil {
					_, err := ns.GetServerStatus(ctx)
					assert.True(t, err == nil || ctx.Err() != nil, "%v", err)
				}
			})
		}
		time.Sleep(10 * time.Minute)
		assert.Zero(t, w.askedEach()[1])
		assert.Less(t, w.net.Dials(), 15, "connections are kept")
		w.net.AddName("nacos", serverIP(1))
		time.Sleep(5*time.Minute + 10*time.Second)
		w.askedEach()
		time.Sleep(time.Minute)
		assert.Zero(t, w.askedEach()[0])
		stop()
		busy.Wait()
		time.Sleep(time.Minute)
		assert.Zero(t, w.net.OpenConns(), "idle ones are closed")
	})
}

// P5: a kept connection that broke meanwhile is not a failing server.
func TestBrokenIdleConnectionIsReplaced(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		logger, logs := logged()
		ns := w.client(logger, WithMaxTries(1))
		in := NewInstance("10.9.0.1", 8080)
		for range 3 {
			require.NoError(t, ns.beats.transport.register(w.ctx, "g", "orders", in, 0))
			w.net.CutConns("", "")
			moment()
			require.NoError(t, ns.beats.transport.register(w.ctx, "g", "orders", in, 0))
			require.NoError(t, w.server().Restart(mininacos.KeepState))
			moment()
		}
		assert.Empty(t, logs.FilterMessage("server failing").All())
	})
}

// N5: a connection that a deaf dialer brings after the end is closed at once, and the end waits for it.
func TestDialThatEndsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		here, there := net.Pipe()
		cfg := defaults()
		WithDialer(func(context.Context, string, string) (net.Conn, error) { <-late; return here, nil }).apply(&cfg)
		tracker := newConnTracker(&cfg)
		var ended atomic.Bool
		var both sync.WaitGroup
		both.Go(func() {
			_, err := tracker.dial(context.Background(), "tcp", "nacos:8848")
			assert.ErrorIs(t, err, ErrClosed)
		})
		synctest.Wait()
		both.Go(func() { tracker.close(); ended.Store(true) })
		time.Sleep(time.Minute)
		assert.False(t, ended.Load(), "it waits for the dial")
		close(late)
		both.Wait()
		_, err := there.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF, "the connection is closed")
		_, err = tracker.dial(context.Background(), "tcp", "nacos:8848")
		assert.ErrorIs(t, err, ErrClosed)
	})
}

// N5: the end of the tracker ends dials that listen to their context, and open connections.
func TestCloseOfTheTracker(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		cfg := defaults()
		cfg.dial = w.net.Host("10.3.0.1").DialContext
		tracker := newConnTracker(&cfg)
		conn, err := tracker.dial(w.ctx, "tcp", w.servers[0].Addr())
		require.NoError(t, err)
		w.net.BlackHole(serverIP(1), true)
		var dial sync.WaitGroup
		dial.Go(func() {
			_, err := tracker.dial(context.WithoutCancel(w.ctx), "tcp", w.servers[1].Addr())
			assert.Error(t, err)
		})
		time.Sleep(time.Second)
		start := time.Now()
		tracker.close()
		dial.Wait()
		assert.Less(t, time.Since(start), 50*time.Millisecond)
		_, err = conn.Write([]byte("x"))
		assert.ErrorIs(t, err, net.ErrClosed)
		assert.ErrorIs(t, conn.Close(), net.ErrClosed, "closing twice does no harm")
	})
}

// N5: Close ends a request that is under way, and no connection is left.
func TestCloseEndsConnections(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		ns := w.client()
		w.cluster.Intercept(always(mininacos.Fault{Hang: true}))
		got := make(chan error, 1)
		go func() { _, err := ns.GetServerStatus(w.ctx); got <- err }()
		time.Sleep(time.Second)
		require.NotZero(t, w.net.OpenConns())
		require.NoError(t, ns.Close())
		err := <-got
		assert.ErrorIs(t, err, ErrClosed)
		assert.False(t, w.failure(err).Retryable)
		moment()
		assert.Zero(t, w.net.OpenConns())
	})
}
