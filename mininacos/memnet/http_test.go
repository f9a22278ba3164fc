package memnet_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

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

func TestHTTPKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		_, stop := serve(t, n.Host("10.0.0.1"), ":8848", echo)
		tr := &http.Transport{DialContext: n.Host("10.0.0.2").DialContext}
		for _, size := range []int{0, 10, 1 << 20, 100} {
			if err := exchange(&http.Client{Transport: tr}, "http://10.0.0.1:8848/", make([]byte, size)); err != nil {
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
	})
}

// BenchmarkHTTPExchange is one keep-alive GET over http.Transport and
// http.Server in virtual time with GOMAXPROCS=1.
func BenchmarkHTTPExchange(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.ReportAllocs()
	run := func() {
		n := memnet.New(1)
		_, stop := serve(b, n.Host("10.0.0.1"), ":8848", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
		tr := &http.Transport{DialContext: n.Host("10.0.0.2").DialContext}
		req, err := http.NewRequestWithContext(context.Background(), "GET", "http://10.0.0.1:8848/", nil)
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
	inBubble(run)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
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
