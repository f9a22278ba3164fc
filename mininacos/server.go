package mininacos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// ErrClosed is returned by Restart once the server was closed.
var ErrClosed = errors.New("mininacos: closed")

// TB is what RunT needs of a testing.TB.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Server is one naming server. Made by Run, RunT or RunCluster, it serves until Stop or Close; whoever made it closes it.
// Safe for concurrent use.
type Server struct {
	reg    *registry
	index  int // among the servers of its cluster
	net    Network
	log    *zap.Logger
	offset atomic.Int64 // of lastRefTime, ns

	faults   faults
	requests requestLog

	turn chan struct{} // taken by Stop, Restart and Close, which wait: never a mutex over a wait

	mu     sync.Mutex // guards addr, run, closed
	addr   string
	run    *serving // nil while stopped
	closed bool
}

// Run starts a server, by default on a free port of 127.0.0.1. The caller closes it.
func Run(opts ...Option) (*Server, error) {
	c, err := RunCluster(1, opts...)
	if err != nil {
		return nil, err
	}
	return c.Servers[0], nil
}

// RunT is Run for a test: a failure to start ends the test, and the server is closed when the test ends.
func RunT(t TB, opts ...Option) *Server {
	t.Helper()
	return RunClusterT(t, 1, opts...).Servers[0]
}

func newServer(reg *registry, i int, cfg *config) *Server {
	s := &Server{
		reg:   reg,
		index: i,
		net:   cfg.network(i),
		log:   cfg.logger.Named("mininacos"),
		addr:  cfg.addr,
		turn:  make(chan struct{}, 1),
	}
	s.offset.Store(int64(cfg.offset))
	return s
}

// Addr is the address the server listens on, host:port, also while it is stopped.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL is where the server's APIs are: http://host:port/nacos.
func (s *Server) URL() string { return "http://" + s.Addr() + contextPath }

// SetClockOffset makes the clock the server puts into lastRefTime wrong by d from now on.
func (s *Server) SetClockOffset(d time.Duration) { s.offset.Store(int64(d)) }

// Memory says what a server knows when it comes back.
type Memory int

const (
	// KeepState brings a server back with all it knew. If none of its cluster was up meanwhile, ephemeral instances start
	// with a fresh beat, as those that a real server is sent by its peers.
	KeepState Memory = iota
	// LoseState brings a server back empty. In a cluster the state is shared, so it is lost only when no other server is
	// up at that moment; else the server learns it all from those.
	LoseState
)

// Stop ends the server as a crash would: the port is closed, all connections are cut at once, hung requests end. Checks go
// on if another server of its cluster is up. It returns when nothing of it runs. Restart brings it back.
func (s *Server) Stop() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.stop()
}

// Restart stops the server if it runs, and brings it back on the same address.
func (s *Server) Restart(m Memory) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return fmt.Errorf("mininacos: restart %s: %w", s.Addr(), ErrClosed)
	}
	s.stop()
	if m == LoseState {
		s.reg.forget()
	}
	return s.start()
}

// Close stops the server for good and waits until nothing of it runs. A cluster's checks end with its last server.
// Idempotent.
func (s *Server) Close() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	done := s.closed
	s.closed = true
	s.mu.Unlock()
	if done {
		return
	}
	s.stop()
	s.reg.release()
}

// start begins to serve; the caller has the turn.
func (s *Server) start() error {
	ln, err := s.net.Listen("tcp", s.Addr())
	if err != nil {
		return fmt.Errorf("mininacos: listen on %s: %w", s.Addr(), err)
	}
	run := newServing(s, ln)
	s.mu.Lock()
	s.addr = ln.Addr().String()
	s.run = run
	s.mu.Unlock()
	s.reg.serverUp(s)
	s.log.Info("server up", zap.String("addr", s.Addr()))
	run.start()
	return nil
}

// stop ends what start began; the caller has the turn.
func (s *Server) stop() {
	s.mu.Lock()
	run := s.run
	s.run = nil
	s.mu.Unlock()
	if run == nil {
		return
	}
	s.reg.serverDown(s)
	run.stop()
	s.log.Info("server down", zap.String("addr", s.Addr()))
}

// now is the server's own clock.
func (s *Server) now() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) }

// serving is the time between a start and a stop of a server: its listener, its connections, its goroutines.
type serving struct {
	http   *http.Server
	ln     net.Listener
	ctx    context.Context // ends with it; releases requests that wait
	cancel context.CancelFunc

	accept   chan struct{}  // closed when Serve has returned
	conns    sync.WaitGroup // connections net/http serves
	handlers sync.WaitGroup // requests, also those on a connection that was taken from net/http
}

func newServing(s *Server, ln net.Listener) *serving {
	r := &serving{ln: ln, accept: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			r.handlers.Add(1)
			defer r.handlers.Done()
			s.serve(r.ctx, w, req)
		}),
		ErrorLog:                     zap.NewStdLog(s.log.Named("http")),
		DisableGeneralOptionsHandler: true,
		ConnState: func(_ net.Conn, st http.ConnState) {
			switch st {
			case http.StateNew: // on the goroutine that accepts, so never after Serve has returned
				r.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				r.conns.Done()
			}
		},
	}
	return r
}

func (r *serving) start() {
	go func() {
		defer close(r.accept)
		_ = r.http.Serve(r.ln)
	}()
}

// stop cuts everything and waits.
func (r *serving) stop() {
	r.cancel()
	_ = r.http.Close()
	<-r.accept
	// Close misses a connection that was accepted but not yet known to it; it is known once Serve has returned.
	_ = r.http.Close()
	r.conns.Wait()
	r.handlers.Wait()
}
