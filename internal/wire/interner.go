package wire

import "bytes"

// interner makes strings of equal bytes once. The zero value is empty.
type interner struct {
	recent [4]string // the last ones made or found, in no order: lists know few clusters
	next   int
	all    map[string]string
}

// of returns text as a string.
func (in *interner) of(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	for i := range in.recent {
		if in.recent[i] == string(text) {
			return in.recent[i]
		}
	}
	made, ok := in.all[string(text)]
	if !ok {
		made = string(text)
		if in.all == nil {
			in.all = make(map[string]string)
		}
		in.all[made] = made
	}
	in.recent[in.next] = made
	in.next = (in.next + 1) % len(in.recent)
	return made
}

// metadataInterner makes metadata of equal JSON once. The zero value is empty.
type metadataInterner struct {
	last     []byte // JSON of the host before
	lastMade Metadata
	all      map[string]Metadata // by JSON
	keys     interner
}

// of returns the metadata that is the next value in s.
func (in *metadataInterner) of(s *scanner) Metadata {
	start := s.pos
	// last is one whole value that ends by itself: text which begins with it holds the same one.
	if len(in.last) > 0 && s.err == nil && bytes.HasPrefix(s.buf[start:], in.last) {
		s.pos += len(in.last)
		return in.lastMade
	}
	s.readPairs("metadata")
	if s.err != nil || len(s.pairs) == 0 {
		return nil
	}
	text := s.buf[start:s.pos]
	made, ok := in.all[string(text)]
	if !ok {
		kept := string(text)
		made = s.madePairs(kept, start, &in.keys)
		if in.all == nil {
			in.all = make(map[string]Metadata)
		}
		in.all[kept] = made
	}
	in.last, in.lastMade = text, made
	return made
}
