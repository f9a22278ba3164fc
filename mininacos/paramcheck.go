package mininacos

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/nacos-naming/nacos/internal/wire"
)

// checked are the values the server's parameter check looks at, before any API sees the request. Empty ones pass.
type checked struct {
	namespace, service, group string
	clusters                  []string
	ips, ports                []string
	metadata                  wire.Metadata
}

// collect gathers what the check of an API looks at. What it cannot read at all is an error of the request as a whole: its
// message, in a 500 page.
func collect(api API, p params, beat *wire.Beat) (c checked, fault string) {
	c.namespace = p.raw(wire.ParamNamespaceID)
	if name := strings.TrimSpace(p.raw(wire.ParamServiceName)); name != "" {
		c.group, c.service = p.split(name)
	} else {
		c.group = p.raw(wire.ParamGroupName)
	}
	switch api {
	case APIList: // looks at nothing else
		c.clusters = strings.Split(p.raw(wire.ParamClusters), ",")
		return c, ""
	case APIBeat:
		c.clusters = []string{p.raw(wire.ParamClusterName)}
		if beat != nil {
			c.clusters = append(c.clusters, beat.Cluster)
			c.ips = append(c.ips, beat.IP)
			c.ports = append(c.ports, strconv.Itoa(beat.Port))
		}
	default:
		c.clusters = []string{p.cluster("")}
		if text := p.optional(wire.ParamMetadata, ""); text != "" {
			meta, err := wire.ParseMetadata(text)
			if err != nil {
				msg := "metadata format incorrect:" + p.raw(wire.ParamMetadata)
				return c, "Server failed, caused: ErrCode:400, ErrMsg:" + msg + ";caused: " + msg + ";"
			}
			c.metadata = meta
		}
	}
	c.ips = append(c.ips, p.raw(wire.ParamIP))
	c.ports = append(c.ports, p.raw(wire.ParamPort))
	return c, ""
}

// illegal is what is wrong with the values, "" if nothing is; the order is the real server's.
func (c *checked) illegal() string {
	if msg := illegal("namespaceId/tenant", c.namespace, 64, isNamespace); msg != "" {
		return msg
	}
	if msg := illegal("serviceName", c.service, 512, isService); msg != "" {
		return msg
	}
	if msg := illegal("group", c.group, 128, isGroup); msg != "" {
		return msg
	}
	for _, v := range c.clusters {
		if msg := illegal("cluster", v, 64, isNamespace); msg != "" {
			return msg
		}
	}
	for _, v := range c.ips {
		if msg := illegal("ip", v, 128, isIP); msg != "" {
			return msg
		}
	}
	for _, v := range c.ports {
		if strings.TrimSpace(v) == "" {
			continue
		}
		if n, err := strconv.ParseInt(v, 10, 32); err != nil || n < 0 || n > 65535 {
			return "Param 'port' is illegal, the value should be between 0 and 65535."
		}
	}
	size := 0
	for _, p := range c.metadata {
		size += javaLen(p.Key) + javaLen(p.Value)
	}
	if size > 1024 {
		return "Param 'Metadata' is illegal, the param length should not exceed 1024."
	}
	return ""
}

func illegal(name, value string, most int, ok func(string) bool) string {
	switch {
	case strings.TrimSpace(value) == "":
		return ""
	case javaLen(value) > most:
		return "Param '" + name + "' is illegal, the param length should not exceed " + strconv.Itoa(most) + "."
	case !ok(value):
		return "Param '" + name + "' is illegal, illegal characters should not appear in the param."
	}
	return ""
}

// checkReply is the answer to a request whose values are illegal.
func checkReply(msg string) reply {
	return reply{status: 400, body: [][]byte{[]byte(msg + "\r\n")}, noCache: true}
}

// nameFault is what the server's first filter says of a service name, "" if nothing.
func nameFault(p params) string {
	name := strings.TrimSpace(p.raw(wire.ParamServiceName))
	group, service, ok := strings.Cut(name, wire.GroupSeparator)
	switch {
	case !ok:
		return ""
	case service == "":
		return "Service name filter error,caused: Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName';"
	case group == "":
		return "Service name filter error,caused: Param 'serviceName' is illegal, groupName can't be empty;"
	}
	return ""
}

// javaLen is the length of a string in Java's characters.
func javaLen(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// isNamespace is also the rule for clusters.
func isNamespace(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

func isGroup(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isWord(c) && c != '.' && c != ':' {
			return false
		}
	}
	return true
}

func isIP(s string) bool { return !strings.ContainsFunc(s, isForbidden) }

// isService: no @ in front, no @@, and after the first character (sic) neither white space nor Chinese.
func isService(s string) bool {
	for i, r := range s {
		if i == 0 && (r == '@' || r == '\n' || r == '\r') || i > 0 && isForbidden(r) {
			return false
		}
	}
	return !strings.Contains(s, wire.GroupSeparator)
}

// isForbidden: what Java's \s and the range U+4E00 to U+9FA5 match.
func isForbidden(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\v', '\f', '\r':
		return true
	}
	return 0x4E00 <= r && r <= 0x9FA5
}
