package nacos

import (
	"iter"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Metadata keys that Nacos gives a meaning. Values are whole milliseconds in decimal digits; anything else
// counts as absent.
const (
	MetadataBeatInterval  = wire.MetaBeatInterval  // time between heartbeats; default 5000
	MetadataBeatTimeout   = wire.MetaBeatTimeout   // unhealthy after this long without one; default 15000
	MetadataDeleteTimeout = wire.MetaDeleteTimeout // removed after this long without one; default 30000
)

// Metadata is an immutable set of key-value pairs. Its zero value is empty. Equal metadata of the instances
// of a service share memory. It is safe for concurrent use.
type Metadata struct {
	pairs wire.Metadata // sorted by key, never changed
}

// NewMetadata returns metadata with the pairs of m, which is copied.
func NewMetadata(m map[string]string) Metadata {
	return Metadata{pairs: wire.NewMetadata(m)}
}

// Get returns the value of key, or "" when there is none.
func (m Metadata) Get(key string) string {
	v, _ := m.pairs.Lookup(key)
	return v
}

// Lookup returns the value of key and whether there is one.
func (m Metadata) Lookup(key string) (string, bool) { return m.pairs.Lookup(key) }

// Len returns the number of pairs.
func (m Metadata) Len() int { return len(m.pairs) }

// All iterates over the pairs in the order of their keys.
func (m Metadata) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, p := range m.pairs {
			if !yield(p.Key, p.Value) {
				return
			}
		}
	}
}

// Map returns the pairs as a new map that belongs to the caller.
func (m Metadata) Map() map[string]string {
	out := make(map[string]string, len(m.pairs))
	for _, p := range m.pairs {
		out[p.Key] = p.Value
	}
	return out
}

// Equal reports whether both have the same pairs.
func (m Metadata) Equal(o Metadata) bool { return m.pairs.Equal(o.pairs) }

// String returns the pairs as a JSON object with sorted keys.
func (m Metadata) String() string { return string(m.pairs.AppendJSON(nil)) }
