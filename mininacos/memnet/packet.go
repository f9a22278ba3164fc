package memnet

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// maxDatagram is the largest payload of a datagram over IPv4, in bytes.
	maxDatagram = 65507
	// receiveBuffer is how much a socket holds for its reader, in bytes, and
	// datagramCost what each datagram takes there beside its payload: the
	// defaults of Linux.
	receiveBuffer = 212992
	datagramCost  = 768
	// maxFlight is how many datagrams may be on their way to one socket.
	maxFlight = 4096
	// overtaken is the least time by which a reordered datagram is late.
	overtaken = time.Millisecond
)

// datagram is one delivery to a packetConn.
type datagram struct {
	at      int64
	sender  netip.Addr // the host, where from is a loopback address
	from    netip.AddrPort
	payload []byte
}

// flow is what one socket sends to one address.
type flow struct {
	chances rand.PCG
	last    int64 // instant of the latest datagram that nothing may overtake
}

// packetConn is a UDP socket, safe for concurrent use: a net.PacketConn, and a
// net.Conn if DialContext made it. Close ends it and frees its port at once.
type packetConn struct {
	host    *Host
	bound   netip.Addr
	addr    *net.UDPAddr
	peer    netip.AddrPort // of a socket that was dialed
	reading chan struct{}  // one Read at a time

	// Network.mu guards what follows.
	flight                      []datagram // on their way, by instant
	queue                       []datagram // arrived
	queued, limit               int        // bytes in queue, and how many it may hold
	flows                       map[netip.AddrPort]*flow
	readWait                    waiter
	readDeadline, writeDeadline int64
	closed                      bool
}

// ListenPacket opens a UDP socket. network is "udp", "udp4" or "udp6"; addr is
// as for Listen. A datagram holds up to 65507 bytes (EMSGSIZE beyond); one
// that is longer than the buffer of its reader is cut. What finds the receive
// buffer of 208 KiB full, or nobody at its address, is lost. The socket has
// SetReadBuffer as *net.UDPConn has it.
//
// Errors are *net.OpError: EADDRINUSE, EADDRNOTAVAIL.
func (h *Host) ListenPacket(network, addr string) (net.PacketConn, error) {
	c, err := h.listenPacket(network, addr)
	if err != nil {
		return nil, opError("listen", network, nil, textAddr{network, addr}, err)
	}
	return c, nil
}

