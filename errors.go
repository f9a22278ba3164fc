package nacos

import (
	"errors"
	"fmt"
	"strings"
)

// Calls return these wrapped, with what was asked before them: look for them with errors.Is.
var (
	// ErrClosed is returned by every call made after Close or Shutdown began, and by calls that were
	// under way when it did.
	ErrClosed = errors.New("naming service is closed")

	// ErrNoServer is returned when there is no Nacos server to ask: no address was given.
	ErrNoServer = errors.New("no server available: WithServers gave no address")

	// ErrDeregistered is returned by Registration.Update when the instance has been deregistered, or a
	// deregistration of it was tried and failed.
	ErrDeregistered = errors.New("the instance is deregistered")

	// ErrAPIUnavailable is wrapped by the *APIError that is returned when no server offers the API a
	// call needs. Servers before 3.0 offer all of them; 3.0 and 3.1 keep the updates of instances behind
	// nacos.core.api.compatibility.admin.enabled=true, and 3.2 needs the legacy API adapter.
	ErrAPIUnavailable = errors.New("the server does not offer this API")
)

// APIError is returned when a request failed, after every server that was worth trying has been tried, and,
// without a Server, when a call ended before it asked one. Err, when there is one, is the cause of the last
// try: errors.Is finds context.Canceled, context.DeadlineExceeded, connection errors and the Err variables of this package in it.
type APIError struct {
	API       string   // what was asked: "register", "deregister", "update", "beat", "list", "services", "status", "subscribe", "watch"
	Subject   string   // what it was asked about, such as "DEFAULT_GROUP@@orders 10.0.0.5:8080"
	Server    string   // host:port of the server whose answer or failure this is
	Servers   []string // every server tried, in order; a single server that was tried again stands once
	Status    int      // HTTP status, 0 when no answer came
	Code      int      // code of Nacos in the answer beside the status, 0 when it has none
	Message   string   // the text the server sent, at most 512 bytes; with ErrAPIUnavailable also what to switch on
	Retryable bool     // whether the same call may succeed later: true for everything but a refusal and what is over or cannot be
	Err       error    // the cause, nil when the answer itself is the failure

	mayHaveActed bool // some try may have reached a server that acted on it
	unanswered   bool // some try reached a server, perhaps, and was given up: it may act on it yet
}

// Error tells what was asked, of whom, and what came back.
func (e *APIError) Error() string {
	var b strings.Builder
	b.WriteString("nacos: ")
	b.WriteString(e.API)
	if e.Subject != "" {
		b.WriteString(" " + e.Subject)
	}
	b.WriteString(": ")
	if len(e.Servers) > 1 {
		fmt.Fprintf(&b, "tried %s; ", strings.Join(e.Servers, ", "))
	}
	if e.Server != "" {
		b.WriteString(e.Server + ": ")
	}
	switch {
	case e.Err != nil && e.Status != 0:
		fmt.Fprintf(&b, "status %d: %v", e.Status, e.Err)
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		fmt.Fprintf(&b, "status %d", e.Status)
	}
	if e.Code != 0 && e.Code != e.Status {
		fmt.Fprintf(&b, ": code %d", e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// interrupt notes that the call ended, for that cause, before it was settled.
func (e *APIError) interrupt(cause error) {
	e.Retryable = !errors.Is(cause, ErrClosed)
	if e.Err != nil {
		cause = fmt.Errorf("%w, after %w", cause, e.Err)
	}
	e.Err = cause
}

// noAnswer notes that a try ended with err and no answer. Unless no connection came about, the server may have
// acted, or act yet.
func (e *APIError) noAnswer(err error) {
	if !isDialError(err) {
		e.mayHaveActed, e.unanswered = true, true
	}
}

// Unwrap returns the cause of the last try.
func (e *APIError) Unwrap() error { return e.Err }

// callError is the error of a call that ended before a server was asked.
func callError(api, subject string, cause error) error {
	final := errors.Is(cause, ErrClosed) || errors.Is(cause, ErrDeregistered)
	return &APIError{API: api, Subject: subject, Retryable: !final, Err: cause}
}

// mayHaveActed says whether a server may have done what was asked of it although err came back.
func mayHaveActed(err error) bool {
	var failure *APIError
	return errors.As(err, &failure) && failure.mayHaveActed
}

// mayActYet says whether a server may still do what was asked of it although err came back.
func mayActYet(err error) bool {
	var failure *APIError
	return errors.As(err, &failure) && failure.unanswered
}

// ArgumentError is returned, before anything is sent, when an argument cannot be right.
type ArgumentError struct {
	Argument string // which one: "service", "group", "ip", "port", "weight", "option WithServers", ...
	Value    string // what was given, quoted where it is text; empty when there was nothing to show
	Rule     string // what is right
}

// Error says which argument is wrong, what it was and what is right.
func (e *ArgumentError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("nacos: invalid %s: %s", e.Argument, e.Rule)
	}
	return fmt.Sprintf("nacos: invalid %s %s: %s", e.Argument, e.Value, e.Rule)
}

// NoInstanceError is returned when a service is known but has no instance that may be chosen. Total 0:
// nobody is registered, or there is no such service (servers do not tell these apart). Healthy 0 with a
// Total above 0: everybody is unhealthy. Healthy above 0: the healthy ones are disabled, have weight 0 or
// were refused by Where. When Nacos itself cannot be reached the error is an *APIError instead.
type NoInstanceError struct {
	Service  string // name without group
	Group    string
	Clusters []string // those the lookup was limited to; empty: all
	Total    int      // instances in the list
	Healthy  int      // of these, healthy ones
	Source   Source   // where the list is from
}

// Error tells how many instances there are and why none can be chosen.
func (e *NoInstanceError) Error() string {
	name := groupedName(e.Group, e.Service)
	if len(e.Clusters) > 0 {
		name += " in " + strings.Join(e.Clusters, ", ")
	}
	switch {
	case e.Total == 0:
		return fmt.Sprintf("nacos: no instance of %s: the list is empty (from %s)", name, e.Source)
	case e.Healthy == 0:
		return fmt.Sprintf("nacos: no instance of %s: all %d are unhealthy (from %s)", name, e.Total, e.Source)
	default:
		return fmt.Sprintf("nacos: no instance of %s: none of %d (%d healthy) is enabled, has weight and passes the filter (from %s)",
			name, e.Total, e.Healthy, e.Source)
	}
}
