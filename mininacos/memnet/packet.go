package memnet

import (
	"net"
	"net/netip"
	"syscall"
)

func (h *Host) dialUDP(network string, addr netip.AddrPort) (net.Conn, error) {
	return nil, opError("dial", network, nil, net.UDPAddrFromAddrPort(addr), syscall.EPROTONOSUPPORT)
}
