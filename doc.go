// Package nacos is a client of the naming service of Nacos: it registers the instances of a service and
// keeps them alive with heartbeats, looks services up, and tells of their changes.
//
// A [NamingService], made by [NewNamingService], is the client of one namespace:
//
//	ns, err := nacos.NewNamingService(nacos.WithServers("10.0.0.1:8848", "10.0.0.2:8848"))
//	...
//	reg, err := ns.RegisterInstance(ctx, "orders", nacos.NewInstance("10.0.0.5", 8080))
//	one, err := ns.SelectOneHealthyInstance(ctx, "orders")
//	...
//	err = ns.Shutdown(ctx)
//
// # Registration
//
// What an application registers is what it wants the servers to have. A [Registration] keeps an ephemeral
// instance alive with heartbeats, 5 s apart unless the metadata or a server says otherwise, and registers it
// again, as a whole, when a server has lost it. A persistent instance (Ephemeral false) has no heartbeats:
// servers check it themselves and keep it until it is deregistered.
//
// # Lookup
//
// The first lookup of a service asks a server; from then on its list is kept in memory, queried again at the
// interval the server asks for (10 s by default), and answers at once. A lookup of a known service takes no
// lock and [NamingService.SelectOneHealthyInstance] and [Service.SelectOne] allocate nothing. Slices that
// lookups return are the caller's own.
//
// # Errors
//
// An [*ArgumentError] tells of a wrong argument, before anything is sent. An [*APIError] tells which servers
// were asked for what, how the last one answered and whether the same call may succeed later. A
// [*NoInstanceError] tells that a service is known but has no instance to choose. After Shutdown or Close,
// every call that may ask a server, and every subscription, fails with [ErrClosed].
//
// # Ending
//
// [NamingService.Shutdown] deregisters what the client registered; an application should call it when it is
// told to end (SIGTERM), so that nobody is sent to an instance that is gone. [NamingService.Close] only ends
// the client.
package nacos
