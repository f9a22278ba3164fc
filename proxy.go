package nacos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Version is the version of this library, which servers learn from the User-Agent of its requests.
const Version = "0.1.0"

const (
	// userAgent has a form by which servers decide whether a client understands pushes (P14).
	userAgent = "Nacos-Go-Client:v" + Version

	// maxPooledBytes is the size of the largest buffer that is kept for the next answer.
	maxPooledBytes = 1 << 20

	// renewConnections is how often new connections replace the former ones, so that none is pinned to an
	// address that its host name no longer has (P8).
	renewConnections = 5 * time.Minute

	// idleConnTimeout is below the 20 s or more after which a server (Tomcat) closes an idle connection: a
	// request other than GET that meets that close fails.
	idleConnTimeout = 15 * time.Second
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
	rnd     *random
	log     *zap.Logger
	conns   *connTracker // nil with a RoundTripper of the user's
	onBack  func()       // called when a server that failed answers again; it must not block
	own     atomic.Pointer[http.Transport]
	bodies  sync.Pool // *bytes.Buffer
	maxBody int64     // bytes of an answer's body
}

func newNamingProxy(c *config, servers *serverList, rnd *random, log *zap.Logger) *namingProxy {
	p := &namingProxy{cfg: c, servers: servers, rnd: rnd, log: log, onBack: func() {}, maxBody: 64 << 20}
	p.bodies.New = func() any { return new(bytes.Buffer) }
	if c.roundTripper == nil {
		p.conns = newConnTracker(c)
		p.own.Store(p.newTransport())
	}
	return p
}

