package nacos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/mininacos"
)

// P4: the text tells what was asked, of whom, and what came back, each only where it is known.
func TestAPIErrorText(t *testing.T) {
	leakcheck.Check(t)
	two := []string{"a:1", "b:1"}
	for want, e := range map[string]*APIError{
		"nacos: status: b:1: EOF":                                  {API: "status", Server: "b:1", Servers: two[1:], Err: io.EOF},
		"nacos: list g@@s: tried a:1, b:1; b:1: status 500":        {API: "list", Subject: "g@@s", Server: "b:1", Servers: two, Status: 500},
		"nacos: list g@@s: b:1: status 500: oh":                    {API: "list", Subject: "g@@s", Server: "b:1", Servers: two[1:], Status: 500, Message: "oh"},
		"nacos: list g@@s: b:1: status 500: code 7: oh":            {API: "list", Subject: "g@@s", Server: "b:1", Status: 500, Code: 7, Message: "oh"},
		"nacos: list g@@s: b:1: status 200: EOF":                   {API: "list", Subject: "g@@s", Server: "b:1", Status: 200, Err: io.EOF},
		"nacos: list g@@s: naming service is closed":               {API: "list", Subject: "g@@s", Err: ErrClosed},
		"nacos: list: tried a:1, b:1; b:1: context canceled: oh":   {API: "list", Server: "b:1", Servers: two, Err: context.Canceled, Message: "oh"},
		"nacos: list: the server does not offer this API: a hint":  {API: "list", Err: ErrAPIUnavailable, Message: "a hint"},
		"nacos: list: tried a:1, b:1; b:1: status 307: no, thanks": {API: "list", Server: "b:1", Servers: two, Status: 307, Err: errors.New("no, thanks")},
	} {
		assert.Equal(t, want, e.Error())
	}
}

// P4: an end of the context keeps the cause before it; only the client's own end forbids to try again.
func TestInterruptedError(t *testing.T) {
	leakcheck.Check(t)
	e := &APIError{API: "list", Server: "a:1", Err: syscall.ECONNREFUSED}
	e.interrupt(context.DeadlineExceeded)
	assert.ErrorIs(t, e, context.DeadlineExceeded)
	assert.ErrorIs(t, e, syscall.ECONNREFUSED)
	assert.Equal(t, "nacos: list: a:1: context deadline exceeded, after connection refused", e.Error())
	assert.True(t, e.Retryable)
	e = &APIError{API: "list"}
	e.interrupt(ErrClosed)
	assert.ErrorIs(t, e, ErrClosed)
	assert.False(t, e.Retryable)
}

// P4: the causes that callers ask for are found in the error of a call, with the servers in order.
func TestCausesAreFound(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		call := func(options ...Option) error {
			ns := w.client(append(options, WithRequestTimeout(time.Second))...)
			_, err := ns.RegisterInstance(w.ctx, "orders", NewInstance("10.9.0.1", 8080), Group("shop"))
			return err
		}
		remove := w.cluster.Intercept(always(mininacos.Fault{Hang: true}))
		err := call()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		failure := w.failure(err)
		assert.Equal(t, "register", failure.API)
		assert.Equal(t, "shop@@orders 10.9.0.1:8080", failure.Subject)
		assert.ElementsMatch(t, w.cluster.Addrs(), failure.Servers)
		assert.Equal(t, failure.Servers[1], failure.Server, "the last one's failure")
		assert.Equal(t, fmt.Sprintf("nacos: register shop@@orders 10.9.0.1:8080: tried %s, %s; %s: no answer within 1s: context deadline exceeded",
			failure.Servers[0], failure.Servers[1], failure.Server), err.Error())
		remove()

		remove = w.cluster.Intercept(always(mininacos.Fault{Status: 500, Body: `{"code":30000,"message":"disk is full"}`}))
		failure = w.failure(call())
		assert.Equal(t, 500, failure.Status)
		assert.Equal(t, 30000, failure.Code)
		assert.Equal(t, "disk is full", failure.Message)
		assert.Contains(t, failure.Error(), "status 500: code 30000: disk is full")
		remove()

		var unknown interface{ Temporary() bool }
		assert.ErrorAs(t, call(WithServers("nowhere", "nowhere-else")), &unknown, "a *net.DNSError")
		w.servers[0].Stop()
		w.servers[1].Stop()
		assert.ErrorIs(t, call(), syscall.ECONNREFUSED)
	})
}

// A wrong argument is shown with the rule it breaks, and without a colon too many.
func TestArgumentErrorText(t *testing.T) {
	leakcheck.Check(t)
	assert.Equal(t, `nacos: invalid ip "x y": must be good`, (&ArgumentError{Argument: "ip", Value: `"x y"`, Rule: "must be good"}).Error())
	assert.Equal(t, "nacos: invalid option X: must be good", (&ArgumentError{Argument: "option X", Rule: "must be good"}).Error())
}

// H12: the text tells why none can be chosen.
func TestNoInstanceErrorText(t *testing.T) {
	leakcheck.Check(t)
	for want, e := range map[string]*NoInstanceError{
		"nacos: no instance of g@@s: the list is empty (from poll)":                                                  {Service: "s", Group: "g", Source: SourcePoll},
		"nacos: no instance of g@@s in a, b: the list is empty (from poll)":                                          {Service: "s", Group: "g", Clusters: []string{"a", "b"}, Source: SourcePoll},
		"nacos: no instance of g@@s: all 3 are unhealthy (from poll)":                                                {Service: "s", Group: "g", Total: 3, Source: SourcePoll},
		"nacos: no instance of g@@s: none of 3 (2 healthy) is enabled, has weight and passes the filter (from poll)": {Service: "s", Group: "g", Total: 3, Healthy: 2, Source: SourcePoll},
	} {
		assert.Equal(t, want, e.Error())
	}
}
