package nacos

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nacos-naming/nacos/internal/wire"
)

// What every server generation refuses, and no more (N2): the rest is the server's to judge.
const (
	maxServiceBytes = 512
	maxGroupBytes   = 128
	maxWeight       = 10000.0
)

func groupedName(group, service string) string { return wire.GroupedName(group, service) }

// checkService refuses names that no server takes or that would mean another service there.
func checkService(group, service string) error {
	if err := checkName("service", service, maxServiceBytes); err != nil {
		return err
	}
	return checkGroup(group)
}

// checkGroup also refuses the group that, put before @@, would be cut one character early.
func checkGroup(group string) error {
	if strings.HasSuffix(group, "@") && !strings.Contains(group, wire.GroupSeparator) {
		return &ArgumentError{Argument: "group", Value: strconv.Quote(group), Rule: "must not end with @, which would go to the @@ behind it"}
	}
	return checkName("group", group, maxGroupBytes)
}

func checkName(what, name string, limit int) error {
	rule := ""
	switch {
	case strings.TrimSpace(name) == "":
		rule = "must not be blank"
	case len(name) > limit:
		return &ArgumentError{Argument: what, Rule: fmt.Sprintf("must have at most %d bytes, this one has %d", limit, len(name))}
	case strings.Contains(name, wire.GroupSeparator):
		rule = "must not contain @@, which separates group and service"
	case hasControl(name):
		rule = "must not contain control characters or invalid UTF-8"
	default:
		return nil
	}
	return &ArgumentError{Argument: what, Value: strconv.Quote(name), Rule: rule}
}

func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)
}

// checkCluster accepts "" (the default cluster).
func checkCluster(name string) error {
	if name != "" && (strings.TrimSpace(name) == "" || strings.Contains(name, ",") || hasControl(name)) {
		return &ArgumentError{Argument: "cluster", Value: strconv.Quote(name), Rule: "must not be blank or contain commas or control characters"}
	}
	return nil
}

// checkKey says what is wrong with the names of a lookup or subscription. That no cluster is empty or holds a
// comma, gather has seen to.
func checkKey(k serviceKey) error {
	if err := checkService(k.group, k.name); err != nil {
		return err
	}
	for _, c := range splitClusters(k.clusters) {
		if err := checkCluster(c); err != nil {
			return err
		}
	}
	return nil
}

// checkInstance refuses instances that were not made by NewInstance or a lookup, and values no server takes.
func checkInstance(in Instance) error {
	if !in.made {
		return &ArgumentError{Argument: "instance", Rule: "must come from NewInstance or from a lookup: the zero Instance is disabled, unhealthy and has weight 0"}
	}
	if err := checkAddress(in); err != nil {
		return err
	}
	if w := in.Weight; math.IsNaN(w) || w < 0 || w > maxWeight {
		return &ArgumentError{Argument: "weight", Value: strconv.FormatFloat(w, 'g', -1, 64), Rule: "must be within 0 and 10000"}
	}
	for k, v := range in.Metadata.All() {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return &ArgumentError{Argument: "metadata", Value: strconv.Quote(k), Rule: "keys and values must be valid UTF-8"}
		}
	}
	// Servers check the same, and take metadata that sets no interval for 5 s whatever WithBeatInterval says.
	// Whoever sends the beats also checks with that.
	return checkBeatTimes(in.Metadata, defaultBeatInterval)
}

// checkAddress checks what names an instance: cluster, ip and port.
func checkAddress(in Instance) error {
	if err := checkCluster(in.Cluster); err != nil {
		return err
	}
	if _, err := netip.ParseAddr(in.IP); err != nil && !isHostName(in.IP) {
		return &ArgumentError{Argument: "ip", Value: strconv.Quote(in.IP), Rule: "must be an IP address or a host name (RFC 1123)"}
	}
	if in.Port < 1 || in.Port > 65535 {
		return &ArgumentError{Argument: "port", Value: strconv.Itoa(in.Port), Rule: "must be within 1 and 65535"}
	}
	return nil
}

// checkBeatTimes refuses a beat interval that does not leave room for a beat before the instance counts as
// unhealthy or gone (B1). absent is the interval of metadata that sets none.
func checkBeatTimes(m Metadata, absent time.Duration) error {
	interval := beatTime(m, MetadataBeatInterval, absent)
	timeout := beatTime(m, MetadataBeatTimeout, defaultBeatTimeout)
	remove := beatTime(m, MetadataDeleteTimeout, defaultDeleteTimeout)
	if interval >= timeout || interval >= remove {
		return &ArgumentError{Argument: "metadata " + MetadataBeatInterval, Value: strconv.Quote(interval.String()),
			Rule: fmt.Sprintf("must be below %s (%s) and %s (%s)", MetadataBeatTimeout, timeout, MetadataDeleteTimeout, remove)}
	}
	return nil
}

// beatTime reads a duration that metadata gives in whole milliseconds; servers read digits only, and so
// do we.
func beatTime(m Metadata, key string, absent time.Duration) time.Duration {
	text := m.Get(key)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return absent
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms > math.MaxInt64/int64(time.Millisecond) {
		return absent
	}
	return time.Duration(ms) * time.Millisecond
}

// isHostName follows RFC 1123: labels of letters, digits and inner hyphens, at most 63 bytes each and 253
// in all. Numbers with dots are no name but an IP address gone wrong, such as 10.0.0.256.
func isHostName(s string) bool {
	if len(s) == 0 || len(s) > 253 || strings.Contains(s, ".") && strings.Trim(s, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}
