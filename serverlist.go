package nacos

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const defaultServerPort = "8848"

// unsupportedFor is for how long a server is not asked again for an API that it answered it does not
// have: long enough not to loop, short enough to see an upgrade.
const unsupportedFor = time.Minute

// server is one Nacos server and what is known of its health.
type server struct {
	scheme string // "http" or "https"
	host   string // host:port as it is dialled and shown
	path   string // context path, "" for none

	// Guarded by serverList.mu.
	failing     bool                 // its last request failed as P7 says
	penaltyEnds time.Time            // tried after all others until then
	unsupported map[string]time.Time // API name to when that was answered
	held        int                  // capped requests that are at it now
}

// parseServer reads an address in one of the forms of P8. A URL without a port has the port of its scheme.
func parseServer(address, contextPath string) (*server, error) {
	bad := func(rule string) (*server, error) {
		return nil, &ArgumentError{Argument: "server address", Value: strconv.Quote(address), Rule: rule}
	}
	const forms = "must be host, host:port, [v6]:port or http(s)://host[:port][/context]"
	s := &server{scheme: "http", path: contextPath}
	rest := address
	isURL := strings.Contains(address, "://")
	switch {
	case strings.Contains(address, ","):
		return bad("holds a comma; each address is an argument of its own")
	case strings.Contains(address, "/") && !isURL:
		return bad("has a path without http:// in front; " + forms)
	}
	if scheme, after, found := strings.Cut(address, "://"); found {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(u.EscapedPath(), "%"):
			return bad(forms)
		case u.Scheme != "http" && u.Scheme != "https":
			return bad("has the scheme " + strconv.Quote(scheme) + "; " + forms)
		}
		s.scheme = u.Scheme
		rest, _, _ = strings.Cut(after, "/")
		if p := cleanPath(u.Path); p != "" {
			s.path = p
		}
	}
	host, port, err := splitServer(rest, map[string]string{"http": "80", "https": "443"}[s.scheme], isURL)
	if err != "" {
		return bad(err + "; " + forms)
	}
	s.host = net.JoinHostPort(host, port)
	return s, nil
}

func splitServer(text, schemePort string, isURL bool) (host, port, problem string) {
	port = defaultServerPort
	if isURL {
		port = schemePort
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.String(), port, ""
	}
	host = text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	} else if inner, found := strings.CutPrefix(text, "["); found && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", "has no port within 1 and 65535"
	}
	if _, err := netip.ParseAddr(host); err != nil && !isHostName(host) {
		return "", "", "has no IP address or host name"
	}
	return host, port, ""
}

// cleanPath returns the path with one slash in front and none at the end, or "".
func cleanPath(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return ""
	}
	return "/" + path
}

// serverList knows the servers and decides which one a request goes to next. Safe for concurrent use.
type serverList struct {
	rnd *random

	mu      sync.Mutex // guards servers' changing fields and sticky
	servers []*server
	sticky  int // where polls go
}

func newServerList(addresses []string, contextPath string, rnd *random) (*serverList, error) {
	l := &serverList{rnd: rnd}
	seen := make(map[string]bool)
	for _, a := range addresses {
		s, err := parseServer(a, contextPath)
		if err != nil {
			return nil, err
		}
		if key := s.scheme + s.host + s.path; !seen[key] {
			seen[key] = true
			l.servers = append(l.servers, s)
		}
	}
	if len(l.servers) > 0 {
		l.sticky = rnd.intn(len(l.servers))
	}
	return l, nil
}

func (l *serverList) size() int { return len(l.servers) }

// rotation is the order in which one request tries the servers: from a start round the list (P1), those
// under a penalty after all others (P7), each once.
type rotation struct {
	list  *serverList
	start int
	tried []bool
}

// rotation begins at the server of the polls if sticky, else at a random one.
func (l *serverList) rotation(sticky bool) *rotation {
	r := &rotation{list: l, tried: make([]bool, len(l.servers))}
	if !sticky {
		r.start = l.rnd.intn(len(l.servers))
		return r
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.start = l.sticky
	return r
}

// next returns the next server for api, nil when none is left. With a limit above 0 it passes over
// servers that hold that many capped requests already, and counts the chosen one's up; the caller gives
// it back with release.
func (r *rotation) next(api string, limit int, now time.Time) *server {
	l := r.list
	l.mu.Lock()
	defer l.mu.Unlock()
	best := -1
	for k := range l.servers {
		i := (r.start + k) % len(l.servers)
		s := l.servers[i]
		if r.tried[i] || limit > 0 && s.held >= limit || now.Before(s.unsupported[api].Add(unsupportedFor)) {
			continue
		}
		if !now.Before(s.penaltyEnds) {
			best = i
			break
		}
		if best < 0 {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	r.tried[best] = true
	s := l.servers[best]
	if limit > 0 {
		s.held++
	}
	return s
}

func (l *serverList) release(s *server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.held--
}

// stay makes polls go to s until it fails.
func (l *serverList) stay(s *server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.servers {
		if l.servers[i] == s {
			l.sticky = i
		}
	}
}

// answered notes that s works and reports whether that is news.
func (l *serverList) answered(s *server) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news, s.failing, s.penaltyEnds = s.failing, false, time.Time{}
	return news
}

// failed notes that s could not be reached and reports whether that is news.
func (l *serverList) failed(s *server, penaltyEnds time.Time) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news, s.failing, s.penaltyEnds = !s.failing, true, penaltyEnds
	return news
}

// lacks notes that s does not offer api.
func (l *serverList) lacks(s *server, api string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.unsupported == nil {
		s.unsupported = make(map[string]time.Time)
	}
	s.unsupported[api] = now
}

// allLack tells that every server said lately that it does not offer api.
func (l *serverList) allLack(api string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.servers {
		if !now.Before(s.unsupported[api].Add(unsupportedFor)) {
			return false
		}
	}
	return true
}

// ServerStats is what a client knows of a server's health.
type ServerStats struct {
	Address string // host:port
	Failing bool   // its last request failed for want of a connection or an answer
}

func (l *serverList) stats() []ServerStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]ServerStats, len(l.servers))
	for i, s := range l.servers {
		out[i] = ServerStats{Address: s.host, Failing: s.failing}
	}
	return out
}
