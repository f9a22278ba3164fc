package nacos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// connTracker opens the connections and knows the open ones, so that close can end them and wait.
type connTracker struct {
	dialer  func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
	ctx     context.Context // ends dials at close
	cancel  context.CancelFunc
	wg      sync.WaitGroup // dials and open connections

	mu     sync.Mutex // guards conns and closed
	conns  map[*trackedConn]struct{}
	closed bool
}

func newConnTracker(c *config) *connTracker {
	t := &connTracker{dialer: c.dial, timeout: c.connectTimeout, conns: make(map[*trackedConn]struct{})}
	if t.dialer == nil {
		t.dialer = (&net.Dialer{}).DialContext
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *connTracker) dial(ctx context.Context, network, address string) (net.Conn, error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, ErrClosed
	}
	t.wg.Add(1)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	conn, err := t.dialer(ctx, network, address)
	if err != nil {
		t.wg.Done()
		if !isDialError(err) { // so a dialer of the user's need not know
			err = &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%s: %w", address, err)}
		}
		return nil, err
	}
	c := &trackedConn{Conn: conn, owner: t}
	t.mu.Lock()
	closed := t.closed // meanwhile, by a close that does not know this connection
	if !closed {
		t.conns[c] = struct{}{}
	}
	t.mu.Unlock()
	if closed {
		c.Close()
		return nil, ErrClosed
	}
	return c, nil
}

func (t *connTracker) close() {
	t.cancel()
	t.mu.Lock()
	t.closed = true
	open := make([]*trackedConn, 0, len(t.conns))
	for c := range t.conns {
		open = append(open, c)
	}
	t.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	t.wg.Wait()
}

// trackedConn tells its tracker when it is closed.
type trackedConn struct {
	net.Conn
	owner *connTracker
	once  sync.Once
}

// Close closes the connection; the first call counts.
func (c *trackedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.owner.mu.Lock()
		delete(c.owner.conns, c)
		c.owner.mu.Unlock()
		c.owner.wg.Done()
	})
	return err
}

// isDialError tells that no connection came about, so that nothing was asked of the server.
func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
