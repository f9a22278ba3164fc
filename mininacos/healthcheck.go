package mininacos

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/timerpool"
)

// How persistent instances are checked (S4), with the constants of 2.3.2.
const (
	connectTimeout = 500 * time.Millisecond
	connectWorkers = 64
	flipAfter      = 3 // consecutive results that turn an instance over; a refused connection does so at once
	roundLower     = 2000 * time.Millisecond
	roundRandom    = 5000 * time.Millisecond
	roundMin       = 1000 * time.Millisecond
	roundMax       = 5000 * time.Millisecond
	roundFactor    = 0.75 // how much of the former interval stays; measured
	waitedLong     = 500 * time.Millisecond
)

// cluster is one cluster of a service with its health check task. Guarded by the registry's lock.
type cluster struct {
	size  int            // instances
	round *timerpool.Job // scheduled in persistent services only: others have nothing to check
	every time.Duration  // the present interval
}

// check is what is known of the health of a persistent instance.
type check struct {
	job      *timerpool.Job // one connect; nil for ephemeral instances
	inFlight bool
	since    time.Time // when the connect in flight was asked for
	by       *Server   // who makes it
	ok       int       // consecutive good results while unhealthy
	failed   int       // consecutive bad results while healthy
}

// newClusterLocked makes a cluster with its health check task: a round at an interval of its own, drawn between 2 s and 7 s
// as 2.x does (mostly low), that follows how fast the instances answer afterwards.
func (s *service) newClusterLocked(name string) *cluster {
	c := &cluster{}
	r := s.reg
	c.round = r.kinds.rounds.NewJob(func(context.Context) time.Time {
		r.guard("health check", s.key, func() { s.checkHealth(name) })
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.Now().Add(c.every)
	})
	if !s.ephemeral {
		c.every = roundLower + time.Duration(r.random.Int64N(1+r.random.Int64N(int64(roundRandom))))
		c.round.Schedule(time.Now().Add(c.every))
	}
	return c
}

// startCheckLocked gives a persistent instance its connect job; checkHealth makes it run.
func (s *service) startCheckLocked(in *instance) {
	if in.ephemeral {
		return
	}
	in.check.job = s.reg.kinds.connects.NewJob(func(ctx context.Context) time.Time {
		s.reg.guard("connect", s.key, func() { s.connect(ctx, in) })
		s.reg.mu.Lock()
		defer s.reg.mu.Unlock()
		in.check.inFlight = false // also after a panic
		return time.Time{}
	})
}

func (s *service) endCheckLocked(in *instance) {
	if in.check.job != nil {
		in.check.job.Stop()
	}
}

// checkHealth is a round: it asks for one connect to each instance of the cluster that has none in flight, by the server
// that is responsible for the service.
func (s *service) checkHealth(name string) {
	r := s.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.responsibleLocked(s.key)
	if by == nil {
		return
	}
	now := time.Now()
	for in := range s.all() {
		if in.cluster != name || in.check.job == nil {
			continue
		}
		if in.check.inFlight {
			r.log.Warn("check started before last one finished", zap.String("service", s.grouped), zap.Stringer("instance", in.endpoint))
			continue
		}
		in.check.inFlight, in.check.since, in.check.by = true, now, by
		in.check.job.Schedule(now)
	}
}

// connect makes one connect and takes note of how it went.
func (s *service) connect(ctx context.Context, in *instance) {
	r := s.reg
	r.mu.Lock()
	by, since := in.check.by, in.check.since
	r.mu.Unlock()
	start := time.Now()
	if waited := start.Sub(since); waited > waitedLong {
		r.log.Warn("check waited too long", zap.Duration("waited", waited), zap.String("service", s.grouped))
	}
	err := dialOnce(ctx, by.net, in.endpoint)
	if ctx.Err() != nil {
		return // closing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.instances[in.endpoint] != in {
		return // replaced or gone meanwhile
	}
	s.checkedLocked(in, err, time.Since(start))
}

// dialOnce connects and disconnects, without leaving the port in TIME_WAIT where there is one.
func dialOnce(ctx context.Context, n Network, at endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := n.DialContext(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return nil
}

// checkedLocked turns an instance over if the result says so, and adapts the interval of its cluster.
func (s *service) checkedLocked(in *instance, err error, took time.Duration) {
	c := &in.check
	refused := errors.Is(err, syscall.ECONNREFUSED)
	healthy, ok, failed := judge(in.healthy, c.ok, c.failed, err == nil, refused)
	c.ok, c.failed = ok, failed
	if healthy != in.healthy {
		in.healthy = healthy
		s.changedLocked()
		why := "tcp: ok"
		if err != nil {
			why = err.Error()
		}
		s.reg.logHealth(s, in, why)
	}
	if cl := s.clusters[in.cluster]; cl != nil {
		cl.every = adapt(cl.every, took, err, refused)
	}
}

// judge is the state machine of a check's results.
func judge(healthy bool, ok, failed int, good, refused bool) (nowHealthy bool, nowOK, nowFailed int) {
	switch {
	case good && healthy:
		return true, ok, 0
	case good:
		return ok+1 >= flipAfter, ok + 1, 0
	case !healthy:
		return false, 0, failed
	case refused:
		return false, 0, failed
	default:
		return failed+1 < flipAfter, 0, failed + 1
	}
}

// adapt is the next interval of a cluster's rounds: a moving average of how long connects take, where a refused or failed
// one counts as the longest and a timeout as twice the present interval (2.3.2: reEvaluateCheckRT).
func adapt(every, took time.Duration, err error, refused bool) time.Duration {
	switch {
	case err == nil:
	case !refused && took >= connectTimeout:
		took = 2 * every
	default:
		took = roundMax
	}
	next := time.Duration(roundFactor*float64(every) + (1-roundFactor)*float64(took))
	return min(max(next, roundMin), roundMax)
}
