package memnet_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// Close resets what was not accepted, and frees the port at once: a server
// restarts on it.
func TestListenerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		l := listen(t, n, ":8848")
		c := dial(t, n, serverIP+":8848")
		l.Close()
		wantErr(t, readErr(c), "read", syscall.ECONNRESET)
		_, err := c.Write([]byte("x"))
		wantErr(t, err, "write", syscall.ECONNRESET)
		c.Close()
		wantErr(t, (<-tryDial(t.Context(), n, serverIP+":8848")).err, "dial", syscall.ECONNREFUSED)

		l = listen(t, n, ":8848")
		r := &rig{Network: n, listener: l}
		r.client, r.server = r.connect(t)
		write(t, r.client, "again")
		wantRead(t, r.server, "again")
		r.close(t)
	})
}

// Connections survive their listener.
func TestListenerCloseKeepsAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.listener.Close()
		write(t, r.client, "x")
		wantRead(t, r.server, "x")
	})
}

func TestListenAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		h := n.Host(serverIP)
		n.AddName("me", serverIP)
		for addr, want := range map[string]string{
			":1":          "10.0.0.1:1",
			"0.0.0.0:2":   "10.0.0.1:2",
			"[::]:3":      "10.0.0.1:3",
			"10.0.0.1:4":  "10.0.0.1:4",
			"127.0.0.1:5": "127.0.0.1:5",
			"localhost:6": "127.0.0.1:6",
			"me:7":        "10.0.0.1:7",
			"10.0.0.1:0":  "", // free
			":0":          "",
		} {
			l, err := h.Listen("tcp", addr)
			if err != nil {
				t.Errorf("%s: %v", addr, err)
				continue
			}
			defer l.Close()
			if got := l.Addr().(*net.TCPAddr); want != "" && got.String() != want || got.Port == 0 {
				t.Errorf("%s: address %v, want %v", addr, got, want)
			}
		}
		for addr, want := range map[string]error{
			":1": syscall.EADDRINUSE, "10.0.0.1:2": syscall.EADDRINUSE,
			"10.0.0.2:9": syscall.EADDRNOTAVAIL,
		} {
			_, err := h.Listen("tcp", addr)
			wantErr(t, err, "listen", want)
		}
		var op *net.OpError
		for _, a := range [][2]string{{"udp", ":9"}, {"unix", "x"}, {"tcp", "9"}, {"tcp", "who:9"}} {
			if _, err := h.Listen(a[0], a[1]); !errors.As(err, &op) {
				t.Errorf("listen %v: %v", a, err)
			}
		}
	})
}

// What is bound to loopback only the host itself reaches.
func TestListenLoopback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		h := n.Host(serverIP)
		l, err := h.Listen("tcp", "127.0.0.1:8848")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n.BlackHole(serverIP, true) // does not reach the inside of a host
		c, err := h.DialContext(t.Context(), "tcp", "127.0.0.1:8848")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.LocalAddr().(*net.TCPAddr); !got.IP.IsLoopback() {
			t.Errorf("local address %v", got)
		}
		n.BlackHole(serverIP, false)
		wantErr(t, (<-tryDial(t.Context(), n, serverIP+":8848")).err, "dial", syscall.ECONNREFUSED)
		_, err = h.DialContext(t.Context(), "tcp", serverIP+":8848")
		wantErr(t, err, "dial", syscall.ECONNREFUSED)
	})
}

func TestListenIPv6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		l, err := n.Host("fd00::1").Listen("tcp6", "[fd00::1]:8848")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := n.Host("fd00::2").DialContext(t.Context(), "tcp", "[fd00:0::1]:8848")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.RemoteAddr().String(); got != "[fd00::1]:8848" {
			t.Errorf("remote address %s", got)
		}
		c.Close()
	})
}

// More than 4096 connections do not wait for Accept.
func TestListenerBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		l := listen(t, n, ":8848")
		var conns []net.Conn
		for range 4096 {
			conns = append(conns, dial(t, n, serverIP+":8848"))
		}
		wantErr(t, (<-tryDial(t.Context(), n, serverIP+":8848")).err, "dial", syscall.ECONNREFUSED)
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := <-tryDial(t.Context(), n, serverIP+":8848"); got.err != nil {
			t.Error(got.err)
		}
		l.Close()
		c.Close()
		for _, c := range conns {
			c.Close()
		}
		if n.OpenConns() != 0 {
			t.Errorf("open connections = %d", n.OpenConns())
		}
	})
}

// Local ports do not run out while connections come and go.
func TestEphemeralPortsAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memnet.New(1))
		for range 30_000 {
			c, err := r.Host(clientIP).DialContext(context.Background(), "tcp", serverIP+":8848")
			if err != nil {
				t.Fatal(err)
			}
			s, err := r.listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			s.Close()
		}
		if r.OpenConns() != 1 {
			t.Errorf("open connections = %d", r.OpenConns())
		}
		r.close(t)
		time.Sleep(time.Second)
	})
}

func TestHostPanicsOnWrongAddress(t *testing.T) {
	leakcheck.Check(t)
	for _, ip := range []string{"", "nacos", "10.0.0.1:80", "127.0.0.1", "0.0.0.0", "224.0.0.1"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Host(%q) does not panic", ip)
				}
			}()
			memnet.New(1).Host(ip)
		}()
	}
	if got := memnet.New(1).Host("::ffff:10.0.0.1").IP(); got != "10.0.0.1" {
		t.Errorf("IP = %s", got)
	}
}
