package wire

import "bytes"

// DecodeServiceInfo decodes an instance list. The Fingerprint recognizes later bodies that differ from this one only in
// the digits of lastRefTime; it is zero when the body has no such digits.
//
// A host takes the server's defaults for what is absent: weight 1, healthy, enabled and ephemeral, cluster DEFAULT; a
// "valid" that 1.x sends counts for a healthy that it does not. One bad host fails the whole body (rule H5): without ip, a port
// outside of 0..65535, a weight that is negative or not finite, or a field of another type. So does the absence of a
// name, for then it is another JSON. Hosts that are equal in cluster, service, id generator or metadata share these.
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

	weight     float64 // of the host before
	weightText []byte  // what it was decoded from
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
	// The number of ips tells how many hosts follow, as far as their size bears it out.
	const least = 64 // bytes of a host as any server writes it
	rest := d.buf[d.pos:]
	if n := min(bytes.Count(rest, []byte(`"ip":`)), len(rest)/least+1); n > 0 {
		hosts = make([]Host, 0, n)
	}
	for first := true; d.more(first, ']'); first = false {
		hosts = append(hosts, Host{})
		d.host(&hosts[len(hosts)-1])
	}
	if len(hosts) == 0 {
		hosts = nil
	}
	return hosts, d.err == nil
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
		port, _ := d.integer("port")
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
		h.BeatInterval, _ = d.integer("instanceHeartBeatInterval")
	case "instanceHeartBeatTimeOut":
		h.BeatTimeout, _ = d.integer("instanceHeartBeatTimeOut")
	case "ipDeleteTimeout":
		h.DeleteTimeout, _ = d.integer("ipDeleteTimeout")
	case "instanceIdGenerator":
		text, _ := d.text("instanceIdGenerator")
		h.IDGenerator = d.names.of(text)
	default:
		d.skip(3)
	}
}

// hostWeight decodes a weight. Most hosts have the weight of the one before.
func (d *listDecoder) hostWeight(h *Host) {
	at := d.pos
	if n := len(d.weightText); n > 0 && d.peek() != 0 && bytes.HasPrefix(d.buf[at:], d.weightText) {
		if c := d.at(at + n); c == ',' || c == '}' {
			d.pos += n
			h.Weight = d.weight
			return
		}
	}
	v, ok := d.float("weight")
	if !ok {
		return
	}
	if v < 0 {
		d.fail(KindBadHost, "weight", at)
		return
	}
	h.Weight = v
	d.weight, d.weightText = v, d.buf[at:d.pos]
}
