package memnet

import (
	"net/netip"
	"time"
)

// Link says how two hosts reach each other. The zero value is a perfect link
// of no latency (but for the nanoseconds that keep deliveries apart).
type Link struct {
	// Latency is how long a delivery takes in one direction, and how long it
	// takes to dial.
	Latency time.Duration
	// Jitter is the most by which a delivery is later than Latency; the delay
	// is drawn evenly from [0, Jitter]. It does not change the order.
	Jitter time.Duration
	// Loss, Duplicate and Reorder are the probabilities, 0 to 1, that a UDP
	// datagram gets lost, arrives twice, or is overtaken by those sent after
	// it. TCP hides all three.
	Loss, Duplicate, Reorder float64
}

// route is an unordered pair of addresses; the zero Addr stands for any host.
type route struct{ a, b netip.Addr }

func routeOf(a, b netip.Addr) route {
	if b.Less(a) {
		a, b = b, a
	}
	return route{a, b}
}

// addrOrAny parses an IP literal; "" is the zero Addr.
func addrOrAny(ip string) netip.Addr {
	if ip == "" {
		return netip.Addr{}
	}
	return mustAddr(ip)
}

// SetLink sets the link between the hosts a and b, in both directions; "" is
// any host, so SetLink(a, "", l) sets all links of a, and SetLink("", "", l)
// the default. The most specific one holds; of SetLink(a, "") and SetLink(b,
// "") the one with the lower address. What is on its way is not changed. It
// panics if an address is no IP literal.
func (n *Network) SetLink(a, b string, l Link) {
	r := routeOf(addrOrAny(a), addrOrAny(b))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[r] = l
	for _, p := range n.pairs {
		p.link = n.linkLocked(p.clientHost.ip, p.serverHost.ip)
	}
}

// linkLocked returns the link between two hosts.
func (n *Network) linkLocked(a, b netip.Addr) Link {
	if len(n.links) == 0 {
		return Link{}
	}
	r := routeOf(a, b)
	for _, r := range []route{r, routeOf(r.a, netip.Addr{}), routeOf(r.b, netip.Addr{}), {}} {
		if l, ok := n.links[r]; ok {
			return l
		}
	}
	return Link{}
}

// BlackHole lets everything to and from the host ip vanish, or, with on false,
// arrive again. Dials to and from it hang until their context ends or the hole
// is gone. Open connections stall: what is written, or on its way, is kept and
// arrives when the hole is gone, as TCP would send it again; if the writer
// closed its end meanwhile it is lost and the other end sees a reset then.
// Datagrams are lost, those on their way too. What a host sends to itself is
// not affected. It panics if ip is no IP literal.
func (n *Network) BlackHole(ip string, on bool) {
	addr := mustAddr(ip)
	n.mu.Lock()
	defer n.mu.Unlock()
	if on {
		n.holes[addr] = true
	} else {
		delete(n.holes, addr)
	}
	n.refreshLocked()
}

// Partition does what BlackHole does, between the hosts a and b only.
func (n *Network) Partition(a, b string, on bool) {
	r := routeOf(mustAddr(a), mustAddr(b))
	n.mu.Lock()
	defer n.mu.Unlock()
	if on {
		n.partitions[r] = true
	} else {
		delete(n.partitions, r)
	}
	n.refreshLocked()
}

// blockedLocked reports whether nothing passes between two hosts.
func (n *Network) blockedLocked(a, b netip.Addr) bool {
	if a == b || len(n.holes) == 0 && len(n.partitions) == 0 {
		return false
	}
	return n.holes[a] || n.holes[b] || n.partitions[routeOf(a, b)]
}

// refreshLocked applies what is blocked now to all that is under way.
func (n *Network) refreshLocked() {
	now := n.now()
	for _, p := range inOrder(n.pairs) {
		if blocked := n.blockedLocked(p.clientHost.ip, p.serverHost.ip); blocked != p.blocked {
			p.blocked = blocked
			p.client.stallLocked(now)
			p.server.stallLocked(now)
		}
	}
	for _, d := range inOrder(n.dialers) {
		if n.blockedLocked(d.from.ip, d.to) != (d.at == never) {
			d.departLocked(n)
		}
	}
	for _, h := range n.hosts {
		for _, c := range h.packets {
			c.loseLocked(now) // draws no chances: the order does not matter
		}
	}
}

// stallLocked holds back what is on its way to this end, or sends it on its
// way again, as the path has just been blocked or freed.
func (c *conn) stallLocked(now int64) {
	if c.pair.blocked {
		c.in.hold(now)
		return
	}
	if c.closed {
		// The other end wrote to a closed one without a chance to know.
		if c.in.size() > 0 {
			c.in.clear()
			c.peer.resetLocked(now, 2*int64(c.pair.link.Latency))
		}
		return
	}
	c.in.release(func(after int64) int64 { return c.peer.arrivalLocked(now, after) })
	if s := c.in.first(); s != nil {
		c.readWait.soonerLocked(now, s.at)
	}
	if at := c.in.resetAt; at != 0 {
		c.writeWait.soonerLocked(now, at)
	}
}

// CutConns resets the open TCP connections between the hosts a and b, "" being
// any, and returns their number. Both ends see ECONNRESET, after what had
// arrived before; what was on its way is lost. It panics if an address is no
// IP literal.
func (n *Network) CutConns(a, b string) int {
	x, y := addrOrAny(a), addrOrAny(b)
	is := func(want netip.Addr, h *Host) bool { return !want.IsValid() || want == h.ip }
	n.mu.Lock()
	defer n.mu.Unlock()
	now, count := n.now(), 0
	for _, p := range inOrder(n.pairs) {
		c, s := p.clientHost, p.serverHost
		if p.cut || !(is(x, c) && is(y, s) || is(x, s) && is(y, c)) {
			continue
		}
		p.cut = true
		p.client.cutLocked(now)
		p.server.cutLocked(now)
		count++
	}
	return count
}
