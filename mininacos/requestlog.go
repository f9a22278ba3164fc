package mininacos

import (
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// logSize is how many requests a server remembers.
const logSize = 1000

// Request is one request a server got. It is shared: do not change it.
type Request struct {
	Time       time.Time
	API        API
	Method     string
	Path       string     // without query
	Params     url.Values // of query and form body
	Header     http.Header
	RemoteAddr string // of the client
}

func newRequest(r *http.Request, p params) *Request {
	return &Request{
		Time:       time.Now(),
		API:        apiOf(r.Method, r.URL.Path),
		Method:     r.Method,
		Path:       r.URL.Path,
		Params:     p.values,
		Header:     r.Header,
		RemoteAddr: r.RemoteAddr,
	}
}

// Param is a parameter of the query or the form body, "" if absent.
func (r *Request) Param(name string) string { return r.Params.Get(name) }

// UserAgent is what the client says it is.
func (r *Request) UserAgent() string { return r.Header.Get("User-Agent") }

// requestLog counts requests and keeps the last ones. The zero value is empty.
type requestLog struct {
	mu     sync.Mutex // guards all
	counts map[API]int
	last   []*Request // a ring once full
	next   int        // where the next one goes in a full ring
}

func (l *requestLog) add(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = make(map[API]int)
	}
	l.counts[r.API]++
	if len(l.last) < logSize {
		l.last = append(l.last, r)
		return
	}
	l.last[l.next] = r
	l.next = (l.next + 1) % logSize
}

// Requests is how many requests the server got by API, since its start or ResetRequests. Requests that a fault ended count.
func (s *Server) Requests() map[API]int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return maps.Clone(s.requests.counts)
}

// RequestLog is the last 1,000 requests, oldest first.
func (s *Server) RequestLog() []*Request {
	l := &s.requests
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(append(make([]*Request, 0, len(l.last)), l.last[l.next:]...), l.last[:l.next]...)
}

// ResetRequests forgets all requests, and starts to count anew.
func (s *Server) ResetRequests() {
	l := &s.requests
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts, l.last, l.next = nil, nil, 0
}
