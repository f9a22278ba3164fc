package mininacos

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// benchServer is a server that is called without a network.
func benchServer(b *testing.B, instances int) *Server {
	srv := RunT(b)
	for i := range instances {
		in := NewInstance(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), 8080)
		in.Metadata = map[string]string{"version": "1.2", "zone": "hz"}
		require.NoError(b, srv.Register("", "", "s", in))
	}
	return srv
}

func serve(b *testing.B, srv *Server, method, target string) {
	w := httptest.NewRecorder()
	w.Body = nil
	srv.serve(context.Background(), w, httptest.NewRequest(method, "/nacos"+target, nil))
	if w.Code != http.StatusOK {
		b.Fatal(w.Code)
	}
}

func BenchmarkRegister(b *testing.B) {
	srv := benchServer(b, 0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		serve(b, srv, "POST", fmt.Sprintf("/v1/ns/instance?serviceName=DEFAULT_GROUP%%40%%40s&ip=10.0.%d.%d&port=8080&weight=1&enable=true&healthy=true&ephemeral=true&metadata=%%7B%%22a%%22%%3A%%22b%%22%%7D", i>>8&255, i&255))
	}
}

func BenchmarkBeat(b *testing.B) {
	srv := benchServer(b, 10000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		serve(b, srv, "PUT", fmt.Sprintf("/v1/ns/instance/beat?serviceName=DEFAULT_GROUP%%40%%40s&clusterName=DEFAULT&ip=10.0.%d.%d&port=8080", i%10000>>8, i&255))
	}
}

func BenchmarkListUnchanged(b *testing.B) {
	for _, n := range []int{10, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := benchServer(b, n)
			b.ReportAllocs()
			for b.Loop() {
				serve(b, srv, "GET", "/v1/ns/instance/list?serviceName=DEFAULT_GROUP%40%40s&clusters=&udpPort=0&healthyOnly=false")
			}
		})
	}
}

func BenchmarkListChanged10000(b *testing.B) {
	srv := benchServer(b, 10000)
	b.ReportAllocs()
	healthy := false
	for b.Loop() {
		require.NoError(b, srv.SetHealthy("", "", "s", "10.0.0.0", 8080, healthy))
		healthy = !healthy
		serve(b, srv, "GET", "/v1/ns/instance/list?serviceName=DEFAULT_GROUP%40%40s")
	}
}

func BenchmarkBeatCheck10000(b *testing.B) {
	srv := benchServer(b, 10000)
	svc := srv.reg.services[keyOf("", "", "s")]
	b.ReportAllocs()
	for b.Loop() {
		svc.checkBeats()
	}
}

// BenchmarkMemory reports the bytes an instance takes.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		srv := benchServer(b, 10000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10000, "B/instance")
		srv.Close()
	}
}

// BenchmarkBeatOverHTTP is a whole exchange over real sockets, one connection.
func BenchmarkBeatOverHTTP(b *testing.B) {
	srv := benchServer(b, 1)
	c := newClient(b, srv, realNetwork{})
	b.ReportAllocs()
	for b.Loop() {
		c.ok("PUT", "/v1/ns/instance/beat", "serviceName", "s", "ip", "10.0.0.0", "port", "8080")
	}
}