func (h *Host) listenPacket(network, addr string) (*packetConn, error) {
	kind, allows, err := family(network)
	if err != nil || kind != "udp" {
		return nil, net.UnknownNetworkError(network)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	bound, port, err := h.bindLocked(addr, allows)
	if err != nil {
		return nil, err
	}
	return h.openPacketLocked(bound, port)
}

// dialUDP opens a socket that sends to one address and hears only that one.
func (h *Host) dialUDP(network string, addr netip.AddrPort) (net.Conn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	bound := h.ip
	if addr.Addr().IsLoopback() {
		bound = addr.Addr()
	}
	c, err := h.openPacketLocked(bound, 0)
	if err != nil {
		return nil, opError("dial", network, nil, net.UDPAddrFromAddrPort(addr), err)
	}
	c.peer = addr
	return c, nil
}

func (h *Host) openPacketLocked(bound netip.Addr, port int) (*packetConn, error) {
	if port == 0 {
		port = h.freePortLocked(func(p int) bool { return h.packets[p] != nil })
	}
	if port == 0 || h.packets[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	c := &packetConn{
		host: h, bound: bound, reading: make(chan struct{}, 1),
		addr:         net.UDPAddrFromAddrPort(h.showLocked(bound, port)),
		limit:        receiveBuffer,
		flows:        make(map[netip.AddrPort]*flow),
		readDeadline: never, writeDeadline: never,
	}
	h.packets[port] = c
	return c, nil
}

// ReadFrom reads one datagram; what does not fit in b is lost.
func (c *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.read(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// Read reads one datagram as ReadFrom does.
func (c *packetConn) Read(b []byte) (int, error) {
	n, _, err := c.read(b)
	return n, err
}

func (c *packetConn) read(b []byte) (int, netip.AddrPort, error) {
	c.reading <- struct{}{}
	c.host.net.mu.Lock()
	d, err := c.nextLocked()
	c.host.net.mu.Unlock()
	<-c.reading
	if err != nil {
		return 0, netip.AddrPort{}, opError("read", "udp", c.addr, c.remote(), err)
	}
	return copy(b, d.payload), d.from, nil
}

// nextLocked waits for the next datagram and takes it.
func (c *packetConn) nextLocked() (datagram, error) {
	for {
		now := c.host.net.now()
		switch {
		case c.closed:
			return datagram{}, net.ErrClosed
		case now >= c.readDeadline:
			return datagram{}, os.ErrDeadlineExceeded
		}
		c.settleLocked(now)
		if len(c.queue) > 0 {
			d := c.queue[0]
			c.queue[0] = datagram{}
			c.queue = c.queue[1:]
			c.queued -= len(d.payload) + datagramCost
			return d, nil
		}
		until := c.readDeadline
		if len(c.flight) > 0 {
			until = min(until, c.flight[0].at)
		}
		c.readWait.waitLocked(&c.host.net.mu, now, until, nil)
	}
}

// settleLocked moves the datagrams that have arrived to the queue, and loses
// those that found it full. Only reading and settling change the queue, so
// doing this late gives what doing it at each arrival would.
func (c *packetConn) settleLocked(now int64) {
	n := 0
	for ; n < len(c.flight) && c.flight[n].at <= now; n++ {
		// As the kernel does: the one that goes beyond the limit still gets in.
		if c.queued <= c.limit {
			c.queue = append(c.queue, c.flight[n])
			c.queued += len(c.flight[n].payload) + datagramCost
		}
	}
	c.flight = slices.Delete(c.flight, 0, n)
}

// WriteTo sends a datagram to addr. It never waits.
func (c *packetConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	if c.peer.IsValid() {
		return 0, opError("write", "udp", c.addr, addr, net.ErrWriteToConnected)
	}
	to, err := packetAddr(addr)
	if err == nil {
		err = c.send(b, to)
	}
	if err != nil {
		return 0, opError("write", "udp", c.addr, addr, err)
	}
	return len(b), nil
}

// Write sends a datagram to the address that was dialed.
func (c *packetConn) Write(b []byte) (int, error) {
	if !c.peer.IsValid() {
		return 0, opError("write", "udp", c.addr, nil, syscall.EDESTADDRREQ)
	}
	if err := c.send(b, c.peer); err != nil {
		return 0, opError("write", "udp", c.addr, c.remote(), err)
	}
	return len(b), nil
}

// packetAddr returns the address a datagram goes to.
func packetAddr(addr net.Addr) (netip.AddrPort, error) {
	var to netip.AddrPort
	if u, ok := addr.(*net.UDPAddr); ok && u != nil {
		to = u.AddrPort()
	}
	if !to.Addr().IsValid() {
		return to, syscall.EINVAL
	}
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), nil
}

func (c *packetConn) send(b []byte, to netip.AddrPort) error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	switch {
	case c.closed:
		return net.ErrClosed
	case now >= c.writeDeadline:
		return os.ErrDeadlineExceeded
	case len(b) > maxDatagram:
		return syscall.EMSGSIZE
	}
	c.postLocked(now, b, to)
	return nil
}

// postLocked puts a datagram on its way, or loses it.
func (c *packetConn) postLocked(now int64, b []byte, to netip.AddrPort) {
	n := c.host.net
	f := c.flows[to]
	if f == nil {
		name := "udp " + c.addr.String() + " " + to.String()
		f = &flow{chances: newStream(n.seed, name, n.ordinalLocked(name))}
		c.flows[to] = f
	}
	ip := c.host.realIP(to.Addr())
	host, link := n.hosts[ip], n.linkLocked(c.host.ip, ip)
	// The chances are drawn whether somebody listens or not, so that the ones
	// of later datagrams do not depend on it.
	lost := chance(&f.chances, link.Loss)
	arrivals := []int64{f.arrival(c.host, now, link)}
	if chance(&f.chances, link.Duplicate) {
		arrivals = append(arrivals, f.arrival(c.host, now, link))
	}
	if lost || host == nil || n.blockedLocked(c.host.ip, ip) {
		return
	}
	d := datagram{sender: c.host.ip, from: c.sourceLocked(to.Addr()), payload: slices.Clone(b)}
	r := host.packets[int(to.Port())]
	if r == nil || !r.acceptsLocked(d.from, to.Addr()) {
		return
	}
	for _, d.at = range arrivals {
		r.receiveLocked(now, d)
	}
}

// arrival returns when a datagram arrives that is sent now. Datagrams keep
// their order, but one that is to be overtaken counts for nothing in it.
func (f *flow) arrival(from *Host, now int64, l Link) int64 {
	delay := int64(l.Latency) + jitter(&f.chances, l.Jitter)
	if chance(&f.chances, l.Reorder) {
		late := int64(max(l.Latency+l.Jitter, overtaken))
		return from.net.instant(from.lane, &f.chances, now+delay+late, 0)
	}
	f.last = from.net.instant(from.lane, &f.chances, now+delay, f.last)
	return f.last
}

// sourceLocked returns the address that a datagram to ip comes from.
func (c *packetConn) sourceLocked(ip netip.Addr) netip.AddrPort {
	source := c.bound
	if source.IsUnspecified() {
		source = c.host.ip
		if ip.IsLoopback() {
			source = ip
		}
	}
	return netip.AddrPortFrom(source, uint16(c.addr.Port))
}

// acceptsLocked reports whether the socket hears what comes from an address to
// the address ip.
func (c *packetConn) acceptsLocked(from netip.AddrPort, ip netip.Addr) bool {
	return (c.bound.IsUnspecified() || c.bound == ip) && (!c.peer.IsValid() || c.peer == from)
}

// receiveLocked lets a datagram be on its way to this socket.
func (c *packetConn) receiveLocked(now int64, d datagram) {
	c.settleLocked(now)
	if len(c.flight) == maxFlight {
		return
	}
	i, _ := slices.BinarySearchFunc(c.flight, d.at, func(e datagram, at int64) int { return int(e.at - at) })
	c.flight = slices.Insert(c.flight, i, d)
	c.readWait.soonerLocked(now, c.flight[0].at)
}

// loseLocked loses what is on its way from hosts that are blocked now.
func (c *packetConn) loseLocked(now int64) {
	c.settleLocked(now)
	c.flight = slices.DeleteFunc(c.flight, func(d datagram) bool { return c.host.net.blockedLocked(d.sender, c.host.ip) })
}

// Close closes the socket; what it holds is lost. The second Close returns
// net.ErrClosed.
func (c *packetConn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return opError("close", "udp", c.addr, c.remote(), net.ErrClosed)
	}
	c.closed = true
	delete(c.host.packets, c.addr.Port)
	c.flight, c.queue, c.flows = nil, nil, nil
	c.readWait.wakeLocked()
	return nil
}

// LocalAddr returns the *net.UDPAddr of the socket: with the host's address
// where it is bound to all addresses.
func (c *packetConn) LocalAddr() net.Addr { return c.addr }

// RemoteAddr returns the *net.UDPAddr that was dialed; nil if none was.
func (c *packetConn) RemoteAddr() net.Addr { return c.remote() }

// remote returns the address that was dialed, and a nil interface if none was.
func (c *packetConn) remote() net.Addr {
	if !c.peer.IsValid() {
		return nil
	}
	return net.UDPAddrFromAddrPort(c.peer)
}

// SetReadBuffer sets how many bytes wait for the reader, each datagram counting
// 768 bytes beside its payload. What arrives beyond is lost.
func (c *packetConn) SetReadBuffer(bytes int) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return opError("set", "udp", nil, c.addr, net.ErrClosed)
	}
	c.settleLocked(c.host.net.now())
	c.limit = bytes
	return nil
}

// SetDeadline sets both deadlines.
func (c *packetConn) SetDeadline(t time.Time) error { return c.setDeadline(t, true, true) }

// SetReadDeadline sets the deadline of present and later reads.
func (c *packetConn) SetReadDeadline(t time.Time) error { return c.setDeadline(t, true, false) }

// SetWriteDeadline sets the deadline of later writes. They never wait, so only
// a deadline that is past shows.
func (c *packetConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, false, true) }

func (c *packetConn) setDeadline(t time.Time, read, write bool) error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return opError("set", "udp", nil, c.addr, net.ErrClosed)
	}
	at := n.at(t)
	if read {
		c.readDeadline = at
		c.readWait.deadlineLocked(n.now(), at)
	}
	if write {
		c.writeDeadline = at
	}
	return nil
}
