package mininacos

import "fmt"

// Cluster is several servers that share one state at once, as if what one is told reached the others in no time. Checks of
// a service's persistent instances are made by one server only, chosen by hash among those that are up. Whoever made it
// closes it. Safe for concurrent use.
type Cluster struct {
	// Servers are the cluster's servers; their number and order never change.
	Servers []*Server
}

// RunCluster starts n servers that share one state. Without WithNetworks they listen on free ports of one network. The
// caller closes the cluster.
func RunCluster(n int, opts ...Option) (*Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("mininacos: a cluster of %d servers", n)
	}
	cfg := newConfig(n, opts)
	reg := newRegistry(cfg)
	c := &Cluster{}
	for i := range n {
		c.Servers = append(c.Servers, newServer(reg, i, cfg))
	}
	reg.join(c.Servers)
	for _, s := range c.Servers {
		if err := s.start(); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// RunClusterT is RunCluster for a test: a failure to start ends the test, and the cluster is closed when the test ends.
func RunClusterT(t TB, n int, opts ...Option) *Cluster {
	t.Helper()
	c, err := RunCluster(n, opts...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(c.Close)
	return c
}

// Addrs are the servers' addresses, also of those that are stopped.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Close closes all servers and waits until nothing of the cluster runs. Idempotent.
func (c *Cluster) Close() {
	for _, s := range c.Servers {
		s.Close()
	}
}
