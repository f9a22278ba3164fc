package memnet

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"
)

// window is how many bytes a connection takes in one direction before its
// reader has read any, in bytes.
const window = 64 << 10

// pair is a TCP connection: what its two ends have in common. Network.mu
// guards it.
type pair struct {
	net            *Network
	id             uint64 // in the order of dialing
	client, server *conn
	clientHost     *Host
	serverHost     *Host
	link           Link
	blocked        bool // by a black hole or a partition
	open           int  // ends that are not closed
	cut            bool // by CutConns
}

// conn is one end of a TCP connection. It is a net.Conn with CloseWrite, safe
// for concurrent use. Close ends it; the other end learns of it one latency
// later.
type conn struct {
	net           *Network
	host          *Host
	pair          *pair
	peer          *conn
	local, remote *net.TCPAddr
	// One Read and one Write at a time, as in package net. Channels, because a
	// goroutine that waits for a mutex keeps a bubble's clock from moving.
	reading, writing chan struct{}

	// Network.mu guards what follows.
	in                          inbox
	chances                     rand.PCG // of what this end sends
	readWait, writeWait         waiter
	readDeadline, writeDeadline int64
	closed                      bool
	finSent                     bool
}

// newPairLocked makes an open connection of client to server.
func (n *Network) newPairLocked(client, server *Host, local, remote *net.TCPAddr, chances rand.PCG) *pair {
	n.dials++
	p := &pair{net: n, id: n.dials, clientHost: client, serverHost: server, open: 2}
	p.link = n.linkLocked(client.ip, server.ip)
	p.blocked = n.blockedLocked(client.ip, server.ip)
	end := func(host *Host, local, remote *net.TCPAddr) *conn {
		return &conn{
			net: n, host: host, pair: p, local: local, remote: remote,
			reading: make(chan struct{}, 1), writing: make(chan struct{}, 1),
			chances:      *rand.NewPCG(chances.Uint64(), chances.Uint64()),
			readDeadline: never, writeDeadline: never,
		}
	}
	p.client, p.server = end(client, local, remote), end(server, remote, local)
	p.client.peer, p.server.peer = p.server, p.client
	n.pairs[p.id] = p
	return p
}

// Read reads what has arrived, and waits if nothing has.
func (c *conn) Read(b []byte) (int, error) {
	c.reading <- struct{}{}
	c.net.mu.Lock()
	n, err := c.readLocked(b)
	c.net.mu.Unlock()
	<-c.reading
	if err != nil {
		return n, opError("read", "tcp", c.local, c.remote, err)
	}
	return n, nil
}

func (c *conn) readLocked(b []byte) (int, error) {
	for {
		now := c.net.now()
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case now >= c.readDeadline:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		}
		until := c.readDeadline
		if s := c.in.first(); s != nil {
			if s.at <= now {
				return c.takeLocked(s.kind, b, now)
			}
			until = min(until, s.at)
		}
		c.readWait.waitLocked(&c.net.mu, now, until, nil)
	}
}

// takeLocked reads from an inbox whose first segment, of kind k, has arrived.
// The end of the stream stays in the inbox: every later Read meets it again.
func (c *conn) takeLocked(k kind, b []byte, now int64) (int, error) {
	switch k {
	case fin:
		return 0, io.EOF
	case reset:
		return 0, syscall.ECONNRESET
	}
	n := c.in.read(b, now)
	// A writer that waits for room is let on when half the window is free, not
	// for every byte read; and at an instant of its own, as a delivery would be.
	if w := &c.peer.writeWait; w.waiting && c.in.size() <= window/2 {
		w.soonerLocked(now, c.instantLocked(now, 0))
	}
	return n, nil
}

// Write sends b. It waits while the window is full.
func (c *conn) Write(b []byte) (int, error) {
	c.writing <- struct{}{}
	c.net.mu.Lock()
	n, err := c.writeLocked(b)
	c.net.mu.Unlock()
	<-c.writing
	if err != nil {
		return n, opError("write", "tcp", c.local, c.remote, err)
	}
	return n, nil
}

func (c *conn) writeLocked(b []byte) (sent int, err error) {
	for {
		now := c.net.now()
		if err := c.writeErrLocked(now); err != nil {
			return sent, err
		}
		if len(b) == 0 {
			return sent, nil
		}
		if c.peer.closed && !c.pair.blocked {
			// The kernel takes the bytes; the answer to them is a reset.
			c.resetLocked(now, 2*int64(c.pair.link.Latency))
			return sent + len(b), nil
		}
		if room := window - c.peer.in.size(); room > 0 {
			n := min(room, len(b))
			c.sendLocked(now, data, b[:n])
			sent += n
			b = b[n:]
			continue
		}
		until := c.writeDeadline
		if at := c.in.resetAt; at != 0 {
			until = min(until, at)
		}
		c.writeWait.waitLocked(&c.net.mu, now, until, nil)
	}
}

