package memnet

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// The range of ports given to sockets that ask for none, as on Linux.
const (
	firstPort = 32768
	lastPort  = 60999
)

// Host is a machine of a Network: the place from which sockets listen and
// dial. Network.Host makes it; it is safe for concurrent use and needs no
// closing. It has one IP address, and the loopback addresses to itself.
type Host struct {
	net  *Network
	ip   netip.Addr
	lane int64 // see schedule

	// Network.mu guards what follows.
	listeners map[int]*listener
	clients   map[int]bool // local ports of connections dialed from here
	packets   map[int]*packetConn
	nextPort  int
}

func newHost(n *Network, ip netip.Addr, lane int64) *Host {
	return &Host{
		net: n, ip: ip, lane: lane,
		listeners: make(map[int]*listener),
		clients:   make(map[int]bool),
		packets:   make(map[int]*packetConn),
		nextPort:  firstPort,
	}
}

// IP returns the address of the host.
func (h *Host) IP() string { return h.ip.String() }

// Listen listens for TCP connections. network is "tcp", "tcp4" or "tcp6"; addr
// is a port with an address of the host, as in "10.0.0.1:8848", a loopback
// address (then only the host itself reaches the listener), or none for all of
// them, as in ":8848"; port 0 takes a free one. Unlike on a real machine, two
// listeners cannot share a port on different addresses.
//
// Errors are *net.OpError: EADDRINUSE, EADDRNOTAVAIL.
func (h *Host) Listen(network, addr string) (net.Listener, error) {
	l, err := h.listen(network, addr)
	if err != nil {
		return nil, opError("listen", network, nil, textAddr{network, addr}, err)
	}
	return l, nil
}

func (h *Host) listen(network, addr string) (*listener, error) {
	kind, allows, err := family(network)
	if err != nil || kind != "tcp" {
		return nil, net.UnknownNetworkError(network)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	bound, port, err := h.bindLocked(addr, allows)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = h.freePortLocked(func(p int) bool { return h.listeners[p] != nil || h.clients[p] })
		if port == 0 {
			return nil, syscall.EADDRINUSE
		}
	} else if h.listeners[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{
		host: h, bound: bound, accepting: make(chan struct{}, 1),
		addr: net.TCPAddrFromAddrPort(h.showLocked(bound, port)),
	}
	h.listeners[port] = l
	return l, nil
}

// bindLocked parses the address of a socket that is to be bound here.
func (h *Host) bindLocked(addr string, allows func(netip.Addr) bool) (bound netip.Addr, port int, err error) {
	name, port, err := splitAddr(addr)
	if err != nil {
		return netip.Addr{}, 0, err
	}
	if name == "" {
		return netip.IPv4Unspecified(), port, nil
	}
	addrs, err := h.resolveLocked(name)
	if err != nil {
		return netip.Addr{}, 0, err
	}
	for _, ip := range addrs {
		if ip.IsUnspecified() || allows(ip) && (ip == h.ip || ip.IsLoopback()) {
			return ip, port, nil
		}
	}
	return netip.Addr{}, 0, syscall.EADDRNOTAVAIL
}

// showLocked returns the address under which others know a socket.
func (h *Host) showLocked(bound netip.Addr, port int) netip.AddrPort {
	if bound.IsUnspecified() {
		bound = h.ip
	}
	return netip.AddrPortFrom(bound, uint16(port))
}

// freePortLocked returns a port that is not in use, 0 if all are. Ports are
// given out one after the other, so that one just freed is not met again soon.
func (h *Host) freePortLocked(used func(int) bool) int {
	for range lastPort - firstPort + 1 {
		p := h.nextPort
		h.nextPort++
		if h.nextPort > lastPort {
			h.nextPort = firstPort
		}
		if !used(p) {
			return p
		}
	}
	return 0
}

// releaseLocked frees the local port of a connection dialed from here.
func (h *Host) releaseLocked(port int) { delete(h.clients, port) }

// resolveLocked returns the addresses that a name stands for.
func (h *Host) resolveLocked(name string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	if name == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	if addrs := h.net.names[name]; len(addrs) > 0 {
		return addrs, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// realIP returns the address of the host that ip leads to from here.
func (h *Host) realIP(ip netip.Addr) netip.Addr {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return h.ip
	}
	return ip
}

// DialContext connects to addr, which is "host:port" with an IP address or a
// name (Network.AddName). network is "tcp", "udp", or one of these with 4 or
// 6. A TCP connection takes one latency of the link. Names are resolved anew;
// their addresses are tried in order, each with its share of the time that ctx
// leaves, as package net does it.
//
// Errors are *net.OpError: ECONNREFUSED where nobody listens or no such host
// exists; the context's error when it ended first, as it does where the way is
// blocked; a *net.DNSError for an unknown name.
func (h *Host) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	kind, allows, err := family(network)
	if err != nil {
		return nil, opError("dial", network, nil, textAddr{network, addr}, err)
	}
	name, port, err := splitAddr(addr)
	if err != nil {
		return nil, opError("dial", network, nil, textAddr{network, addr}, err)
	}
	if name == "" {
		name = "localhost"
	}
	h.net.mu.Lock()
	resolved, err := h.resolveLocked(name)
	h.net.mu.Unlock()
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	var addrs []netip.AddrPort
	for _, ip := range resolved {
		if allows(ip) {
			addrs = append(addrs, netip.AddrPortFrom(ip, uint16(port)))
		}
	}
	if len(addrs) == 0 {
		return nil, opError("dial", network, nil, textAddr{network, addr}, &net.AddrError{Err: "no suitable address", Addr: name})
	}
	if kind == "udp" {
		return h.dialUDP(network, addrs[0])
	}
	return h.dialTCP(ctx, addrs)
}

// textAddr is an address that was not understood.
type textAddr struct{ network, text string }

func (a textAddr) Network() string { return a.network }
func (a textAddr) String() string  { return a.text }

// splitAddr splits "host:port" with a number as port.
func splitAddr(addr string) (name string, port int, err error) {
	name, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	p, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, &net.AddrError{Err: "invalid port", Addr: addr}
	}
	return name, int(p), nil
}
