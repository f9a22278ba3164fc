// Command service is an HTTP service on Nacos as one runs in production: it registers itself under the
// address it serves at, finds others by name, and leaves in good order when it is told to end.
//
//	go run ./examples/service -nacos 127.0.0.1:8848 -name orders -listen :8080 -advertise 10.0.0.5
//
// GET /call?service=name asks an instance of the service of that name for /hello and returns what it says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nacos-naming/nacos"
)

func main() {
	servers := flag.String("nacos", "127.0.0.1:8848", "Nacos servers, joined by commas")
	name := flag.String("name", "orders", "name of this service")
	listen := flag.String("listen", "127.0.0.1:0", "address to serve at")
	advertise := flag.String("advertise", "", "IP address or host name under which others reach it; default that of -listen")
	flag.Parse()
	// The first signal ends ctx, and with it the service; a second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*servers, ","), *name, *listen, *advertise); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, servers []string, name, listen, advertise string) (err error) {
	ns, err := nacos.NewNamingService(nacos.WithServers(servers...))
	if err != nil {
		return err
	}
	defer ns.Close() // for the early returns; Shutdown below does more

	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	at := listener.Addr().(*net.TCPAddr)
	if advertise == "" {
		advertise = at.IP.String()
	}
	if ip := net.ParseIP(advertise); ip != nil && ip.IsUnspecified() {
		return errors.Join(fmt.Errorf("it serves at all addresses of this machine: -advertise must say which one others reach"), listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from %s at %s\n", name, listener.Addr())
	})
	mux.HandleFunc("GET /call", func(w http.ResponseWriter, r *http.Request) { call(ns, w, r) })
	server := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	// Serve first, then register: from now on others call. KeepTrying starts also while Nacos is down.
	if _, err := ns.RegisterInstance(ctx, name, nacos.NewInstance(advertise, at.Port), nacos.KeepTrying()); err != nil {
		return errors.Join(err, server.Close())
	}
	log.Printf("%s serves at %s", name, at)
	select {
	case err = <-served:
	case <-ctx.Done():
	}

	// Deregister first, then stop to serve: whoever has this instance in a list still gets an answer.
	ending, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	log.Print("shutting down")
	return errors.Join(err, ns.Shutdown(ending), server.Shutdown(ending))
}

// call asks an instance of a service.
func call(ns *nacos.NamingService, w http.ResponseWriter, r *http.Request) {
	one, err := ns.SelectOneHealthyInstance(r.Context(), r.FormValue("service"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+one.Addr()+"/hello", nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(w, resp.Body) // the caller sees where it ends
}
