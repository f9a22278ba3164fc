package mininacos

import (
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/nacos-naming/nacos/internal/wire"
)

// mostForm bounds the body of a request, as the servlet container does.
const mostForm = 2 << 20

// params are a request's parameters: of the query and, of all methods, of a form body; the first value of each counts.
type params struct{ values url.Values }

func readParams(r *http.Request) (params, error) {
	p := params{parseQuery(r.URL.RawQuery)}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded") {
		return p, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, mostForm))
	if err != nil {
		return p, err
	}
	for k, v := range parseQuery(string(body)) {
		p.values[k] = append(p.values[k], v...)
	}
	return p, nil
}

// parseQuery drops pairs that are badly encoded. A semicolon is a letter as any other.
func parseQuery(q string) url.Values {
	values, _ := url.ParseQuery(strings.ReplaceAll(q, ";", "%3B"))
	return values
}

// raw is a parameter as sent.
func (p params) raw(key string) string { return p.values.Get(key) }

// optional is a parameter without surrounding space, or def if it is blank.
func (p params) optional(key, def string) string {
	if v := strings.TrimSpace(p.raw(key)); v != "" {
		return v
	}
	return def
}

// required is a parameter without surrounding space. One that consists of space is there, and empty, as on the real server.
func (p params) required(key string) (string, error) {
	v := p.raw(key)
	if v == "" {
		return "", required(key)
	}
	return strings.TrimSpace(v), nil
}

func (p params) namespace() string { return p.optional(wire.ParamNamespaceID, wire.DefaultNamespace) }

// serviceKey is the service a request is about: serviceName with its group, else of groupName, else of DEFAULT_GROUP.
func (p params) serviceKey() (serviceKey, error) {
	name, err := p.required(wire.ParamServiceName)
	if err != nil {
		return serviceKey{}, err
	}
	group, service := p.split(name)
	if service == "" {
		return serviceKey{}, badRequest("Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'")
	}
	return serviceKey{p.namespace(), group, service}, nil
}

// split is the group and the name of a service given with its group or without.
func (p params) split(name string) (group, service string) {
	if group, service, ok := strings.Cut(name, wire.GroupSeparator); ok {
		return group, service
	}
	group = p.raw(wire.ParamGroupName)
	if strings.TrimSpace(group) == "" {
		group = wire.DefaultGroup
	}
	return group, name
}

// cluster is the cluster a request names, by either of two parameters.
func (p params) cluster(def string) string {
	return p.optional(wire.ParamClusterName, p.optional("cluster", def))
}

// instance reads the instance a request describes, in the real server's order of looking at things.
func (p params) instance() (*instance, error) {
	ip, err := p.required(wire.ParamIP)
	if err != nil {
		return nil, err
	}
	text, err := p.required(wire.ParamPort)
	if err != nil {
		return nil, err
	}
	port, err := parseInt(text)
	if err != nil {
		return nil, err
	}
	in := &instance{
		endpoint:  endpoint{ip, port},
		healthy:   isTrue(p.optional(wire.ParamHealthy, "true")),
		ephemeral: isTrue(p.optional(wire.ParamEphemeral, "true")),
		cluster:   p.cluster(wire.DefaultCluster),
		enabled:   isTrue(p.optional(wire.ParamEnabled, p.optional(wire.ParamEnable, "true"))),
	}
	if in.weight, err = parseWeight(p.optional(wire.ParamWeight, "1")); err != nil {
		return nil, err
	}
	if text := p.optional(wire.ParamMetadata, ""); text != "" {
		// The parameter check has parsed it before.
		if in.metadata, err = wire.ParseMetadata(text); err != nil {
			return nil, badRequest("metadata format incorrect:" + text)
		}
	}
	return in, nil
}

// legal is what only registering and updating ask of an instance.
func (in *instance) legal() error {
	interval := digitsOr(in.metadata, wire.MetaBeatInterval, defaultBeatInterval)
	if digitsOr(in.metadata, wire.MetaBeatTimeout, defaultBeatTimeout) < interval || digitsOr(in.metadata, wire.MetaDeleteTimeout, defaultDeleteTimeout) < interval {
		return &apiError{500, "Instance 'heart beat interval' must less than 'heart beat timeout' and 'ip delete timeout'."}
	}
	for i := range len(in.cluster) {
		if c := in.cluster[i]; !isWord(c) || c == '_' {
			return &apiError{500, "Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: " + in.cluster + ")"}
		}
	}
	return nil
}

func parseInt(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, notANumber(text)
	}
	return int(n), nil
}

// parseWeight reads a weight as Java reads a double. NaN passes, as it does the real server, which lists it as a string.
func parseWeight(text string) (float64, error) {
	number := strings.TrimRight(text, "dDfF")
	if len(text)-len(number) > 1 || isHex(text) && len(number) < len(text) && !strings.ContainsAny(text, "pP") {
		return 0, notANumber(text)
	}
	w, err := strconv.ParseFloat(number, 64)
	if math.IsNaN(w) && number != "NaN" {
		return 0, notANumber(text) // letters of another case
	}
	if err != nil && !math.IsInf(w, 0) || strings.Contains(number, "_") {
		return 0, notANumber(text)
	}
	if w < 0 || w > 10000 {
		return 0, &apiError{500, "instance format invalid: The weights range from 0.0 to 10000.0"}
	}
	return w, nil
}

func isHex(text string) bool { return strings.HasPrefix(strings.TrimLeft(text, "+-"), "0x") }

// isTrue reads a flag as the server does; anything it does not know is false.
func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "y", "t":
		return true
	}
	return false
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}
