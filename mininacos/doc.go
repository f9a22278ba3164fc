// Package mininacos is a Nacos naming server to embed in tests and in programs for local development, as miniredis is to
// Redis: no installation, no Java, no configuration, and control over everything a test wants to happen.
//
//	srv := mininacos.RunT(t)                                       // closed at the end of the test
//	register(t, srv.Addr())                                        // whatever is under test talks HTTP to it
//	err := srv.ExpectInstances("", "", "orders", "10.0.0.5:8080")  // and its state is looked at beside the wire
//
// # What it serves
//
// The part of the v1 HTTP naming API that keeps instances and answers look-ups, below the context path /nacos:
//
//	POST, DELETE, PUT /v1/ns/instance    register, deregister, update
//	GET  /v1/ns/instance/list            the instances of a service
//	PUT  /v1/ns/instance/beat            heartbeats, with and without body
//	GET  /v1/ns/service/list             names of services, page by page
//	GET  /v1/ns/operator/metrics         is it up, and counters
//
// Status, content type and body equal those of Nacos 2.3.2, errors included; the tests replay captured requests of a real
// one. Everything else answers as a server that has no such API: 501 below /v1/ns, 404 elsewhere.
//
// Ephemeral instances turn unhealthy after 15 s without a beat and go after 30 s, looked at every 5 s; persistent ones are
// checked by TCP connects and only ever marked unhealthy. README.md has the whole list.
//
// # Faults
//
// [Server.Intercept] sees every request and may refuse, delay, hang, answer or garble it. [Server.Stop] and
// [Server.Restart] end and bring back a server on the same port, with or without what it knew. [RunCluster] runs several
// servers that share one state.
//
// # Virtual time
//
// With [WithNetwork] a server lives on any [Network]; with a host of package memnet it works inside a testing/synctest
// bubble, where half a minute of expiry takes no time. Nothing is global: servers never see each other unless they are one
// cluster.
package mininacos
