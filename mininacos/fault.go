package mininacos

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Fault is what happens to one request. The zero value lets it pass. Fields work together in the order they stand here; the
// first that ends the exchange ends it. A fault that waits ends at once when the client goes or the server stops.
type Fault struct {
	// Delay is waited before anything else happens.
	Delay time.Duration
	// Hang leaves the request unanswered and undone, the connection open.
	Hang bool
	// Refuse cuts the connection; nothing was done.
	Refuse bool
	// Garbage sends bytes that are not HTTP, and cuts the connection; nothing was done.
	Garbage bool
	// Status, if not 0, is answered with Body and ContentType ("": none); nothing was done.
	Status      int
	Body        string
	ContentType string
	// DelayReply is waited after the request was done and before it is answered.
	DelayReply time.Duration
	// HangReply leaves the request done and unanswered, the connection open.
	HangReply bool
	// DropReply cuts the connection after the request was done.
	DropReply bool
	// CutBody sends the first half of the answer's body, and cuts the connection.
	CutBody bool
}

// Intercept has f see every request from now on, before anything is done; its fault happens to the request. Of several
// interceptors the first, in order of Intercept, whose fault is not zero wins. f runs on the request's goroutine and may be
// called by several at once; it may call the server. remove ends it and may be called twice.
func (s *Server) Intercept(f func(*Request) Fault) (remove func()) {
	return s.faults.add(f)
}

// Intercept is Server.Intercept for all servers of the cluster.
func (c *Cluster) Intercept(f func(*Request) Fault) (remove func()) {
	var removes []func()
	for _, s := range c.Servers {
		removes = append(removes, s.Intercept(f))
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
	}
}

// faults are the interceptors of a server.
type faults struct {
	mu sync.Mutex // guards fs
	fs []*func(*Request) Fault
}

func (l *faults) add(f func(*Request) Fault) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fs = append(slices.Clip(l.fs), &f) // find may hold the former
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fs = slices.DeleteFunc(slices.Clone(l.fs), func(g *func(*Request) Fault) bool { return g == &f })
	}
}

func (l *faults) find(r *Request) Fault {
	l.mu.Lock()
	fs := l.fs
	l.mu.Unlock()
	for _, f := range fs {
		if fault := (*f)(r); fault != (Fault{}) {
			return fault
		}
	}
	return Fault{}
}

// before does what comes before the request is done; done tells whether to go on.
func (f Fault) before(done context.Context, w http.ResponseWriter, r *http.Request) (goOn bool) {
	wait(done, r, f.Delay)
	switch {
	case f.Hang:
		hang(done, r)
	case f.Refuse:
		cut()
	case f.Garbage:
		garble(w)
		return false
	}
	return true
}

// reply is what the fault answers with.
func (f Fault) reply() reply {
	return reply{status: f.Status, contentType: f.ContentType, body: [][]byte{[]byte(f.Body)}}
}

// after does what comes after the request was done, and sends the answer.
func (f Fault) after(done context.Context, w http.ResponseWriter, r *http.Request, rep *reply) {
	wait(done, r, f.DelayReply)
	switch {
	case f.HangReply:
		hang(done, r)
	case f.DropReply:
		cut()
	case f.CutBody:
		whole := make([]byte, 0, rep.size())
		for _, part := range rep.body {
			whole = append(whole, part...)
		}
		rep.write(halfWriter{w, len(whole) / 2}, false)
		_ = http.NewResponseController(w).Flush()
		cut()
	}
	rep.write(w, r.Method == http.MethodHead)
}

// halfWriter passes the first left bytes of the body on.
type halfWriter struct {
	http.ResponseWriter
	left int
}

func (h halfWriter) Write(p []byte) (int, error) {
	if h.left == 0 {
		return 0, http.ErrAbortHandler
	}
	n, err := h.ResponseWriter.Write(p[:min(len(p), h.left)])
	if err == nil && n < len(p) {
		err = http.ErrAbortHandler
	}
	return n, err
}

// wait waits d; the request ends if its client goes or the server stops meanwhile.
func wait(done context.Context, r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
		cut()
	case <-done.Done():
		cut()
	}
}

// hang waits until the client goes or the server stops.
func hang(done context.Context, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-done.Done():
	}
	cut()
}

// cut ends the handler and its connection, without a word to the log.
func cut() { panic(http.ErrAbortHandler) }

// garble answers with what is not HTTP.
func garble(w http.ResponseWriter) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		cut()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = buf.WriteString("\x00\x16garbage, not HTTP\r\n\r\n")
	_ = buf.Flush()
}
