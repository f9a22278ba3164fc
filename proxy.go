package nacos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Version is the version of this library, which servers learn from the User-Agent of its requests.
const Version = "0.1.0"

const (
	// userAgent has a form by which servers decide whether a client understands pushes (P14).
	userAgent    = "Nacos-Go-Client:v" + Version
	maxBodyBytes = 64 << 20

	// maxPooledBytes is the size of the largest buffer that is kept for the next answer.
	maxPooledBytes = 1 << 20

	// idleConnTimeout is shorter than the 20 s after which the web server of Nacos closes an idle
	// connection, so that a request does not meet its end.
	idleConnTimeout = 15 * time.Second

	// renewConnections is how often idle connections are closed, so that none is pinned to an address
	// that its host name no longer has (P8).
	renewConnections = 5 * time.Minute
)

type roundTripper = http.RoundTripper

// WithRoundTripper sets what sends the HTTP requests, default an http.Transport of the client's own. It
// must not follow redirects. Close calls its CloseIdleConnections if it has one.
func WithRoundTripper(rt http.RoundTripper) Option {
	return set("WithRoundTripper", rt != nil, "the RoundTripper is nil", func(c *config) { c.roundTripper = rt })
}

// namingProxy sends every request: it chooses the server, tries again, and tells what an error means.
// Safe for concurrent use; close ends it.
type namingProxy struct {
	cfg     *config
	servers *serverList
	rt      http.RoundTripper
	rnd     *random
	log     *zap.Logger
	conns   *connTracker // nil with a RoundTripper of the user's
	onBack  func()       // called when a server that failed answers again; it must not block
	bodies  sync.Pool    // *bytes.Buffer
}

func newNamingProxy(c *config, servers *serverList, rnd *random, log *zap.Logger) *namingProxy {
	p := &namingProxy{cfg: c, servers: servers, rt: c.roundTripper, rnd: rnd, log: log}
	p.bodies.New = func() any { return new(bytes.Buffer) }
	if p.rt == nil {
		p.conns = newConnTracker(c)
		idle := c.beatWorkers + c.pollWorkers + firstQueryWorkers + deregisterWorkers
		p.rt = &http.Transport{
			DialContext:         p.conns.dial,
			MaxIdleConns:        0,
			MaxIdleConnsPerHost: idle,
			IdleConnTimeout:     idleConnTimeout,
			TLSHandshakeTimeout: c.connectTimeout,
		}
	}
	return p
}

