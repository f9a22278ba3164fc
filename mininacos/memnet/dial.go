package memnet

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// leastShare is the least part of the time left that one of several addresses
// gets, as in package net.
const leastShare = 2 * time.Second

// dialer is a TCP dial under way. Network.mu guards it.
type dialer struct {
	from    *Host
	to      netip.Addr // of a host, which need not exist
	at      int64      // when the request arrives; never while the way is blocked
	chances rand.PCG
	wait    waiter
}

// dialTCP tries the addresses in order.
func (h *Host) dialTCP(ctx context.Context, addrs []netip.AddrPort) (net.Conn, error) {
	var first error
	for i, addr := range addrs {
		c, err := h.dialShare(ctx, addr, len(addrs)-i)
		if err == nil {
			return c, nil
		}
		err = opError("dial", "tcp", nil, net.TCPAddrFromAddrPort(addr), err)
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// dialShare dials within the share of the time left that one of left addresses
// gets.
func (h *Host) dialShare(ctx context.Context, addr netip.AddrPort, left int) (*conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		all := time.Until(deadline)
		share := min(max(all/time.Duration(left), leastShare), all)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return h.dialOne(ctx, addr)
}

// dialOne dials one address: it waits until the request has arrived, and
// then connects.
func (h *Host) dialOne(ctx context.Context, addr netip.AddrPort) (*conn, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	name := "tcp " + h.ip.String() + " " + addr.String()
	d := &dialer{from: h, to: h.realIP(addr.Addr()), chances: newStream(n.seed, name, n.ordinalLocked(name))}
	n.dialed++
	id := n.dialed
	n.dialers[id] = d
	defer delete(n.dialers, id)
	d.departLocked(n)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now := n.now()
		if now >= d.at {
			return h.connectLocked(d, addr)
		}
		d.wait.waitLocked(&n.mu, now, d.at, ctx.Done())
	}
}

// departLocked sends the request on its way.
func (d *dialer) departLocked(n *Network) {
	d.at = never
	if n.blockedLocked(d.from.ip, d.to) {
		return
	}
	now, l := n.now(), n.linkLocked(d.from.ip, d.to)
	d.at = n.instant(d.from.lane, &d.chances, now+int64(l.Latency)+jitter(&d.chances, l.Jitter), 0)
	d.wait.soonerLocked(now, d.at)
}

// connectLocked connects a request that has arrived to who listens there.
func (h *Host) connectLocked(d *dialer, addr netip.AddrPort) (*conn, error) {
	to := h.net.hosts[d.to]
	if to == nil {
		return nil, syscall.ECONNREFUSED
	}
	l := to.listeners[int(addr.Port())]
	if l == nil || len(l.waiting) >= backlog || !l.bound.IsUnspecified() && l.bound != addr.Addr() {
		return nil, syscall.ECONNREFUSED
	}
	port := h.freePortLocked(func(p int) bool { return h.listeners[p] != nil || h.clients[p] })
	if port == 0 {
		return nil, syscall.EADDRNOTAVAIL
	}
	local := h.ip
	if addr.Addr().IsLoopback() {
		local = addr.Addr()
	}
	p := h.net.newPairLocked(h, to,
		net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, uint16(port))),
		net.TCPAddrFromAddrPort(addr), d.chances)
	h.clients[port] = true
	l.offerLocked(p.server)
	return p.client, nil
}
