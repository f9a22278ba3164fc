package wire

import (
	"encoding/binary"
	"io"
	"math/bits"

	jsoniter "github.com/json-iterator/go"
)

// maxDepth bounds how deep objects and arrays may nest. Replies of servers nest four deep.
const maxDepth = 200

// scanner walks one JSON text. The first fault sticks and every later call does nothing, so that a decoder looks at err
// once, at its end. Slices that it returns alias the text or are fresh, and stay as they are.
type scanner struct {
	what string
	buf  []byte
	pos  int
	err  *DecodeError

	iter  *jsoniter.Iterator // made on first use
	pairs []textPair         // of the metadata in work
}

func newScanner(what string, text []byte) *scanner {
	return &scanner{what: what, buf: text}
}

// fail records a fault. A fault where the text ends is truncation, whatever was expected there.
func (s *scanner) fail(kind, field string, at int) {
	if s.err != nil {
		return
	}
	if at >= len(s.buf) && kind == KindSyntax {
		kind = KindTruncated
	}
	s.err = &DecodeError{What: s.what, Kind: kind, Field: field, Offset: at}
}

// begin goes to the start of the object that the text must hold.
func (s *scanner) begin() {
	if s.space(); s.pos == len(s.buf) {
		s.fail(KindEmpty, "", s.pos)
		return
	}
	switch c := s.buf[s.pos]; {
	case c == '<':
		s.fail(KindHTML, "", s.pos)
	case c != '{':
		// Another JSON value is a value of the wrong type, all else is no JSON.
		at := s.pos
		s.skip(0)
		s.fail(KindType, "", at)
	}
}

