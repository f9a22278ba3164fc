package mininacos

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/nacos-naming/nacos/internal/wire"
)

// How long lists tell clients to keep them.
const (
	defaultCache = 10 * time.Second // 2.x, whether it pushes to them or not
	minCache     = time.Second
)

// mostLists bounds the encoded lists kept for one service; clients choose the keys.
const mostLists = 16

// listKey is what a list depends on, besides its service's state.
type listKey struct {
	clusters string // as asked for
	healthy  bool   // healthy ones only
}

// encodedList is a list as sent, but for the digits of lastRefTime between the two. Never changed after it was made.
type encodedList struct{ head, tail []byte }

// refMarker stands for lastRefTime while a list is encoded.
const refMarker = 1111111111111

// list is the answer of /instance/list. It is encoded once per change of the service. A service nobody knows has an empty
// list (S6).
func (r *registry) list(k serviceKey, key listKey) *encodedList {
	r.mu.Lock()
	defer r.mu.Unlock()
	svc := r.services[k]
	if svc == nil {
		return r.encodeList(k, key, nil, false)
	}
	if l := svc.lists[key]; l != nil {
		return l
	}
	hosts, protected := svc.selectLocked(key)
	l := r.encodeList(k, key, hosts, protected)
	if svc.lists == nil {
		svc.lists = make(map[listKey]*encodedList)
	}
	if len(svc.lists) >= mostLists {
		clear(svc.lists)
	}
	svc.lists[key] = l
	return l
}

// selectLocked picks the instances of a list: enabled, in one of the clusters, healthy if asked for; unless the share of
// healthy ones among those is not above the protection threshold: then they all come, as healthy. A threshold that was never
// set protects nothing; healthyOnly leaves healthy ones only, so it is reached at 1 alone (all measured).
func (s *service) selectLocked(key listKey) (hosts []wire.Host, protected bool) {
	var clusters map[string]bool
	if strings.TrimSpace(key.clusters) != "" {
		clusters = make(map[string]bool)
		for name := range strings.SplitSeq(key.clusters, ",") {
			clusters[name] = true
		}
	}
	hosts = make([]wire.Host, 0, len(s.instances))
	healthy := 0
	for in := range s.all() {
		if clusters != nil && !clusters[in.cluster] || key.healthy && !in.healthy {
			continue
		}
		h := s.viewLocked(in)
		if !h.Enabled {
			continue
		}
		if h.Healthy {
			healthy++
		}
		hosts = append(hosts, h)
	}
	if s.protect == nil || len(hosts) == 0 || float32(healthy)/float32(len(hosts)) > max(*s.protect, 0) {
		return hosts, false
	}
	for i := range hosts {
		hosts[i].Healthy = true
	}
	return hosts, true
}

func (r *registry) encodeList(k serviceKey, key listKey, hosts []wire.Host, protected bool) *encodedList {
	info := wire.ServiceInfo{
		Name:                     k.grouped(),
		Group:                    k.group,
		Clusters:                 key.clusters,
		CacheMillis:              r.cache.Milliseconds(),
		Hosts:                    hosts,
		HasHosts:                 true,
		LastRefTime:              refMarker,
		ReachProtectionThreshold: protected,
		Valid:                    true,
	}
	body := wire.AppendServiceInfo(make([]byte, 0, 256+512*len(hosts)), &info)
	marker := strconv.Itoa(refMarker)
	at := bytes.LastIndex(body, []byte(`"lastRefTime":`+marker)) + len(`"lastRefTime":`)
	return &encodedList{head: body[:at:at], tail: body[at+len(marker):]}
}

// reply is the list at that time of the server's clock.
func (l *encodedList) reply(now time.Time) reply {
	return reply{status: 200, contentType: typeJSON, body: [][]byte{l.head, strconv.AppendInt(nil, now.UnixMilli(), 10), l.tail}}
}
