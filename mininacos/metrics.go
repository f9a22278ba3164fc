package mininacos

import (
	"strconv"
	"strings"

	"github.com/nacos-naming/nacos/internal/wire"
)

// metrics are the counters of /operator/metrics, in the real server's order. There are no subscribers and no connections
// here, and the machine's figures are not measured.
type metrics struct {
	Status                     string  `json:"status"`
	ServiceCount               int     `json:"serviceCount"`
	InstanceCount              int     `json:"instanceCount"`
	SubscribeCount             int     `json:"subscribeCount"`
	ResponsibleInstanceCount   int     `json:"responsibleInstanceCount"`
	ClientCount                int     `json:"clientCount"`
	ConnectionBasedClientCount int     `json:"connectionBasedClientCount"`
	EphemeralIPPortClientCount int     `json:"ephemeralIpPortClientCount"`
	PersistentIPPortClients    int     `json:"persistentIpPortClientCount"`
	ResponsibleClientCount     int     `json:"responsibleClientCount"`
	CPU                        decimal `json:"cpu"`
	Load                       decimal `json:"load"`
	Mem                        decimal `json:"mem"`
}

// decimal is written as Java writes a double.
type decimal float64

// MarshalJSON gives whole numbers their ".0".
func (d decimal) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(d), 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return []byte(text), nil
}

// count counts what the registry has, as seen by one of its servers. A client is an ip:port with an instance, as in 2.x.
func (r *registry) count(by *Server) metrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	type client struct {
		endpoint
		ephemeral bool
	}
	m := metrics{ServiceCount: len(r.services)}
	clients := make(map[client]bool) // whether by is responsible for one of its services
	for _, svc := range r.services {
		mine := r.responsibleLocked(svc.key) == by
		m.InstanceCount += len(svc.instances)
		if mine {
			m.ResponsibleInstanceCount += len(svc.instances)
		}
		for at := range svc.instances {
			c := client{at, svc.ephemeral}
			clients[c] = clients[c] || mine
		}
	}
	for c, mine := range clients {
		if c.ephemeral {
			m.EphemeralIPPortClientCount++
		} else {
			m.PersistentIPPortClients++
		}
		if mine {
			m.ResponsibleClientCount++
		}
	}
	m.ClientCount = len(clients)
	return m
}

// groupedNames are the grouped names of a namespace's services in order of creation.
func (r *registry) groupedNames(namespace string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.names[namespace]))
	for _, svc := range r.names[namespace] {
		names = append(names, wire.GroupedName(svc.key.group, svc.key.name))
	}
	return names
}