// end goes to the end of the text and returns the fault, if there was one.
func (s *scanner) end() error {
	if s.space(); s.err == nil && s.pos < len(s.buf) {
		s.fail(KindTrailing, "", s.pos)
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// space skips white space; servers write none, hence the short way.
func (s *scanner) space() {
	if s.pos < len(s.buf) && s.buf[s.pos] <= ' ' {
		s.spaces()
	}
}

func (s *scanner) spaces() {
	for s.pos < len(s.buf) {
		switch s.buf[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end of the text or after a fault.
func (s *scanner) peek() byte {
	if s.err != nil || s.pos >= len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// openObject steps into the object that is the value of field; null is none.
func (s *scanner) openObject(field string) bool { return s.open('{', field) }

// openArray steps into the array that is the value of field; null is none.
func (s *scanner) openArray(field string) bool { return s.open('[', field) }

func (s *scanner) open(bracket byte, field string) bool {
	if s.null() {
		return false
	}
	if s.peek() != bracket {
		s.wrongType(field)
		return false
	}
	s.pos++
	return true
}

// wrongType is the fault that a value is there, but not one that fits the field.
func (s *scanner) wrongType(field string) {
	at := s.pos
	s.skip(0)
	s.fail(KindType, field, at)
}

// key reads the next key of the object that openObject stepped into and goes to its value; false is the end of the
// object or a fault. first is true for the first call on an object.
func (s *scanner) key(first bool) ([]byte, bool) {
	if !s.more(first, '}') {
		return nil, false
	}
	if s.peek() != '"' {
		s.fail(KindSyntax, "", s.pos)
		return nil, false
	}
	key := s.quoted()
	if s.space(); s.peek() != ':' {
		s.fail(KindSyntax, "", s.pos)
		return nil, false
	}
	s.pos++
	s.space()
	return key, true
}

// more goes to the next element of the array that openArray stepped into; false is the end of the array or a fault.
func (s *scanner) more(first bool, bracket byte) bool {
	s.space()
	c := s.peek()
	if c == bracket && s.err == nil {
		s.pos++
		return false
	}
	if first {
		return s.err == nil
	}
	if c != ',' {
		s.fail(KindSyntax, "", s.pos)
		return false
	}
	s.pos++
	s.space()
	return true
}

// quoted reads the string whose opening quote is next.
func (s *scanner) quoted() []byte {
	start := s.pos + 1
	i := plainEnd(s.buf, start)
	switch {
	case i == len(s.buf):
		s.fail(KindTruncated, "", i)
		return nil
	case s.buf[i] == '"':
		s.pos = i + 1
		return s.buf[start:i:i]
	case s.buf[i] == '\\':
		return s.escaped(start, i)
	}
	s.fail(KindSyntax, "", i)
	return nil
}

// plainEnd returns the offset of the first quote, backslash or control character in buf from i on, len(buf) if there is
// none. It looks at eight bytes at once, for a list is mostly strings: a byte that is zero, or below a space, is one
// whose top bit a subtraction sets while it was clear before. Of those found the lowest is always right.
func plainEnd(buf []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(buf); i += 8 {
		x := binary.LittleEndian.Uint64(buf[i:])
		quote, backslash := x^('"'*ones), x^('\\'*ones)
		if found := ((quote-ones)&^quote | (backslash-ones)&^backslash | (x-' '*ones)&^x) & tops; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(buf) && buf[i] != '"' && buf[i] != '\\' && buf[i] >= ' ' {
		i++
	}
	return i
}

// escaped reads the string that starts at start and whose first backslash is at i.
func (s *scanner) escaped(start, i int) []byte {
	for ; i < len(s.buf) && s.buf[i] != '"'; i++ {
		if s.buf[i] == '\\' {
			i++
		} else if s.buf[i] < ' ' {
			s.fail(KindSyntax, "", i)
			return nil
		}
	}
	if i >= len(s.buf) {
		s.fail(KindTruncated, "", len(s.buf))
		return nil
	}
	it := s.iterator(s.buf[start-1 : i+1])
	text := it.ReadString()
	if !drained(it) {
		s.fail(KindSyntax, "", start)
		return nil
	}
	s.pos = i + 1
	return []byte(text)
}

// iterator returns the Iterator at the beginning of one value.
func (s *scanner) iterator(value []byte) *jsoniter.Iterator {
	if s.iter == nil {
		s.iter = jsoniter.NewIterator(jsoniter.ConfigCompatibleWithStandardLibrary)
	}
	s.iter.Error = nil
	return s.iter.ResetBytes(value)
}

// drained tells whether the Iterator read its value to the end and found no fault in it.
func drained(it *jsoniter.Iterator) bool {
	if it.Error == nil {
		it.WhatIsNext() // reports io.EOF when nothing is
	}
	return it.Error == io.EOF
}

// number reads the number that is next and returns its text.
func (s *scanner) number() []byte {
	start := s.pos
	i := start
	if s.at(i) == '-' {
		i++
	}
	switch c := s.at(i); {
	case c == '0':
		i++
	case isDigit(c):
		i = s.digits(i)
	default:
		s.fail(KindSyntax, "", i)
		return nil
	}
	if s.at(i) == '.' {
		i = s.someDigits(i + 1)
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		if i++; s.at(i) == '+' || s.at(i) == '-' {
			i++
		}
		i = s.someDigits(i)
	}
	if s.err != nil {
		return nil
	}
	s.pos = i
	return s.buf[start:i:i]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// at returns the byte at i, 0 beyond the end.
func (s *scanner) at(i int) byte {
	if i < len(s.buf) {
		return s.buf[i]
	}
	return 0
}

func (s *scanner) digits(i int) int {
	for isDigit(s.at(i)) {
		i++
	}
	return i
}

func (s *scanner) someDigits(i int) int {
	if !isDigit(s.at(i)) {
		s.fail(KindSyntax, "", i)
	}
	return s.digits(i)
}

// literal reads true, false or null if it is next and tells whether it was.
func (s *scanner) literal(word string) bool {
	rest := s.buf[s.pos:]
	if len(rest) >= len(word) {
		if string(rest[:len(word)]) != word {
			s.fail(KindSyntax, "", s.pos)
			return false
		}
		s.pos += len(word)
		return true
	}
	if string(rest) == word[:len(rest)] {
		s.fail(KindTruncated, "", len(s.buf))
	} else {
		s.fail(KindSyntax, "", s.pos)
	}
	return false
}

// null reads null if it is next and tells whether it was.
func (s *scanner) null() bool {
	return s.peek() == 'n' && s.literal("null")
}

// skip reads one value of any type. Deeper ones are read by recursion, hence the bound on depth.
func (s *scanner) skip(depth int) {
	switch c := s.peek(); c {
	case '{', '[':
		if depth == maxDepth {
			s.fail(KindTooDeep, "", s.pos)
			return
		}
		s.pos++
		if c == '[' {
			for first := true; s.more(first, ']'); first = false {
				s.skip(depth + 1)
			}
			return
		}
		for first := true; ; first = false {
			if _, ok := s.key(first); !ok {
				return
			}
			s.skip(depth + 1)
		}
	case '"':
		s.quoted()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		if c != '-' && !isDigit(c) {
			s.fail(KindSyntax, "", s.pos)
			return
		}
		s.number()
	}
}
