package memnet

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// opError dresses err as package net does, so that errors.Is, Timeout and the
// text are those of a real socket. nil and io.EOF pass as they are.
func opError(op, network string, source, addr net.Addr, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if errno, ok := err.(syscall.Errno); ok {
		call := op
		switch op {
		case "dial":
			call = "connect"
		case "listen":
			call = "bind"
		}
		err = os.NewSyscallError(call, errno)
	}
	return &net.OpError{Op: op, Net: network, Source: source, Addr: addr, Err: err}
}

// family checks the network name and returns what it begins with, "tcp" or
// "udp", and which addresses it allows.
func family(network string) (kind string, allows func(netip.Addr) bool, err error) {
	kind = network
	allows = func(netip.Addr) bool { return true }
	if n := len(network); n == 4 {
		kind = network[:3]
		switch network[3] {
		case '4':
			allows = netip.Addr.Is4
		case '6':
			allows = netip.Addr.Is6
		default:
			kind = ""
		}
	}
	if kind != "tcp" && kind != "udp" {
		return "", nil, net.UnknownNetworkError(network)
	}
	return kind, allows, nil
}
