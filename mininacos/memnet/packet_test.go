package memnet_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// packets is two UDP sockets on a network, in a bubble.
type packets struct {
	*memnet.Network
	a, b net.PacketConn
}

func packetBubble(t *testing.T, seed uint64, f func(t *testing.T, p *packets)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(seed)
		p := &packets{n, socket(t, n, clientIP, ":0"), socket(t, n, serverIP, ":9000")}
		f(t, p)
		p.a.Close()
		p.b.Close()
	})
}

func socket(t testing.TB, n *memnet.Network, ip, addr string) net.PacketConn {
	t.Helper()
	c, err := n.Host(ip).ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *packets) send(t testing.TB, text string) {
	t.Helper()
	if n, err := p.a.WriteTo([]byte(text), p.b.LocalAddr()); n != len(text) || err != nil {
		t.Fatalf("WriteTo = %d, %v", n, err)
	}
}

// drain returns what c receives until nothing came for a minute.
func drain(c net.PacketConn) (got []string) {
	b := make([]byte, 1<<16)
	for {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return got
		}
		got = append(got, string(b[:n]))
	}
}

// sendAll sends count numbered datagrams at once.
func (p *packets) sendAll(t testing.TB, count int) (sent []string) {
	t.Helper()
	for i := range count {
		sent = append(sent, fmt.Sprint(i))
		p.send(t, sent[i])
	}
	return sent
}

func TestPacketDelivery(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		p.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond})
		start := time.Now()
		p.send(t, "hello")
		b := make([]byte, 100)
		n, from, err := p.b.ReadFrom(b)
		if err != nil || string(b[:n]) != "hello" || from.String() != p.a.LocalAddr().String() {
			t.Errorf("ReadFrom = %q, %v, %v", b[:n], from, err)
		}
		about(t, "delivery", time.Since(start), 10*time.Millisecond)
		if _, ok := from.(*net.UDPAddr); !ok {
			t.Errorf("address of type %T", from)
		}
		if _, err := p.b.WriteTo(nil, from); err != nil { // an empty one counts too
			t.Error(err)
		}
		if n, _, err := p.a.ReadFrom(b); n != 0 || err != nil {
			t.Errorf("empty datagram: %d, %v", n, err)
		}
	})
}

// Without faults datagrams keep their order, also with jitter.
func TestPacketOrder(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		for _, l := range []memnet.Link{{}, {Latency: time.Second, Jitter: time.Second}} {
			p.SetLink("", "", l)
			sent := p.sendAll(t, 200)
			if got := drain(p.b); !slices.Equal(got, sent) {
				t.Errorf("%+v: got %v", l, got)
			}
		}
	})
}

func TestPacketSizes(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		p.send(t, "0123456789")
		p.send(t, "next")
		b := make([]byte, 4)
		for _, want := range []string{"0123", "next"} { // the rest is cut off
			if n, _, err := p.b.ReadFrom(b); string(b[:n]) != want || err != nil {
				t.Errorf("ReadFrom = %q, %v", b[:n], err)
			}
		}
		big := make([]byte, 65508)
		_, err := p.a.WriteTo(big, p.b.LocalAddr())
		wantErr(t, err, "write", syscall.EMSGSIZE)
		p.send(t, string(big[:65507]))
		if n, _, err := p.b.ReadFrom(big); n != 65507 || err != nil {
			t.Errorf("ReadFrom = %d, %v", n, err)
		}
	})
}

// A socket nobody reads keeps what its buffer holds and loses the rest.
func TestPacketBufferFull(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		sent := p.sendAll(t, 1000)
		time.Sleep(time.Second)
		got := drain(p.b)
		if len(got) < 200 || len(got) > 300 || !slices.Equal(got, sent[:len(got)]) {
			t.Errorf("kept %d of 1000, want about 277, the first ones", len(got))
		}
		p.send(t, "there is room again")
		if got := drain(p.b); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		p.b.(interface{ SetReadBuffer(int) error }).SetReadBuffer(1 << 20)
		p.sendAll(t, 1000)
		time.Sleep(time.Second)
		if got := drain(p.b); len(got) != 1000 {
			t.Errorf("kept %d of 1000 in a larger buffer", len(got))
		}
		// A reader that keeps up loses nothing of more than the buffer holds.
		p.b.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4096)
		done := make(chan int)
		go func() { done <- len(drain(p.b)) }()
		p.sendAll(t, 1000)
		if got := <-done; got != 1000 {
			t.Errorf("a quick reader got %d of 1000", got)
		}
	})
}

// Datagrams on their way are bounded as well.
func TestPacketFlightIsBounded(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		p.SetLink("", "", memnet.Link{Latency: time.Second})
		p.b.(interface{ SetReadBuffer(int) error }).SetReadBuffer(1 << 30)
		p.sendAll(t, 5000)
		if got := len(drain(p.b)); got != 4096 {
			t.Errorf("got %d, want 4096", got)
		}
	})
}

func TestPacketFaults(t *testing.T) {
	const count = 2000
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		p.b.(interface{ SetReadBuffer(int) error }).SetReadBuffer(1 << 30)
		got := func(l memnet.Link) ([]string, []string) {
			p.SetLink("", "", l)
			sent := p.sendAll(t, count)
			return sent, drain(p.b)
		}
		if _, got := got(memnet.Link{Loss: 0.25}); len(got) < count*70/100 || len(got) > count*80/100 || !inSequence(got) {
			t.Errorf("loss 0.25: %d of %d arrive, in order: %t", len(got), count, inSequence(got))
		}
		if _, got := got(memnet.Link{Loss: 1}); len(got) != 0 {
			t.Errorf("loss 1: %d arrive", len(got))
		}
		if _, got := got(memnet.Link{Duplicate: 0.25}); len(got) < count*120/100 || len(got) > count*130/100 {
			t.Errorf("duplicate 0.25: %d of %d arrive", len(got), count)
		}
		sent, mixed := got(memnet.Link{Reorder: 0.25})
		if inSequence(mixed) {
			t.Error("reorder 0.25: in order")
		}
		slices.Sort(mixed)
		slices.Sort(sent)
		if !slices.Equal(mixed, sent) {
			t.Errorf("reorder loses or adds: %d of %d", len(mixed), count)
		}
	})
}

