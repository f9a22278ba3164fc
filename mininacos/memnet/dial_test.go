package memnet_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// tryDial dials and reports how long it took.
func tryDial(ctx context.Context, n *memnet.Network, addr string) <-chan result {
	return after(func() error {
		c, err := n.Host(clientIP).DialContext(ctx, "tcp", addr)
		if err == nil {
			c.Close()
		}
		return err
	})
}

func TestDialTakesOneLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.SetLink("", "", memnet.Link{Latency: 20 * time.Millisecond})
		r := newRig(t, n)
		got := <-tryDial(t.Context(), n, serverIP+":8848")
		if got.err != nil {
			t.Error(got.err)
		}
		about(t, "dial", got.took, 20*time.Millisecond)
		start := time.Now()
		write(t, r.client, "x")
		wantRead(t, r.server, "x")
		about(t, "delivery", time.Since(start), 20*time.Millisecond)
		c, _ := r.listener.Accept()
		c.Close()
		r.close(t)
	})
}

func TestDialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.Host(serverIP)
		for _, addr := range []string{serverIP + ":1", "10.9.9.9:8848", "127.0.0.1:8848", "localhost:8848", ":8848"} {
			got := <-tryDial(t.Context(), n, addr)
			wantErr(t, got.err, "dial", syscall.ECONNREFUSED)
			about(t, "refusal", got.took, 0)
		}
		if n.Dials() != 0 {
			t.Errorf("dials = %d, want 0", n.Dials())
		}
	})
}

func TestDialBadAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := memnet.New(1).Host(clientIP)
		var dns *net.DNSError
		if _, err := h.DialContext(t.Context(), "tcp", "nowhere:1"); !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("unknown name: %v", err)
		}
		for _, a := range [][2]string{{"unix", "/x"}, {"ip", clientIP}, {"tcp", "10.0.0.1"}, {"tcp", "10.0.0.1:http"}, {"tcp", "10.0.0.1:65536"}, {"tcp6", "10.0.0.1:1"}} {
			var op *net.OpError
			if _, err := h.DialContext(t.Context(), a[0], a[1]); !errors.As(err, &op) {
				t.Errorf("dial %v: %v", a, err)
			}
		}
	})
}

func TestDialContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		l := listen(t, n, ":8848")
		defer l.Close()
		n.BlackHole(serverIP, true)

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		got := <-tryDial(ctx, n, serverIP+":8848")
		wantErr(t, got.err, "dial", context.DeadlineExceeded)
		var e net.Error
		if !errors.As(got.err, &e) || !e.Timeout() {
			t.Errorf("%v is no timeout", got.err)
		}
		about(t, "dial", got.took, 3*time.Second)

		ctx, cancel = context.WithCancel(t.Context())
		done := tryDial(ctx, n, serverIP+":8848")
		time.Sleep(time.Second)
		cancel()
		wantErr(t, (<-done).err, "dial", context.Canceled)
		wantErr(t, (<-tryDial(ctx, n, serverIP+":8848")).err, "dial", context.Canceled)
		if n.OpenConns() != 0 {
			t.Errorf("open connections = %d", n.OpenConns())
		}
	})
}

// A dial into a black hole or across a partition goes on when that is gone.
func TestDialGoesOnWhenHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond})
		l := listen(t, n, ":8848")
		for name, set := range map[string]func(bool){
			"server in a hole": func(on bool) { n.BlackHole(serverIP, on) },
			"client in a hole": func(on bool) { n.BlackHole(clientIP, on) },
			"partition":        func(on bool) { n.Partition(clientIP, serverIP, on) },
		} {
			set(true)
			before := tryDial(t.Context(), n, serverIP+":8848")
			time.Sleep(time.Second)
			set(false)
			got := <-before
			if got.err != nil {
				t.Errorf("%s: %v", name, got.err)
			}
			about(t, name, got.took, 1010*time.Millisecond)

			// The hole comes while the request is on its way.
			during := tryDial(t.Context(), n, serverIP+":8848")
			time.Sleep(5 * time.Millisecond)
			set(true)
			time.Sleep(time.Second)
			set(false)
			got = <-during
			about(t, name+" during the dial", got.took, 1015*time.Millisecond)
		}
		l.Close()
	})
}

func TestDialBlackHoleOfUnknownHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.BlackHole("10.9.9.9", true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, (<-tryDial(ctx, n, "10.9.9.9:1")).err, "dial", context.DeadlineExceeded)
	})
}

// Names resolve anew on every dial; the addresses are tried in order, each with
// its share of the time.
func TestDialNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		l := listen(t, n, ":8848")
		defer l.Close()
		reach := func(timeout, want time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			got := <-tryDial(ctx, n, "nacos.test:8848")
			if got.err != nil {
				t.Error(got.err)
			}
			about(t, "dial", got.took, want)
		}
		n.AddName("nacos.test", serverIP)
		reach(time.Second, 0)
		n.AddName("nacos.test", "10.9.9.9", serverIP) // the first refuses
		reach(time.Second, 0)
		n.BlackHole("10.9.9.9", true) // the first is silent
		reach(10*time.Second, 5*time.Second)
		n.AddName("nacos.test", "10.9.9.9", "10.9.9.8")
		n.BlackHole("10.9.9.9", false)
		wantErr(t, (<-tryDial(t.Context(), n, "nacos.test:8848")).err, "dial", syscall.ECONNREFUSED)
		n.AddName("nacos.test")
		var dns *net.DNSError
		if got := <-tryDial(t.Context(), n, "nacos.test:8848"); !errors.As(got.err, &dns) {
			t.Errorf("removed name: %v", got.err)
		}
	})
}
