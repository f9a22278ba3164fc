package nacos

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const defaultServerPort = "8848"

// unsupportedFor is for how long a server is asked after all others for an API that it answered it does not
// have: long enough not to ask in vain each time, short enough to see an upgrade.
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
		shown := address
		if at := strings.LastIndexByte(address, '@'); at >= 0 { // what stands before it may be a password
			shown = "***" + address[at:]
		}
		return nil, &ArgumentError{Argument: "server address", Value: strconv.Quote(shown), Rule: rule}
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
	port := defaultServerPort
	if scheme, _, found := strings.Cut(address, "://"); found {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.User != nil || strings.ContainsAny(address, "?#") || strings.Contains(u.Path, "%"):
			return bad(forms)
		case u.Scheme != "http" && u.Scheme != "https":
			return bad("has the scheme " + strconv.Quote(scheme) + "; " + forms)
		}
		s.scheme = u.Scheme
		rest = u.Host
		port = map[string]string{"http": "80", "https": "443"}[s.scheme]
		if p := cleanPath(u.Path); p != "" {
			s.path = p
		}
	}
	var problem string
	if s.host, problem = hostPort(rest, port); problem != "" {
		return bad(problem + "; " + forms)
	}
	return s, nil
}

// hostPort reads host, host:port, [v6], [v6]:port or v6 and returns it as host:port, in one form for each
// address.
func hostPort(text, defaultPort string) (hostPort, problem string) {
	host, port := text, defaultPort
	if _, err := netip.ParseAddr(text); err == nil {
		// a bare IPv6 address is full of colons
	} else if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	} else if inner, found := strings.CutPrefix(text, "["); found && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "has no port within 1 and 65535"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	} else if !isHostName(host) {
		return "", "has no IP address or host name"
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), ""
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
// under a penalty after all others (P7), those that said they do not offer the API at the very end (P5),
// each once. Nobody is left out: what a gateway answered while a server started may be over by now.
type rotation struct {
	list  *serverList
	start int
	tried []bool
	full  bool // the last call of next passed over a server because of the limit
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
	best, bestRank := -1, 0
	r.full = false
	for k := range l.servers {
		i := (r.start + k) % len(l.servers)
		s := l.servers[i]
		if r.tried[i] {
			continue
		}
		rank := 0
		switch {
		case now.Before(s.unsupported[api].Add(unsupportedFor)):
			rank = 2
		case now.Before(s.penaltyEnds):
			rank = 1
		}
		if limit > 0 && s.held >= limit {
			r.full = r.full || rank < 2
			continue
		}
		if best < 0 || rank < bestRank {
			best, bestRank = i, rank
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
	l.sticky = slices.Index(l.servers, s)
}

// leave makes polls that go to s go to the next server.
func (l *serverList) leave(s *server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.servers[l.sticky] == s {
		l.sticky = (l.sticky + 1) % len(l.servers)
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