// inSequence reports whether numbers ascend.
func inSequence(numbers []string) bool {
	return slices.IsSortedFunc(numbers, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
}

// A hole takes what is on its way and what is sent into it; afterwards all is
// as before.
func TestPacketBlackHole(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		p.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond})
		for name, set := range faults(p.Network) {
			p.send(t, "arrived")
			time.Sleep(20 * time.Millisecond)
			p.send(t, "on its way")
			time.Sleep(5 * time.Millisecond)
			set(true)
			p.send(t, "into the hole")
			set(false)
			p.send(t, "afterwards")
			if got := drain(p.b); !slices.Equal(got, []string{"arrived", "afterwards"}) {
				t.Errorf("%s: got %q", name, got)
			}
		}
	})
}

// UDP tells nobody that nobody listens.
func TestPacketToNobody(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		p.send(t, "on its way when the socket closes")
		to := p.b.LocalAddr()
		p.b.Close()
		for _, addr := range []net.Addr{to, &net.UDPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 1}} {
			if _, err := p.a.WriteTo([]byte("x"), addr); err != nil {
				t.Errorf("%v: %v", addr, err)
			}
		}
		p.b = socket(t, p.Network, serverIP, ":9000") // the port is free at once
		if got := drain(p.b); len(got) != 0 {
			t.Errorf("a new socket got %q", got)
		}
		_, err := p.a.WriteTo(nil, &net.TCPAddr{})
		wantErr(t, err, "write", syscall.EINVAL)
	})
}

func TestPacketDeadlines(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		b := make([]byte, 10)
		start := time.Now()
		p.b.SetReadDeadline(start.Add(3 * time.Second))
		_, _, err := p.b.ReadFrom(b)
		wantErr(t, err, "read", os.ErrDeadlineExceeded)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("timed out after %v", took)
		}
		p.b.SetDeadline(time.Time{})
		read := after(func() error { _, _, err := p.b.ReadFrom(b); return err })
		time.Sleep(time.Second)
		p.b.SetDeadline(time.Unix(1, 0))
		wantErr(t, (<-read).err, "read", os.ErrDeadlineExceeded)
		_, err = p.b.WriteTo(b, p.a.LocalAddr())
		wantErr(t, err, "write", os.ErrDeadlineExceeded)
	})
}

func TestPacketClose(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		b := make([]byte, 10)
		first := after(func() error { _, _, err := p.a.ReadFrom(b); return err })
		second := after(func() error { _, _, err := p.a.ReadFrom(b); return err })
		time.Sleep(time.Second)
		p.a.Close()
		wantErr(t, (<-first).err, "read", net.ErrClosed)
		wantErr(t, (<-second).err, "read", net.ErrClosed)
		wantErr(t, p.a.Close(), "close", net.ErrClosed)
		wantErr(t, p.a.SetDeadline(time.Time{}), "set", net.ErrClosed)
		_, err := p.a.WriteTo(b, p.b.LocalAddr())
		wantErr(t, err, "write", net.ErrClosed)
	})
}

// A dialed socket knows its route and hears only its peer.
func TestPacketDial(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		c, err := p.Host(clientIP).DialContext(t.Context(), "udp", serverIP+":9000")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.LocalAddr().(*net.UDPAddr); got.IP.String() != clientIP || got.Port == 0 {
			t.Errorf("local address %v", got)
		}
		p.a.WriteTo([]byte("from a stranger"), c.LocalAddr())
		write(t, c, "ping")
		b := make([]byte, 100)
		n, from, err := p.b.ReadFrom(b)
		if err != nil || string(b[:n]) != "ping" || from.String() != c.LocalAddr().String() {
			t.Errorf("ReadFrom = %q, %v, %v", b[:n], from, err)
		}
		p.b.WriteTo([]byte("pong"), from)
		if n, err := c.Read(b); string(b[:n]) != "pong" || err != nil {
			t.Errorf("Read = %q, %v", b[:n], err)
		}
		_, err = c.(net.PacketConn).WriteTo(b, p.b.LocalAddr())
		wantErr(t, err, "write", net.ErrWriteToConnected)
	})
}

func TestPacketListenErrors(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		h := p.Host(serverIP)
		_, err := h.ListenPacket("udp", ":9000")
		wantErr(t, err, "listen", syscall.EADDRINUSE)
		_, err = h.ListenPacket("udp", "10.0.0.9:1")
		wantErr(t, err, "listen", syscall.EADDRNOTAVAIL)
		var unknown net.UnknownNetworkError
		if _, err = h.ListenPacket("tcp", ":1"); !errors.As(err, &unknown) {
			t.Errorf("network tcp: %v", err)
		}
		l, err := h.Listen("tcp", ":9000") // TCP has ports of its own
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
}

// A socket bound to loopback hears its own host only.
func TestPacketLoopback(t *testing.T) {
	packetBubble(t, 1, func(t *testing.T, p *packets) {
		local := socket(t, p.Network, serverIP, "127.0.0.1:1000")
		defer local.Close()
		p.b.WriteTo([]byte("inside"), local.LocalAddr())
		p.a.WriteTo([]byte("outside"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1000})
		if got := drain(local); !slices.Equal(got, []string{"inside"}) {
			t.Errorf("got %q", got)
		}
	})
}
