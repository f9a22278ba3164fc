package wire

import (
	"bytes"
	"slices"
)

// DecodeServiceInfo decodes an instance list. The Fingerprint recognizes later bodies that differ from this one only in
// the digits of lastRefTime; it is zero when the body has no such digits.
//
// A host takes the server's defaults for what is absent: weight 1, healthy, enabled and ephemeral, cluster DEFAULT; a
// "valid" that 1.x sends counts for a healthy that it does not. One bad host fails the whole body (rule H5): without ip, a port
// outside of 0..65535, a negative weight, or a field of another type; a weight that is no number is none, for 2.3.2
// takes and lists it ("NaN"). So does the absence of a name fail it, for then it is another JSON. Hosts that are equal in cluster, service, id generator or metadata share these.
func DecodeServiceInfo(body []byte) (*ServiceInfo, Fingerprint, error) {
	d := listDecoder{scanner: newScanner("instance list", body)}
	info := &ServiceInfo{Valid: true}
	d.begin()
	nameAt := d.pos
	if d.openObject("") {
		for first := true; ; first = false {
			key, ok := d.key(first)
			if !ok {
				break
			}
			d.infoField(info, string(key))
		}
	}
	if d.err == nil && info.Name == "" {
		d.fail(KindMissingField, "name", nameAt)
	}
	if err := d.end(); err != nil {
		return nil, Fingerprint{}, err
	}
	return info, newFingerprint(body, d.timeAt), nil
}

// listDecoder decodes one instance list.
type listDecoder struct {
	*scanner
	timeAt int // offset of lastRefTime's digits, 0 if there are none

	names interner // of clusters, services and id generators
	metas metadataInterner

	// Numbers of the host before: most hosts have the same.
	weight                         recent[float64]
	port, interval, timeout, delay recent[int64]
}

// infoField decodes the value of one field of the list.
func (d *listDecoder) infoField(info *ServiceInfo, key string) {
	switch key {
	case "name":
		info.Name = d.string(key)
	case "groupName":
		info.Group = d.string(key)
	case "clusters":
		info.Clusters = d.string(key)
	case "cacheMillis":
		info.CacheMillis, _ = d.integer(key)
	case "hosts":
		info.Hosts, info.HasHosts = d.hosts()
	case "lastRefTime":
		d.timeAt = d.pos
		if d.peek() == '"' {
			d.timeAt++
		}
		info.LastRefTime, _ = d.integer(key)
	case "checksum":
		info.Checksum = d.string(key)
	case "allIPs", "allIps": // 3.x
		info.AllIPs, _ = d.boolean(key)
	case "reachProtectionThreshold":
		info.ReachProtectionThreshold, _ = d.boolean(key)
	case "valid":
		if v, ok := d.boolean(key); ok {
			info.Valid = v
		}
	default:
		d.skip(1)
	}
}

// hosts decodes the array of hosts; ok is false for null.
func (d *listDecoder) hosts() (hosts []Host, ok bool) {
	if !d.openArray("hosts") {
		return nil, false
	}
	for first := true; d.more(first, ']'); first = false {
		at := d.pos
		var h Host
		d.host(&h)
		if first {
			// Most hosts are about as long as the first. One as any server writes it has 64 bytes at least; with
			// less a body could promise more than it is good for.
			hosts = make([]Host, 0, 1+(len(d.buf)-d.pos)/max(d.pos-at, 64))
		}
		hosts = append(hosts, h)
	}
	switch spare := cap(hosts) - len(hosts); {
	case d.err != nil || len(hosts) == 0:
		return nil, d.err == nil
	case spare > len(hosts)/8:
		hosts = slices.Clone(hosts)
	}
	return hosts, true
}

// hostTexts are texts of a host that become strings when all of it is read.
type hostTexts struct{ id, ip []byte }