func (p *namingProxy) newTransport() *http.Transport {
	c := p.cfg
	return &http.Transport{
		DialContext:            p.conns.dial,
		MaxIdleConns:           0,
		MaxIdleConnsPerHost:    c.beatWorkers + c.pollWorkers + firstQueryWorkers + deregisterWorkers,
		IdleConnTimeout:        idleConnTimeout,
		TLSHandshakeTimeout:    c.connectTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// transport is what sends the next request.
func (p *namingProxy) transport() http.RoundTripper {
	if p.conns == nil {
		return p.cfg.roundTripper
	}
	return p.own.Load()
}

// renew makes the next requests use new connections. A transport that gets no more requests closes its
// connections as they become idle, so those too go that are always in use when renew is called.
func (p *namingProxy) renew() {
	old := p.transport()
	if p.conns != nil {
		old = p.own.Swap(p.newTransport())
	}
	if c, ok := old.(interface{ CloseIdleConnections() }); ok {
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
			return p.giveUp(failure, order.full)
		}
		outcome := p.try(ctx, srv, r, failure)
		if r.limit > 0 {
			p.servers.release(srv)
		}
		switch outcome {
		case succeeded:
			if r.sticky {
				p.servers.stay(srv)
			}
			return nil
		case settled:
			if r.sticky && errors.Is(failure.Err, context.DeadlineExceeded) {
				// The caller's time is over, so srv gets no penalty, but the next poll goes elsewhere: else
				// callers who have less time than one try would never get past a server that is silent.
				p.servers.leave(srv)
			}
			return failure
		}
	}
}

// doOne asks the only server several times, with pauses that grow (P2).
func (p *namingProxy) doOne(ctx context.Context, r *request, failure *APIError) error {
	for i := range p.cfg.maxTries {
		srv := p.servers.rotation(false).next(r.api, 0, time.Now())
		if i > 0 {
			if err := pause(ctx, backoff(100*time.Millisecond, i-1, 2*time.Second, p.rnd)); err != nil {
				failure.interrupt(err)
				return failure
			}
		}
		switch p.try(ctx, srv, r, failure) {
		case succeeded:
			return nil
		case settled:
			return failure
		}
		if errors.Is(failure.Err, ErrAPIUnavailable) { // it will not have it in a moment either
			return failure
		}
	}
	return failure
}

// giveUp completes the error when nobody is left to ask. full: some server was left out because of the
// request's limit.
func (p *namingProxy) giveUp(failure *APIError, full bool) error {
	if full && (failure.Server == "" || errors.Is(failure.Err, ErrAPIUnavailable)) {
		*failure = APIError{API: failure.API, Subject: failure.Subject, Servers: failure.Servers, Retryable: true,
			Err: errors.New("every server holds as many requests of this kind as it may"), mayHaveActed: failure.mayHaveActed, unanswered: failure.unanswered}
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

// outcome is what one try means for the call.
type outcome int

const (
	succeeded outcome = iota
	settled           // failed, and no other server would answer otherwise
	unsettled         // failed, another server or another try may do better
)

// try sends r to srv. Unless it succeeded, failure tells why.
func (p *namingProxy) try(ctx context.Context, srv *server, r *request, failure *APIError) outcome {
	if err := ended(ctx); err != nil {
		failure.interrupt(err)
		return settled
	}
	tryCtx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	buf := p.bodies.Get().(*bytes.Buffer) // decode and judge copy what they keep
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
			return succeeded
		}
	}
	if !slices.Contains(failure.Servers, srv.host) {
		failure.Servers = append(failure.Servers, srv.host)
	}
	if err == nil && lacksAPI(status) {
		return p.noteLack(srv, r, failure, status, buf.Bytes())
	}
	failure.Server, failure.Status, failure.Code, failure.Message, failure.Err = srv.host, status, 0, "", err
	failure.Retryable = true
	switch {
	case ctx.Err() != nil: // the caller's end, not the server's fault
		failure.Status, failure.Err = 0, nil
		failure.noAnswer(err)
		failure.interrupt(ended(ctx))
		return settled
	case err != nil && status == 0:
		if tryCtx.Err() != nil {
			failure.Err = fmt.Errorf("no answer within %s: %w", r.timeout, context.DeadlineExceeded)
		}
		failure.noAnswer(err)
		p.noteFailure(srv, failure.Err)
		return unsettled
	case err != nil: // an answer that cannot be read
		failure.mayHaveActed = true
		return unsettled
	}
	return p.judge(srv, failure, status, location, buf.Bytes())
}

// judge completes failure for an answer with another status than 200 (P5, P7).
func (p *namingProxy) judge(srv *server, failure *APIError, status int, location string, body []byte) outcome {
	failure.Message, failure.Code = wire.ErrorMessage(body), wire.ErrorCode(body)
	if status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout {
		failure.mayHaveActed = true
		p.noteFailure(srv, fmt.Errorf("status %d", status))
		return unsettled
	}
	p.noteAnswer(srv)
	switch {
	case status == http.StatusTooManyRequests:
		return unsettled
	case status >= 500:
		// Servers answer wrong input with 500 and a text that has "caused:".
		refused := strings.Contains(failure.Message, "caused:")
		failure.Retryable = !refused
		failure.mayHaveActed = failure.mayHaveActed || !refused
		return unsettled
	case status >= 400:
		failure.Retryable = false
		return settled
	case status >= 300:
		failure.Err, failure.Retryable = redirectError(srv, location), false
		return unsettled
	default: // not from a Nacos server
		failure.mayHaveActed = true
		return unsettled
	}
}

// redirectError names the host that an answer points to, nothing else of its address (P15).
func redirectError(srv *server, location string) error {
	u, err := url.Parse(location)
	switch {
	case location == "":
		return nil
	case err != nil:
		return errors.New("redirect to a malformed address not followed")
	case u.Host == "":
		return fmt.Errorf("redirect to %s not followed", srv.host)
	default:
		return fmt.Errorf("redirect to %s not followed", u.Host)
	}
}

func lacksAPI(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone || status == http.StatusNotImplemented
}

// noteLack notes that srv does not have the API. That is the failure of the call only if no other server
// failed in another way: a server that is down may have it.
func (p *namingProxy) noteLack(srv *server, r *request, failure *APIError, status int, body []byte) outcome {
	p.noteAnswer(srv)
	p.servers.lacks(srv, r.api, time.Now())
	if failure.Server != "" && !errors.Is(failure.Err, ErrAPIUnavailable) {
		return unsettled
	}
	failure.Server, failure.Status, failure.Code, failure.Err = srv.host, status, wire.ErrorCode(body), ErrAPIUnavailable
	failure.Message = strings.TrimSpace(wire.ErrorMessage(body) + " (" + apiHint(r.api) + ")")
	return unsettled
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
	resp, err := p.transport().RoundTrip(req.WithContext(ctx))
	if err != nil {
		return 0, "", brief(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 100 { // net/http lets "HTTP/1.1 000" pass
		return 0, "", fmt.Errorf("the answer is not HTTP: status %d", resp.StatusCode)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, p.maxBody+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, "", ctx.Err()
	case err != nil:
		return resp.StatusCode, "", fmt.Errorf("body cannot be read beyond %d bytes: %w", n, err)
	case n > p.maxBody:
		return resp.StatusCode, "", fmt.Errorf("body is larger than %d bytes", p.maxBody)
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

// maxErrorText bounds the text of an error: net/http quotes what a server sent.
const maxErrorText = 256

// brief returns an error without what nobody needs to read: the whole address with its parameters, that a
// RoundTripper of the user's puts into a *url.Error, and the end of a very long text.
func brief(err error) error {
	if u, ok := err.(*url.Error); ok && u.Err != nil {
		err = u.Err
	}
	if len(err.Error()) > maxErrorText {
		return briefError{err}
	}
	return err
}

type briefError struct{ error }

func (e briefError) Error() string {
	return strings.ToValidUTF8(e.error.Error()[:maxErrorText], "") + "..."
}

func (e briefError) Unwrap() error { return e.error }
