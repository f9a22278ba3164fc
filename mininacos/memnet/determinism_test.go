package memnet_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// trace is what happened on all hosts of a run, with the time.
type trace struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (tr *trace) add(start time.Time, format string, args ...any) {
	line := fmt.Sprintf("%v ", time.Since(start)) + fmt.Sprintf(format, args...)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, line)
}

// runScript lets 20 hosts, which all begin at one instant, talk to a server by
// TCP and UDP over a link with every fault, and returns the trace. Nothing in
// it is ordered but by the network.
func runScript(t *testing.T, seed uint64) []string {
	var tr trace
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(seed)
		n.SetLink("", "", memnet.Link{Latency: 5 * time.Millisecond, Jitter: 2 * time.Millisecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1})
		start := time.Now()
		l := listen(t, n, ":8848")
		udp := socket(t, n, serverIP, ":8848")
		var clients, servers sync.WaitGroup
		servers.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				tr.add(start, "accept %v", c.RemoteAddr())
				servers.Go(func() {
					defer c.Close()
					_, err := io.Copy(c, c)
					tr.add(start, "end %v %v", c.RemoteAddr(), err)
				})
			}
		})
		servers.Go(func() {
			b := make([]byte, 100)
			for {
				size, from, err := udp.ReadFrom(b)
				if err != nil {
					return
				}
				tr.add(start, "datagram %v %q", from, b[:size])
			}
		})
		hosts := make([]*memnet.Host, 20)
		for i := range hosts {
			hosts[i] = n.Host(fmt.Sprintf("10.0.1.%d", i+1))
		}
		for _, h := range hosts {
			clients.Go(func() { talk(t, &tr, start, h) })
		}
		time.Sleep(30 * time.Millisecond)
		n.BlackHole("10.0.1.3", true)
		n.Partition("10.0.1.4", serverIP, true)
		time.Sleep(30 * time.Millisecond)
		tr.add(start, "cut %d", n.CutConns("10.0.1.5", ""))
		n.BlackHole("10.0.1.3", false)
		n.Partition("10.0.1.4", serverIP, false)
		clients.Wait()
		time.Sleep(time.Second)
		l.Close()
		udp.Close()
		servers.Wait()
		if n.OpenConns() != 0 {
			t.Errorf("open connections = %d", n.OpenConns())
		}
	})
	return tr.lines
}

// talk is what one client does: the same on every host.
func talk(t *testing.T, tr *trace, start time.Time, h *memnet.Host) {
	c, err := h.DialContext(context.Background(), "tcp", serverIP+":8848")
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	p, err := h.ListenPacket("udp", ":0")
	if err != nil {
		t.Error(err)
		return
	}
	defer p.Close()
	b := make([]byte, 100)
	for i := range 10 {
		fmt.Fprintf(c, "round %d", i)
		p.WriteTo(fmt.Append(nil, i), &net.UDPAddr{IP: net.ParseIP(serverIP), Port: 8848})
		size, err := c.Read(b)
		tr.add(start, "%s read %q %v", h.IP(), b[:size], err)
		if err != nil {
			return
		}
	}
}

// The same seed gives the same trace, to the nanosecond and in every detail;
// another seed another one.
func TestRunsRepeat(t *testing.T) {
	first := runScript(t, 42)
	for range 5 {
		again := runScript(t, 42)
		for i := range min(len(first), len(again)) {
			if first[i] != again[i] {
				t.Fatalf("line %d differs:\n%s\n%s", i, first[i], again[i])
			}
		}
		if len(first) != len(again) {
			t.Fatalf("%d lines, then %d", len(first), len(again))
		}
	}
	if len(first) < 400 {
		t.Errorf("only %d lines", len(first))
	}
	if slices.Equal(first, runScript(t, 43)) {
		t.Error("another seed gives the same trace")
	}
	at := make(map[string]string)
	for _, line := range first {
		when, what, _ := strings.Cut(line, " ")
		if strings.HasPrefix(what, "cut") {
			continue
		}
		if before, ok := at[when]; ok {
			t.Errorf("two events at %s: %s; %s", when, before, what)
		}
		at[when] = what
	}
}

// stress sends random pieces both ways on several connections over a link of
// random latencies, with the path blocked now and then, and compares.
func stress(t *testing.T, seed uint64, conns, size int, unit time.Duration) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	n := memnet.New(seed)
	n.SetLink("", "", memnet.Link{Latency: unit, Jitter: 3 * unit})
	r := newRig(t, n)
	var all sync.WaitGroup
	for i := range conns {
		client, server := r.client, r.server
		if i > 0 {
			client, server = r.connect(t)
		}
		for j, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			from, to := ends[0], ends[1]
			text := make([]byte, size)
			rand.NewChaCha8([32]byte{byte(seed), byte(i), byte(j)}).Read(text)
			pieces := rand.New(rand.NewPCG(rnd.Uint64(), 2))
			all.Go(func() { sendPieces(t, pieces, from, text) })
			pieces2 := rand.New(rand.NewPCG(rnd.Uint64(), 3))
			all.Go(func() { readPieces(t, pieces2, to, text) })
		}
		defer client.Close()
		defer server.Close()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for on := true; ; on = !on {
		n.Partition(clientIP, serverIP, on)
		timer := time.NewTimer(time.Duration(rnd.Int64N(int64(20 * unit))))
		select {
		case <-timer.C:
			n.SetLink("", "", memnet.Link{Latency: time.Duration(rnd.Int64N(int64(3 * unit))), Jitter: unit})
			continue
		case <-done:
			timer.Stop()
		}
		break
	}
	n.Partition(clientIP, serverIP, false)
	r.listener.Close()
}

func sendPieces(t *testing.T, rnd *rand.Rand, c net.Conn, text []byte) {
	for len(text) > 0 {
		n, err := c.Write(text[:min(len(text), 1+rnd.IntN(5000))])
		if err != nil {
			t.Error(err)
			return
		}
		text = text[n:]
	}
	c.(interface{ CloseWrite() error }).CloseWrite()
}

func readPieces(t *testing.T, rnd *rand.Rand, c net.Conn, text []byte) {
	got := make([]byte, 0, len(text))
	for {
		b := make([]byte, 1+rnd.IntN(8000))
		if rnd.IntN(4) == 0 { // interrupted reads lose nothing
			c.SetReadDeadline(time.Now().Add(time.Microsecond))
		} else {
			c.SetReadDeadline(time.Time{})
		}
		n, err := c.Read(b)
		got = append(got, b[:n]...)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			continue
		}
		if err != nil {
			if err != io.EOF || string(got) != string(text) {
				t.Errorf("%d bytes arrive of %d, equal: %t, %v", len(got), len(text), string(got) == string(text), err)
			}
			return
		}
	}
}

func TestStressInBubble(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) { stress(t, seed, 4, 300_000, time.Millisecond) })
	}
}

func TestStressRealTime(t *testing.T) {
	leakcheck.Check(t)
	stress(t, 1, 4, 300_000, 20*time.Microsecond)
}