// writeErrLocked tells why this end cannot write, nil if it can.
func (c *conn) writeErrLocked(now int64) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case now >= c.writeDeadline:
		return os.ErrDeadlineExceeded
	case c.finSent:
		return syscall.EPIPE
	case c.in.broken(now) && c.in.finished(now):
		return syscall.EPIPE
	case c.in.broken(now):
		return syscall.ECONNRESET
	}
	return nil
}

// sendLocked puts a segment on its way to the other end.
func (c *conn) sendLocked(now int64, k kind, b []byte) {
	if k == reset {
		c.peer.resetLocked(now, int64(c.pair.link.Latency))
		return
	}
	at := c.arrivalLocked(now, c.peer.in.last)
	c.peer.in.push(at, k, b)
	c.peer.readWait.soonerLocked(now, c.peer.in.first().at)
}

// arrivalLocked returns when what this end sends now arrives, after the
// instant after.
func (c *conn) arrivalLocked(now, after int64) int64 {
	if c.pair.blocked {
		return never
	}
	delay := int64(c.pair.link.Latency) + jitter(&c.chances, c.pair.link.Jitter)
	return c.instantLocked(now+delay, after)
}

// instantLocked returns an instant for what comes from this end.
func (c *conn) instantLocked(base, after int64) int64 {
	return c.net.instant(c.host.lane, &c.chances, base, after)
}

// resetLocked lets this end see a reset, after a delay, unless one is on its
// way already.
func (c *conn) resetLocked(now, delay int64) {
	if c.closed || c.in.resetAt != 0 {
		return
	}
	at := int64(never)
	if !c.pair.blocked {
		at = c.peer.instantLocked(now+delay, c.in.last)
	}
	c.in.push(at, reset, nil)
	c.readWait.soonerLocked(now, c.in.first().at)
	c.writeWait.soonerLocked(now, at)
}

// cutLocked breaks the connection at this end now: what is on its way is lost.
func (c *conn) cutLocked(now int64) {
	if c.closed {
		return
	}
	c.in.drop(now)
	if c.in.resetAt != 0 {
		return
	}
	at := c.peer.instantLocked(now, 0)
	c.in.push(at, reset, nil)
	c.readWait.soonerLocked(now, c.in.first().at)
	c.writeWait.soonerLocked(now, at)
}

// CloseWrite ends this end's stream: the other end reads io.EOF after what was
// written before. Reading goes on.
func (c *conn) CloseWrite() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return opError("close", "tcp", c.local, c.remote, net.ErrClosed)
	}
	if !c.finSent {
		c.finSent = true
		if !c.peer.closed && !c.in.broken(c.net.now()) {
			c.sendLocked(c.net.now(), fin, nil)
		}
		c.writeWait.wakeLocked()
	}
	return nil
}

// Close closes this end. What was written before still arrives, unless the
// path is blocked: then it is lost, and the other end sees a reset once the
// path is free. A Close with unread bytes resets the connection, as the kernel
// does. The second Close returns net.ErrClosed.
func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if !c.closeLocked(false) {
		return opError("close", "tcp", c.local, c.remote, net.ErrClosed)
	}
	return nil
}

// closeLocked closes this end, with a reset if abort is set or bytes are left
// unread. It reports whether the end was open.
func (c *conn) closeLocked(abort bool) bool {
	if c.closed {
		return false
	}
	now := c.net.now()
	if !c.peer.closed {
		switch {
		case c.pair.blocked:
			c.peer.in.drop(now)
			c.sendLocked(now, reset, nil)
		case abort || c.in.size() > 0:
			c.sendLocked(now, reset, nil)
		case !c.finSent && c.peer.in.resetAt == 0:
			c.sendLocked(now, fin, nil)
		}
	}
	c.closed = true
	c.in.clear()
	c.readWait.wakeLocked()
	c.writeWait.wakeLocked()
	if c == c.pair.client {
		c.pair.clientHost.releaseLocked(c.local.Port)
	}
	c.pair.open--
	if c.pair.open == 0 {
		delete(c.net.pairs, c.pair.id)
	}
	return true
}

// LocalAddr returns the *net.TCPAddr of this end.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the *net.TCPAddr of the other end.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadline(t, true, true) }

// SetReadDeadline sets the deadline of present and later Reads.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadline(t, true, false) }

// SetWriteDeadline sets the deadline of present and later Writes.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, false, true) }

func (c *conn) setDeadline(t time.Time, read, write bool) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return opError("set", "tcp", nil, c.local, net.ErrClosed)
	}
	now, at := c.net.now(), c.net.at(t)
	if read {
		c.readDeadline = at
		c.readWait.deadlineLocked(now, at)
	}
	if write {
		c.writeDeadline = at
		c.writeWait.deadlineLocked(now, at)
	}
	return nil
}
