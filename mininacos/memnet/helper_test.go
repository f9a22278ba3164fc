package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

const (
	serverIP = "10.0.0.1"
	clientIP = "10.0.0.2"
)

// rig is a network with a connection from clientIP to serverIP:8848.
type rig struct {
	*memnet.Network
	client, server net.Conn
	listener       net.Listener
}

func newRig(t testing.TB, n *memnet.Network) *rig {
	t.Helper()
	r := &rig{Network: n}
	r.listener = listen(t, n, ":8848")
	r.client, r.server = r.connect(t)
	return r
}

// connect makes one more connection.
func (r *rig) connect(t testing.TB) (client, server net.Conn) {
	t.Helper()
	client = dial(t, r.Network, serverIP+":8848")
	server, err := r.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// close closes everything and reports leaks.
func (r *rig) close(t testing.TB) {
	t.Helper()
	r.client.Close()
	r.server.Close()
	r.listener.Close()
	if n := r.OpenConns(); n != 0 {
		t.Errorf("open connections = %d, want 0", n)
	}
}

func listen(t testing.TB, n *memnet.Network, addr string) net.Listener {
	t.Helper()
	l, err := n.Host(serverIP).Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t testing.TB, n *memnet.Network, addr string) net.Conn {
	t.Helper()
	c, err := n.Host(clientIP).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// after runs f in a goroutine and returns a channel with how long it took and
// what it gave.
func after(f func() error) <-chan result {
	done := make(chan result, 1)
	start := time.Now()
	go func() {
		err := f()
		done <- result{time.Since(start), err}
	}()
	return done
}

type result struct {
	took time.Duration
	err  error
}

// wantErr checks that err is a *net.OpError of op that wraps want.
func wantErr(t testing.TB, err error, op string, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
		return
	}
	var e *net.OpError
	if !errors.As(err, &e) || e.Op != op {
		t.Errorf("error %#v, want a *net.OpError of %q", err, op)
	}
}

// wantRead checks that the next bytes are want.
func wantRead(t testing.TB, c io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

func write(t testing.TB, c io.Writer, text string) {
	t.Helper()
	if n, err := io.WriteString(c, text); n != len(text) || err != nil {
		t.Fatalf("write = %d, %v", n, err)
	}
}

// readErr reads from c once and returns the error.
func readErr(c io.Reader) error {
	_, err := c.Read(make([]byte, 100))
	return err
}

// about checks that a time of the virtual clock is want, but for the
// nanoseconds that keep deliveries apart.
func about(t testing.TB, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+10*time.Microsecond {
		t.Errorf("%s took %v, want %v", what, got, want)
	}
}
