package memnet_test

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// faults are the ways to block the path between the two hosts of a rig.
func faults(n *memnet.Network) map[string]func(bool) {
	return map[string]func(bool){
		"client":    func(on bool) { n.BlackHole(clientIP, on) },
		"server":    func(on bool) { n.BlackHole(serverIP, on) },
		"partition": func(on bool) { n.Partition(serverIP, clientIP, on) },
	}
}

// What is written to a stalled connection, or on its way, arrives once the path
// is free.
func TestBlackHoleStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond})
		r := newRig(t, n)
		for name, set := range faults(n) {
			write(t, r.client, "arrived,")
			time.Sleep(20 * time.Millisecond)
			write(t, r.client, "on its way,")
			time.Sleep(5 * time.Millisecond)
			set(true)
			write(t, r.client, "held")
			wantRead(t, r.server, "arrived,")
			r.server.SetReadDeadline(time.Now().Add(time.Minute))
			if err := readErr(r.server); err == nil {
				t.Errorf("%s: read through a hole", name)
			}
			r.server.SetReadDeadline(time.Time{})
			start := time.Now()
			set(false)
			set(false) // changes nothing
			wantRead(t, r.server, "on its way,held")
			about(t, name, time.Since(start), 10*time.Millisecond)
		}
		r.close(t)
	})
}

// A writer waits at the full window of a stalled connection, and goes on.
func TestBlackHoleFillsWindow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.BlackHole(serverIP, true)
		sent := after(func() error { _, err := r.client.Write(make([]byte, 100_000)); return err })
		go func() {
			time.Sleep(time.Second)
			r.BlackHole(serverIP, false)
		}()
		if _, err := io.ReadFull(r.server, make([]byte, 100_000)); err != nil {
			t.Error(err)
		}
		if got := <-sent; got.err != nil || got.took < time.Second {
			t.Errorf("write took %v, %v", got.took, got.err)
		}
	})
}

// A connection closed while the path is blocked: nothing of it arrives, and the
// other end learns of it when the path is free.
func TestBlackHoleClosedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.BlackHole(clientIP, true)
		write(t, r.client, "lost")
		r.client.Close()
		read := after(func() error { return readErr(r.server) })
		stuck := after(func() error { _, err := r.server.Write(make([]byte, 100_000)); return err })
		time.Sleep(time.Hour)
		select {
		case got := <-read:
			t.Fatalf("the other end learned of it: %v", got.err)
		default:
		}
		r.BlackHole(clientIP, false)
		wantErr(t, (<-read).err, "read", syscall.ECONNRESET)
		wantErr(t, (<-stuck).err, "write", syscall.ECONNRESET)
	})
}

// The same where the close was before the hole, the write in it.
func TestBlackHoleWriteToClosed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.client.Close()
		time.Sleep(time.Second)
		r.BlackHole(clientIP, true)
		stuck := after(func() error { _, err := r.server.Write(make([]byte, 100_000)); return err })
		time.Sleep(time.Second)
		r.BlackHole(clientIP, false)
		wantErr(t, (<-stuck).err, "write", syscall.EPIPE)
	})
}

// Half closed in a hole: the end arrives after the data.
func TestBlackHoleHalfClose(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.BlackHole(clientIP, true)
		write(t, r.client, "all")
		r.client.(interface{ CloseWrite() error }).CloseWrite()
		time.AfterFunc(time.Second, func() { r.BlackHole(clientIP, false) })
		if got, err := io.ReadAll(r.server); string(got) != "all" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// A partition concerns the two hosts only, and both faults may overlap.
func TestPartitionOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.Partition(clientIP, serverIP, true)
		l := listen(t, n, ":8848")
		c, err := n.Host("10.0.0.3").DialContext(t.Context(), "tcp", serverIP+":8848")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		s, _ := l.Accept()
		s.Close()

		n.BlackHole(serverIP, true)
		n.Partition(clientIP, serverIP, false)
		done := tryDial(t.Context(), n, serverIP+":8848")
		time.Sleep(time.Second)
		n.BlackHole(serverIP, false)
		about(t, "dial", (<-done).took, time.Second)
		l.Close()
	})
}

func TestCutConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond})
		r := newRig(t, n)
		write(t, r.client, "arrived")
		time.Sleep(time.Second)
		write(t, r.client, "on its way")
		for _, none := range [][2]string{{clientIP, clientIP}, {"10.0.0.3", ""}, {serverIP, "10.0.0.3"}} {
			if got := n.CutConns(none[0], none[1]); got != 0 {
				t.Errorf("CutConns(%v) = %d, want 0", none, got)
			}
		}
		read := after(func() error { return readErr(r.client) })
		if got := n.CutConns(clientIP, serverIP); got != 1 {
			t.Errorf("CutConns = %d, want 1", got)
		}
		if got := n.CutConns("", ""); got != 0 {
			t.Errorf("CutConns again = %d, want 0", got)
		}
		wantErr(t, (<-read).err, "read", syscall.ECONNRESET)
		wantRead(t, r.server, "arrived")
		wantErr(t, readErr(r.server), "read", syscall.ECONNRESET)
		for _, c := range []net.Conn{r.client, r.server} {
			_, err := c.Write([]byte("x"))
			wantErr(t, err, "write", syscall.ECONNRESET)
		}
		c2, s2 := r.connect(t)
		if got := n.CutConns(serverIP, ""); got != 1 {
			t.Errorf("CutConns = %d, want the new one", got)
		}
		c2.Close()
		s2.Close()
		r.close(t)
	})
}

// Cut works inside a hole too: both ends know.
func TestCutConnsInHole(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.BlackHole(clientIP, true)
		write(t, r.client, "lost")
		r.CutConns("", serverIP)
		time.Sleep(time.Second)
		wantErr(t, readErr(r.server), "read", syscall.ECONNRESET)
		wantErr(t, readErr(r.client), "read", syscall.ECONNRESET)
	})
}

// The most specific link holds, and it holds for open connections too.
func TestSetLinkMostSpecific(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for i, link := range [][2]string{{"", ""}, {"", serverIP}, {clientIP, serverIP}} {
			latency := time.Duration(i+1) * time.Second
			r.SetLink(link[0], link[1], memnet.Link{Latency: latency})
			start := time.Now()
			write(t, r.client, "x")
			wantRead(t, r.server, "x")
			about(t, strings.Join(link[:], "-"), time.Since(start), latency)
		}
	})
}

// Jitter makes deliveries late, and keeps their order.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(7)
		r := newRig(t, n)
		n.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond, Jitter: 10 * time.Millisecond})
		var least, most time.Duration = time.Hour, 0
		for range 200 {
			start := time.Now()
			write(t, r.client, "x")
			wantRead(t, r.server, "x")
			took := time.Since(start)
			least, most = min(least, took), max(most, took)
		}
		if least < 10*time.Millisecond || least > 11*time.Millisecond || most < 19*time.Millisecond || most > 21*time.Millisecond {
			t.Errorf("deliveries took %v to %v, want 10ms to 20ms", least, most)
		}
		var want strings.Builder
		for i := range 100 {
			part := strings.Repeat(string(rune('a'+i%26)), i)
			want.WriteString(part)
			write(t, r.client, part)
		}
		wantRead(t, r.server, want.String())
		r.close(t)
	})
}
