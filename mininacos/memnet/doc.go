// Package memnet is a network in memory: hosts with IP addresses, TCP and UDP
// sockets that behave as real ones do, and faults that a test turns on and off.
// Made for testing/synctest, where hours of timeouts pass in milliseconds and a
// run repeats exactly; it works in real time as well. It needs no privileges,
// no free ports and no cleaning up.
//
// # Use
//
// Hosts listen and dial with the signatures of package net, so they fit where
// an http.Transport, a net.Dialer or a net.ListenConfig is asked for:
//
//	func TestClientSurvivesABlackHole(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			n := memnet.New(1)
//			l, err := n.Host("10.0.0.1").Listen("tcp", ":8848")
//			if err != nil {
//				t.Fatal(err)
//			}
//			srv := &http.Server{Handler: handler}
//			go srv.Serve(l)
//			defer srv.Close()
//
//			tr := &http.Transport{DialContext: n.Host("10.0.0.2").DialContext}
//			defer tr.CloseIdleConnections()
//			// ... talk to http://10.0.0.1:8848/
//
//			n.BlackHole("10.0.0.1", true)
//			// ... requests hang until their contexts end
//			n.BlackHole("10.0.0.1", false)
//			// ... and go on
//		})
//	}
//
// # Faults
//
//   - [Network.BlackHole] and [Network.Partition]: everything vanishes. Dials
//     hang, connections stall and go on later, datagrams are lost.
//   - [Network.CutConns]: open connections are reset.
//   - [Network.SetLink]: latency and jitter; loss, duplicates and reordering of
//     datagrams.
//   - Nobody listens, or no such host exists: connection refused.
//
// # What is as on a real network
//
// Errors are *net.OpError with the system's errors in them: errors.Is finds
// syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed,
// os.ErrDeadlineExceeded and so on. A deadline holds for calls under way, and
// one that is past fails a Read even if data is there. Concurrent Writes do not
// mix. Connections have CloseWrite; Close with unread data sends a reset, and
// so does a peer that is closed when it is written to. A connection takes 64
// KiB ahead of its reader. Closing a listener resets what it had not accepted
// and frees the port at once. Datagrams hold up to 65507 bytes, are cut to the
// reader's buffer, and are lost when the receive buffer is full.
//
// # What is not
//
// Bandwidth has no limit: a latency is paid once however much is sent, and room
// in the window is known to the writer at once. Where a hole swallows a
// connection for ever, TCP gives up after minutes; here it waits on. The answer
// that a datagram found no socket (ICMP) is not sent. Sockets bound to all
// addresses show the address of their host, not [::]: what Addr returns can be
// dialed. A port belongs to one listener, whatever address it is bound to.
// Network.AddName makes names; nothing else resolves, but localhost.
//
// # Time and determinism
//
// A delivery is never instantaneous. Beyond the latency of the link it takes a
// drawn number of nanoseconds, about a microsecond at most where little goes on,
// so that no two deliveries of a network share an instant. In a bubble the
// goroutine that waits for one delivery therefore runs alone, until it blocks
// again, and the order of everything depends on the seed alone, even with
// several processors. What this takes from the program:
//
//   - make the network, and use it, in the bubble;
//   - make the hosts in the same order in every run;
//   - let the goroutines of one host not act at the same instant (as timers of
//     equal length would make them), or not mind their order. Those of different
//     hosts may.
//
// synctest.Wait lets no time pass, so it does not wait for a delivery:
// time.Sleep(time.Millisecond) does.
//
// # Cost
//
// The network starts no goroutines, at rest or under load: bytes lie in the
// receiver's queue with the instant at which they arrive, and the goroutine that
// reads them sleeps until then. HTTP over it costs about what it does over
// net.Pipe, nearly all of it net/http's own.
package memnet
