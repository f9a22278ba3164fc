package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// echo answers with the body it got. It reads all of it first: a server that
// answers earlier closes the connection.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Write(body)
}

// serve starts an HTTP server on a host and returns how to end it.
func serve(t testing.TB, h *memnet.Host, addr string, handler http.HandlerFunc) (*http.Server, func()) {
	t.Helper()
	l, err := h.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); err != http.ErrServerClosed {
			t.Errorf("serve: %v", err)
		}
	}()
	return s, func() {
		s.Close()
		<-done
	}
}

// exchange sends body and wants it back.
func exchange(c *http.Client, url string, body []byte) error {
	resp, err := c.Post(url, "text/plain", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, body) {
		return fmt.Errorf("got %d bytes, want %d", len(got), len(body))
	}
	return nil
}

// transport returns an HTTP transport that dials from the client's host.
func transport(n *memnet.Network) *http.Transport {
	return &http.Transport{DialContext: n.Host(clientIP).DialContext}
}

const url = "http://" + serverIP + ":8848/"

// keepAlive makes exchanges of several sizes over one connection.
func keepAlive(t *testing.T) {
	n := memnet.New(1)
	_, stop := serve(t, n.Host(serverIP), ":8848", echo)
	tr := transport(n)
	for _, size := range []int{0, 10, 1 << 20, 100} {
		if err := exchange(&http.Client{Transport: tr}, url, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if n.Dials() != 1 {
		t.Errorf("dials = %d, want 1 kept alive", n.Dials())
	}
	tr.CloseIdleConnections()
	stop()
	if n.OpenConns() != 0 {
		t.Errorf("open connections = %d", n.OpenConns())
	}
}

func TestHTTPKeepAlive(t *testing.T) { synctest.Test(t, keepAlive) }

func TestHTTPKeepAliveRealTime(t *testing.T) {
	leakcheck.Check(t)
	keepAlive(t)
}

// Many clients at once, each exchange taking two latencies.
func TestHTTPConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		n.SetLink("", "", memnet.Link{Latency: 10 * time.Millisecond, Jitter: 10 * time.Millisecond})
		_, stop := serve(t, n.Host(serverIP), ":8848", echo)
		tr := transport(n)
		tr.MaxIdleConnsPerHost = 100
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for j := range 20 {
					if err := exchange(&http.Client{Transport: tr}, url, bytes.Repeat([]byte{byte(i)}, i*j*50)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		tr.CloseIdleConnections()
		stop()
	})
}

// A request that is cancelled closes its connection, and the handler learns of
// it.
func TestHTTPCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		gone := make(chan time.Time, 1)
		_, stop := serve(t, n.Host(serverIP), ":8848", func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			gone <- time.Now()
		})
		tr := transport(n)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		start := time.Now()
		if _, err := tr.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		about(t, "request", time.Since(start), time.Second)
		about(t, "cancel", (<-gone).Sub(start), time.Second)
		stop()
		if n.OpenConns() != 0 {
			t.Errorf("open connections = %d", n.OpenConns())
		}
	})
}

// Shutdown waits for the exchange under way; Close breaks it. Either way the
// port is free for the next server.
func TestHTTPServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		slow := func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(10 * time.Second):
				io.WriteString(w, "done")
			case <-r.Context().Done():
			}
		}
		tr := transport(n)
		get := func() error {
			resp, err := (&http.Client{Transport: tr}).Get(url)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			return err
		}
		s, stop := serve(t, n.Host(serverIP), ":8848", slow)
		under := after(get)
		time.Sleep(time.Second)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-under; got.err != nil || got.took < 10*time.Second {
			t.Errorf("Shutdown: the exchange took %v, %v", got.took, got.err)
		}
		stop()
		if err := get(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after Shutdown: %v", err)
		}

		_, stop = serve(t, n.Host(serverIP), ":8848", slow)
		under = after(get)
		time.Sleep(time.Second)
		stop()
		if got := <-under; got.err == nil || got.took > 2*time.Second {
			t.Errorf("Close: the exchange took %v, %v", got.took, got.err)
		}

		_, stop = serve(t, n.Host(serverIP), ":8848", echo)
		if err := get(); err != nil {
			t.Errorf("the next server: %v", err)
		}
		tr.CloseIdleConnections()
		stop()
		if n.OpenConns() != 0 {
			t.Errorf("open connections = %d", n.OpenConns())
		}
	})
}

// A kept-alive connection that is cut costs a request nothing: the transport
// dials again.
func TestHTTPCutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		_, stop := serve(t, n.Host(serverIP), ":8848", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
		tr := transport(n)
		for i := range 3 {
			resp, err := (&http.Client{Transport: tr}).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if cut := n.CutConns(clientIP, serverIP); cut != 1 {
				t.Errorf("exchange %d: cut %d connections", i, cut)
			}
		}
		if n.Dials() != 3 {
			t.Errorf("dials = %d, want 3", n.Dials())
		}
		tr.CloseIdleConnections()
		stop()
	})
}

// BenchmarkHTTPExchange is one keep-alive GET over http.Transport and
// http.Server, in virtual time and in real time, with GOMAXPROCS=1.
func BenchmarkHTTPExchange(b *testing.B) {
	run := func(b *testing.B) {
		n := memnet.New(1)
		_, stop := serve(b, n.Host(serverIP), ":8848", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
		tr := transport(n)
		req, err := http.NewRequestWithContext(context.Background(), "GET", url, nil)
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			resp, err := tr.RoundTrip(req)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		tr.CloseIdleConnections()
		stop()
	}
	for name, f := range map[string]func(*testing.B){
		"bubble": func(b *testing.B) { inBubble(func() { run(b) }) },
		"real":   run,
	} {
		b.Run(name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			b.ReportAllocs()
			f(b)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
		})
	}
}

// inBubble runs f in a bubble, once; synctest.Test wants a *testing.T, which a
// benchmark has not, and RunTests repeats a test as -count says.
func inBubble(f func()) {
	once := sync.OnceFunc(f)
	testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "bubble",
		F:    func(t *testing.T) { synctest.Test(t, func(*testing.T) { once() }) },
	}})
}
