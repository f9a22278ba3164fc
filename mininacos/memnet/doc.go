// Package memnet is a network in memory: hosts with IP addresses, TCP and UDP
// sockets with the behaviour of real ones, and faults that a test turns on and
// off.
package memnet
