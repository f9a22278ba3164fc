package memnet

import (
	"net"
	"net/netip"
)

// backlog is how many connections wait for Accept; more are refused.
const backlog = 4096

// arrival is a connection that waits for Accept from the instant at on.
type arrival struct {
	at   int64
	conn *conn
}

// listener is a TCP listener of a host, safe for concurrent use. Close frees
// its port at once and resets the connections that were not accepted.
type listener struct {
	host      *Host
	bound     netip.Addr // what it was bound to: unspecified, loopback or the host's address
	addr      *net.TCPAddr
	accepting chan struct{} // one Accept at a time

	// Network.mu guards what follows.
	waiting []arrival
	last    int64
	wait    waiter
	closed  bool
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	l.accepting <- struct{}{}
	l.host.net.mu.Lock()
	c := l.acceptLocked()
	l.host.net.mu.Unlock()
	<-l.accepting
	if c == nil {
		return nil, opError("accept", "tcp", nil, l.addr, net.ErrClosed)
	}
	return c, nil
}

// acceptLocked returns the next connection, nil once the listener is closed.
func (l *listener) acceptLocked() *conn {
	for !l.closed {
		now, until := l.host.net.now(), int64(never)
		if len(l.waiting) > 0 {
			first := l.waiting[0]
			if first.at <= now {
				l.waiting[0] = arrival{}
				l.waiting = l.waiting[1:]
				return first.conn
			}
			until = first.at
		}
		l.wait.waitLocked(&l.host.net.mu, now, until, nil)
	}
	return nil
}

// offerLocked lets c wait for Accept.
func (l *listener) offerLocked(c *conn) {
	now := l.host.net.now()
	l.last = c.instantLocked(now, l.last)
	l.waiting = append(l.waiting, arrival{l.last, c})
	l.wait.soonerLocked(now, l.waiting[0].at)
}

// Close ends the listener. The second Close returns net.ErrClosed.
func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return opError("close", "tcp", nil, l.addr, net.ErrClosed)
	}
	l.closed = true
	delete(l.host.listeners, l.addr.Port)
	for _, a := range l.waiting {
		a.conn.closeLocked(true)
	}
	l.waiting = nil
	l.wait.wakeLocked()
	return nil
}

// Addr returns the *net.TCPAddr to dial: the host's address where the listener
// is bound to all addresses.
func (l *listener) Addr() net.Addr { return l.addr }