// renew closes idle connections.
func (p *namingProxy) renew() {
	if c, ok := p.rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// close ends every connection and waits until they are closed. No request may follow.
func (p *namingProxy) close() {
	p.renew()
	if p.conns != nil {
		p.conns.close()
	}
}

// request is one call of the API, to be sent to one server or several.
type request struct {
	api     string // name of the API in errors
	subject string // what the call is about, for errors
	method  string
	path    string        // below the context path
	query   string        // encoded parameters
	form    string        // encoded form body, "" for none
	sticky  bool          // polls: stay on one server until it fails (P1)
	limit   int           // most requests of this kind at one server when there are several, 0: any (B7)
	timeout time.Duration // of one try
	decode  func(body []byte) error
}

// do sends r until a server gave an answer that decode accepts or that no other server would change.
func (p *namingProxy) do(ctx context.Context, r *request) error {
	n := p.servers.size()
	if n == 0 {
		return &APIError{API: r.api, Subject: r.subject, Err: ErrNoServer}
	}
	failure := &APIError{API: r.api, Subject: r.subject}
	if n == 1 {
		return p.doOne(ctx, r, failure)
	}
	order := p.servers.rotation(r.sticky)
	for {
		srv := order.next(r.api, r.limit, time.Now())
		if srv == nil {
			return p.giveUp(failure)
		}
		over := p.try(ctx, srv, r, failure)
		if r.limit > 0 {
			p.servers.release(srv)
		}
		if over {
			if failure.Server != "" {
				return failure
			}
			if r.sticky {
				p.servers.stay(srv)
			}
			return nil
		}
	}
}

// doOne asks the only server several times, with pauses that grow (P2).
func (p *namingProxy) doOne(ctx context.Context, r *request, failure *APIError) error {
	for i := range p.cfg.maxTries {
		srv := p.servers.rotation(false).next(r.api, 0, time.Now())
		if srv == nil { // it has just said that it does not offer this
			return p.giveUp(failure)
		}
		if i > 0 {
			if err := pause(ctx, backoff(100*time.Millisecond, i-1, 2*time.Second, p.rnd)); err != nil {
				failure.Err = errors.Join(err, failure.Err)
				failure.Retryable = !errors.Is(err, ErrClosed)
				return failure
			}
		}
		if p.try(ctx, srv, r, failure) {
			if failure.Server != "" {
				return failure
			}
			return nil
		}
	}
	return p.giveUp(failure)
}

// giveUp completes the error when nobody is left to ask.
func (p *namingProxy) giveUp(failure *APIError) error {
	switch {
	case p.servers.allLack(failure.API, time.Now()):
		failure.Err, failure.Retryable = ErrAPIUnavailable, false
		failure.Message = strings.TrimSpace(failure.Message + " (" + apiHint(failure.API) + ")")
	case len(failure.Servers) == 0:
		failure.Err, failure.Retryable = errors.New("every server holds as many requests of this kind as it may"), true
	case errors.Is(failure.Err, ErrAPIUnavailable):
		failure.Err, failure.Retryable = errors.New("this server does not offer the API, and one that may has failed or is busy"), true
	}
	return failure
}

// apiHint tells what to switch on for an API that no server offers.
func apiHint(api string) string {
	kind := "client"
	if api == "update" { // the only administrative one
		kind = "admin"
	}
	return "Nacos 3.0 and 3.1 offer it with nacos.core.api.compatibility." + kind + ".enabled=true, 3.2 with the legacy API adapter; " +
		"a wrong context path (WithContextPath) looks the same"
}

// backoff doubles base with every attempt up to limit and takes away up to half of that at random.
func backoff(base time.Duration, attempt int, limit time.Duration, rnd *random) time.Duration {
	d := limit
	if attempt < 30 && base < limit>>attempt {
		d = base << attempt
	}
	return d - time.Duration(rnd.float()*float64(d)/2)
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// try sends r to srv. It returns true when that settles the call: failure stays without a server if it
// succeeded and is complete if no other server would answer otherwise.
func (p *namingProxy) try(ctx context.Context, srv *server, r *request, failure *APIError) (over bool) {
	if err := ended(ctx); err != nil {
		failure.Server, failure.Err, failure.Retryable = srv.host, err, !errors.Is(err, ErrClosed)
		return true
	}
	tryCtx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	buf := p.bodies.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= maxPooledBytes {
			p.bodies.Put(buf)
		}
	}()
	status, location, err := p.exchange(tryCtx, srv, r, buf)

	if err == nil && status == http.StatusOK {
		p.noteAnswer(srv)
		if err = r.decode(buf.Bytes()); err == nil {
			*failure = APIError{}
			return true
		}
	}
	if !slices.Contains(failure.Servers, srv.host) {
		failure.Servers = append(failure.Servers, srv.host)
	}
	failure.Server, failure.Status, failure.Code, failure.Message, failure.Err = srv.host, status, 0, "", err
	failure.Retryable = true
	switch {
	case ctx.Err() != nil: // the caller's end, not the server's fault
		failure.Err = ended(ctx)
		failure.Retryable = !errors.Is(failure.Err, ErrClosed)
		failure.noAnswer(err)
		return true
	case err != nil && status == 0:
		if tryCtx.Err() != nil {
			failure.Err = fmt.Errorf("no answer within %s: %w", r.timeout, context.DeadlineExceeded)
		}
		failure.noAnswer(err)
		p.noteFailure(srv, failure.Err)
		return false
	case err != nil: // an answer that cannot be read
		failure.mayHaveActed = true
		return false
	}
	return p.judge(srv, r, failure, status, location, buf.Bytes())
}

// judge completes failure for an answer with another status than 200 (P5, P7).
func (p *namingProxy) judge(srv *server, r *request, failure *APIError, status int, location string, body []byte) (over bool) {
	failure.Message, failure.Code = wire.ErrorMessage(body), wire.ErrorCode(body)
	switch {
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout:
		failure.mayHaveActed = true
		p.noteFailure(srv, fmt.Errorf("status %d", status))
		return false
	case status == http.StatusNotFound || status == http.StatusGone || status == http.StatusNotImplemented:
		p.noteAnswer(srv)
		p.servers.lacks(srv, r.api, time.Now())
		failure.Err = ErrAPIUnavailable // giveUp says whether that is final
		return false
	case status == http.StatusTooManyRequests:
		p.noteAnswer(srv)
		return false
	case status >= 500:
		p.noteAnswer(srv)
		// Servers answer wrong input with 500 and a text that begins with "caused:".
		refused := strings.Contains(failure.Message, "caused:")
		failure.Retryable = !refused
		failure.mayHaveActed = failure.mayHaveActed || !refused
		return false
	case status >= 300 && status < 400:
		p.noteAnswer(srv)
		target := "an unknown host"
		if u, err := url.Parse(location); err == nil && u.Host != "" {
			target = u.Host
		}
		failure.Err, failure.Retryable = fmt.Errorf("redirect to %s not followed", target), false
		return false
	default:
		p.noteAnswer(srv)
		failure.Retryable = false
		return true
	}
}

func (p *namingProxy) noteAnswer(srv *server) {
	if p.servers.answered(srv) {
		p.log.Warn("server is back", zap.String("server", srv.host))
		p.onBack()
	}
}

func (p *namingProxy) noteFailure(srv *server, err error) {
	if p.servers.failed(srv, time.Now().Add(p.cfg.serverPenalty)) {
		p.log.Warn("server failing", zap.String("server", srv.host), zap.Error(err))
	}
}

// exchange sends r to srv and reads the body of the answer. A status with an error: the body could not be
// read.
func (p *namingProxy) exchange(ctx context.Context, srv *server, r *request, buf *bytes.Buffer) (status int, location string, err error) {
	req := &http.Request{
		Method: r.method,
		URL:    &url.URL{Scheme: srv.scheme, Host: srv.host, Path: srv.path + r.path, RawQuery: r.query},
		Host:   srv.host,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"User-Agent":     {userAgent},
			"Client-Version": {userAgent},
			"Request-Module": {"Naming"},
			"Requestid":      {p.requestID()},
		},
	}
	if r.form != "" {
		req.Header["Content-Type"] = []string{"application/x-www-form-urlencoded;charset=UTF-8"}
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(r.form)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(r.form))
	}
	resp, err := p.rt.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, maxBodyBytes+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, "", ctx.Err()
	case err != nil:
		return resp.StatusCode, "", fmt.Errorf("body cut off after %d bytes: %w", n, err)
	case n > maxBodyBytes:
		return resp.StatusCode, "", fmt.Errorf("body is larger than %d bytes", maxBodyBytes)
	}
	return resp.StatusCode, resp.Header.Get("Location"), nil
}

// requestID is a random UUID (version 4) that servers write into their logs.
func (p *namingProxy) requestID() string {
	a, b := p.rnd.Uint64(), p.rnd.Uint64()
	a = a&^0xf000 | 0x4000
	b = b&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

// noAnswer notes that a try ended with err and no answer. Unless no connection came about, the server may have
// acted, or act yet.
func (e *APIError) noAnswer(err error) {
	if !isDialError(err) {
		e.mayHaveActed, e.unanswered = true, true
	}
}

// isDialError tells that no connection came about, so that nothing was asked of the server.
func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
