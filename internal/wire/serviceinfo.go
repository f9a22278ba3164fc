package wire

import "strconv"

// Host is one instance in an instance list.
type Host struct {
	InstanceID string
	IP         string // IP literal or host name, never empty after decoding
	Port       int    // 0..65535
	Weight     float64
	Healthy    bool
	Enabled    bool
	Ephemeral  bool
	Cluster    string
	Service    string // group@@service; 1.x sends the bare name to all but Java clients
	Metadata   Metadata

	BeatInterval  int64 // ms; 0: not sent (1.x, r-nacos)
	BeatTimeout   int64 // ms; 0: not sent
	DeleteTimeout int64 // ms; 0: not sent

	IDGenerator string // "" if not sent
}

// ServiceInfo is an instance list: the reply to PathInstanceList and the data of a push.
type ServiceInfo struct {
	Name        string // group@@service
	Group       string // "" if not sent (1.x, r-nacos, pushes)
	Clusters    string // as asked for, joined by commas
	CacheMillis int64  // ms until the next poll; 0 if not sent
	Hosts       []Host
	HasHosts    bool  // there was a hosts array; a push without one tells of an error and changes nothing
	LastRefTime int64 // ms of the server's wall clock; 0 if not sent (unknown service on 1.x)
	Checksum    string

	AllIPs                   bool
	ReachProtectionThreshold bool // all hosts are shown, and as healthy, because too few are
	Valid                    bool // true if not sent
}

// AppendServiceInfo appends s as JSON as Nacos 2.3.2 writes it and returns the extended slice. Fields that their
// comments call "not sent" when they are zero are left out; hosts is written when HasHosts is set or there are any.
func AppendServiceInfo(dst []byte, s *ServiceInfo) []byte {
	dst = append(dst, `{"name":`...)
	dst = appendString(dst, s.Name)
	if s.Group != "" {
		dst = append(dst, `,"groupName":`...)
		dst = appendString(dst, s.Group)
	}
	dst = append(dst, `,"clusters":`...)
	dst = appendString(dst, s.Clusters)
	dst = appendNonZero(dst, `,"cacheMillis":`, s.CacheMillis)
	if s.HasHosts || len(s.Hosts) > 0 {
		dst = append(dst, `,"hosts":[`...)
		for i := range s.Hosts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendHost(dst, &s.Hosts[i])
		}
		dst = append(dst, ']')
	}
	dst = appendNonZero(dst, `,"lastRefTime":`, s.LastRefTime)
	dst = append(dst, `,"checksum":`...)
	dst = appendString(dst, s.Checksum)
	dst = append(dst, `,"allIPs":`...)
	dst = strconv.AppendBool(dst, s.AllIPs)
	dst = append(dst, `,"reachProtectionThreshold":`...)
	dst = strconv.AppendBool(dst, s.ReachProtectionThreshold)
	dst = append(dst, `,"valid":`...)
	dst = strconv.AppendBool(dst, s.Valid)
	return append(dst, '}')
}

func appendHost(dst []byte, h *Host) []byte {
	dst = append(dst, `{"instanceId":`...)
	dst = appendString(dst, h.InstanceID)
	dst = append(dst, `,"ip":`...)
	dst = appendString(dst, h.IP)
	dst = append(dst, `,"port":`...)
	dst = strconv.AppendInt(dst, int64(h.Port), 10)
	dst = append(dst, `,"weight":`...)
	dst = appendDouble(dst, h.Weight)
	dst = append(dst, `,"healthy":`...)
	dst = strconv.AppendBool(dst, h.Healthy)
	dst = append(dst, `,"enabled":`...)
	dst = strconv.AppendBool(dst, h.Enabled)
	dst = append(dst, `,"ephemeral":`...)
	dst = strconv.AppendBool(dst, h.Ephemeral)
	dst = append(dst, `,"clusterName":`...)
	dst = appendString(dst, h.Cluster)
	dst = append(dst, `,"serviceName":`...)
	dst = appendString(dst, h.Service)
	dst = append(dst, `,"metadata":`...)
	dst = h.Metadata.AppendJSON(dst)
	dst = appendNonZero(dst, `,"instanceHeartBeatInterval":`, h.BeatInterval)
	dst = appendNonZero(dst, `,"instanceHeartBeatTimeOut":`, h.BeatTimeout)
	dst = appendNonZero(dst, `,"ipDeleteTimeout":`, h.DeleteTimeout)
	if h.IDGenerator != "" {
		dst = append(dst, `,"instanceIdGenerator":`...)
		dst = appendString(dst, h.IDGenerator)
	}
	return append(dst, '}')
}

// appendNonZero appends name and v, or nothing for zero.
func appendNonZero(dst []byte, name string, v int64) []byte {
	if v == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), v, 10)
}
