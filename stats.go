package nacos

// Stats are counters and gauges of a NamingService since it was made. Counters only grow.
type Stats struct {
	Registrations int // gauge: instances that are registered, or wanted to be
	Beats         int // gauge: of these, ephemeral ones with heartbeats (Java's dom2BeatSize)
	Services      int // gauge: lists kept in memory (Java's serviceInfoMapSize)
	Subscriptions int // gauge

	BeatsSent   uint64 // heartbeats that were answered or failed, each counted once however often it was tried
	BeatsFailed uint64 // of these, those that failed: no server answered, or not as it should
	Renewals    uint64 // registrations made again because servers had lost them

	Queries          uint64 // requests for a list
	QueriesFailed    uint64 // of these, those that failed, likewise
	QueriesUnchanged uint64 // of these, answers that differed in nothing but their time and so were not decoded

	Servers []ServerStats
}

// Stats returns the counters. It takes time in proportion to the number of registrations and services.
func (ns *NamingService) Stats() Stats {
	s := Stats{
		Registrations: len(ns.beats.registrations()),
		Beats:         ns.beats.beating(),
		BeatsSent:     ns.beats.sent.Load(), BeatsFailed: ns.beats.failed.Load(), Renewals: ns.beats.renewals.Load(),
		Queries: ns.hosts.queries.Load(), QueriesFailed: ns.hosts.failures.Load(), QueriesUnchanged: ns.hosts.unchanged.Load(),
		Servers: ns.servers.stats(),
	}
	ns.hosts.each(func(e *hostEntry) {
		s.Services++
		s.Subscriptions += e.topic.listeners()
	})
	return s
}
