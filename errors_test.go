package nacos

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// Texts are for people: they say what was asked, of whom, and what came back.
func TestErrorTexts(t *testing.T) {
	leakcheck.Check(t)
	cause := errors.New("connection refused")
	for want, err := range map[string]error{
		"nacos: list DEFAULT_GROUP@@orders: tried a:1, b:1; b:1: connection refused":                                 &APIError{API: "list", Subject: "DEFAULT_GROUP@@orders", Servers: []string{"a:1", "b:1"}, Server: "b:1", Err: cause},
		"nacos: status: a:1: status 500: caused: no leader;":                                                         &APIError{API: "status", Servers: []string{"a:1"}, Server: "a:1", Status: 500, Message: "caused: no leader;"},
		"nacos: status: a:1: status 404: no such API: hint":                                                          &APIError{API: "status", Server: "a:1", Status: 404, Err: errors.New("no such API"), Message: "hint"},
		"nacos: register g@@s 1.2.3.4:5: naming service is closed":                                                   callError("register", "g@@s 1.2.3.4:5", ErrClosed),
		"nacos: invalid port 0: must be within 1 and 65535":                                                          &ArgumentError{Argument: "port", Value: "0", Rule: "must be within 1 and 65535"},
		"nacos: invalid instance: must come from NewInstance":                                                        &ArgumentError{Argument: "instance", Rule: "must come from NewInstance"},
		"nacos: no instance of g@@s: the list is empty (from poll)":                                                  &NoInstanceError{Group: "g", Service: "s", Source: SourcePoll},
		"nacos: no instance of g@@s in a, b: the list is empty (from poll)":                                          &NoInstanceError{Group: "g", Service: "s", Clusters: []string{"a", "b"}, Source: SourcePoll},
		"nacos: no instance of g@@s: all 2 are unhealthy (from poll)":                                                &NoInstanceError{Group: "g", Service: "s", Total: 2, Source: SourcePoll},
		"nacos: no instance of g@@s: none of 2 (1 healthy) is enabled, has weight and passes the filter (from none)": &NoInstanceError{Group: "g", Service: "s", Total: 2, Healthy: 1},
	} {
		assert.EqualError(t, err, want)
	}
	assert.ErrorIs(t, &APIError{Err: cause}, cause)
	assert.False(t, callError("register", "", ErrClosed).(*APIError).Retryable, "a closed client stays closed")
	assert.False(t, callError("update", "", ErrDeregistered).(*APIError).Retryable, "and a deregistered instance gone")
	assert.False(t, mayHaveActed(callError("register", "", cause)))
	assert.True(t, mayHaveActed(&APIError{mayHaveActed: true}))
}
