package wire

import (
	"cmp"
	"slices"
	"strings"
)

// Pair is one entry of a Metadata.
type Pair struct{ Key, Value string }

// Metadata is a set of key-value pairs, sorted by key, without duplicate keys. It is never changed after it was made, so
// that many hosts may share one. Nil is the empty set, and the only form of it that this package makes.
type Metadata []Pair

// NewMetadata returns the entries of m; m is not kept.
func NewMetadata(m map[string]string) Metadata {
	if len(m) == 0 {
		return nil
	}
	pairs := make(Metadata, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, Pair{k, v})
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return cmp.Compare(a.Key, b.Key) })
	return pairs
}

// Lookup returns the value of key and whether there is one.
func (m Metadata) Lookup(key string) (string, bool) {
	i, ok := slices.BinarySearchFunc(m, key, func(p Pair, key string) int { return cmp.Compare(p.Key, key) })
	if !ok {
		return "", false
	}
	return m[i].Value, true
}

// Equal reports whether both hold the same pairs. Two that share memory are compared in no time.
func (m Metadata) Equal(o Metadata) bool {
	if len(m) != len(o) {
		return false
	}
	return len(m) == 0 || &m[0] == &o[0] || slices.Equal(m, o)
}

// AppendJSON appends m as a JSON object, {"k":"v",...}, and returns the extended slice.
func (m Metadata) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, p := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, p.Key)
		dst = append(dst, ':')
		dst = appendString(dst, p.Value)
	}
	return append(dst, '}')
}

// normalized makes pairs, which it changes, a Metadata; of those with one key the last stays.
func normalized(pairs []Pair) Metadata {
	byKey := func(a, b Pair) int { return cmp.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(pairs, byKey) {
		slices.SortStableFunc(pairs, byKey)
	}
	kept := pairs[:0]
	for i, p := range pairs {
		if i+1 == len(pairs) || pairs[i+1].Key != p.Key {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return slices.Clip(kept)
}

// ParseMetadata reads a metadata parameter as Nacos 2.3.2 does (capture 006): a JSON object of strings, or, when it is
// no such thing, k=v pairs joined by commas. Blank text is empty metadata. Like there, what follows a JSON object is not
// looked at, numbers and booleans become their text, and an entry must have exactly one "=" between two parts of which
// the second is not empty. The error is a *DecodeError.
func ParseMetadata(text string) (Metadata, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	s := newScanner("metadata", []byte(text))
	s.space()
	if m := s.metadata("metadata"); s.err == nil {
		return m, nil
	}
	return parsePairs(text)
}

func parsePairs(text string) (Metadata, error) {
	entries := javaSplit(text, ",")
	pairs := make([]Pair, 0, len(entries))
	offset := 0
	for _, entry := range entries {
		parts := javaSplit(entry, "=")
		if len(parts) != 2 {
			return nil, &DecodeError{What: "metadata", Kind: KindSyntax, Offset: offset}
		}
		pairs = append(pairs, Pair{parts[0], parts[1]})
		offset += len(entry) + len(",")
	}
	return normalized(pairs), nil
}

// javaSplit splits as Java's String.split does, which drops empty parts at the end.
func javaSplit(s, sep string) []string {
	parts := strings.Split(s, sep)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}