// host decodes one host.
func (d *listDecoder) host(h *Host) {
	at := d.pos
	if d.peek() != '{' {
		d.skip(2)
		d.fail(KindBadHost, "", at)
		return
	}
	*h = Host{Weight: 1, Healthy: true, Enabled: true, Ephemeral: true, Cluster: DefaultCluster}
	var texts hostTexts
	healthyAt := -1
	d.pos++
	for first := true; ; first = false {
		key, ok := d.key(first)
		if !ok {
			break
		}
		switch string(key) {
		case "healthy":
			if v, ok := d.boolean("healthy"); ok {
				h.Healthy, healthyAt = v, d.pos
			}
		case "valid":
			if v, ok := d.boolean("valid"); ok && healthyAt < 0 {
				h.Healthy = v
			}
		default:
			d.hostField(h, &texts, key)
		}
	}
	switch {
	case d.err != nil:
		if d.err.Kind == KindType {
			d.err.Kind = KindBadHost
		}
		return
	case len(texts.ip) == 0:
		d.fail(KindBadHost, "ip", at)
		return
	}
	// An id is ip#port#...: one string serves both.
	h.InstanceID = string(texts.id)
	if bytes.HasPrefix(texts.id, texts.ip) {
		h.IP = h.InstanceID[:len(texts.ip)]
	} else {
		h.IP = string(texts.ip)
	}
}

// hostField decodes the value of one field of a host, but for those that tell its health.
func (d *listDecoder) hostField(h *Host, texts *hostTexts, key []byte) {
	switch string(key) {
	case "instanceId":
		texts.id, _ = d.text("instanceId")
	case "ip":
		texts.ip, _ = d.text("ip")
	case "port":
		at := d.pos
		port := d.integerLike(&d.port, "port")
		if port < 0 || port > 65535 {
			d.fail(KindBadHost, "port", at)
		}
		h.Port = int(port)
	case "weight":
		d.hostWeight(h)
	case "enabled":
		if v, ok := d.boolean("enabled"); ok {
			h.Enabled = v
		}
	case "ephemeral":
		if v, ok := d.boolean("ephemeral"); ok {
			h.Ephemeral = v
		}
	case "clusterName":
		if text, ok := d.text("clusterName"); ok {
			h.Cluster = d.names.of(text)
		}
	case "serviceName":
		text, _ := d.text("serviceName")
		h.Service = d.names.of(text)
	case "metadata":
		h.Metadata = d.metas.of(d.scanner)
	case "instanceHeartBeatInterval":
		h.BeatInterval = d.integerLike(&d.interval, "instanceHeartBeatInterval")
	case "instanceHeartBeatTimeOut":
		h.BeatTimeout = d.integerLike(&d.timeout, "instanceHeartBeatTimeOut")
	case "ipDeleteTimeout":
		h.DeleteTimeout = d.integerLike(&d.delay, "ipDeleteTimeout")
	case "instanceIdGenerator":
		text, _ := d.text("instanceIdGenerator")
		h.IDGenerator = d.names.of(text)
	default:
		d.skip(3)
	}
}

// recent is a number and the text that it was decoded from.
type recent[T int64 | float64] struct {
	text  []byte
	value T
}

// next tells whether the next value of d is the same text, and steps over it if so.
func (r *recent[T]) next(d *listDecoder) bool {
	n := len(r.text)
	if n == 0 || d.err != nil || !bytes.HasPrefix(d.buf[d.pos:], r.text) {
		return false
	}
	if c := d.at(d.pos + n); c != ',' && c != '}' {
		return false // the beginning of a longer number
	}
	d.pos += n
	return true
}

// integerLike decodes an integer, most likely the one in r.
func (d *listDecoder) integerLike(r *recent[int64], field string) int64 {
	if r.next(d) {
		return r.value
	}
	at := d.pos
	v, ok := d.integer(field)
	if !ok {
		return 0
	}
	*r = recent[int64]{d.buf[at:d.pos], v}
	return v
}

func (d *listDecoder) hostWeight(h *Host) {
	if d.weight.next(d) {
		h.Weight = d.weight.value
		return
	}
	at := d.pos
	v, ok := d.float("weight")
	if !ok {
		return
	}
	if v < 0 {
		d.fail(KindBadHost, "weight", at)
		return
	}
	h.Weight = v
	d.weight = recent[float64]{d.buf[at:d.pos], v}
}
