package wire

import "math"

// text reads a string, or the text of a number or boolean; ok is false for null and after a fault.
func (s *scanner) text(field string) (text []byte, ok bool) {
	switch c := s.peek(); {
	case c == '"':
		text = s.quoted()
	case c == '-' || isDigit(c):
		text = s.number()
	case c == 't' && s.literal("true"):
		text = []byte("true")
	case c == 'f' && s.literal("false"):
		text = []byte("false")
	case s.null():
		return nil, false
	default:
		s.wrongType(field)
	}
	return text, s.err == nil
}

// string reads a string, or the text of a number or boolean; "" for null and after a fault.
func (s *scanner) string(field string) string {
	text, _ := s.text(field)
	return string(text)
}

// integer reads an integer, also in a string or with a fraction of zero; ok is false for null and after a fault.
func (s *scanner) integer(field string) (v int64, ok bool) {
	at := s.pos
	text, ok := s.text(field)
	if !ok {
		return 0, false
	}
	it := s.iterator(text)
	if v = it.ReadInt64(); drained(it) {
		return v, true
	}
	if f, ok := s.parseFloat(text); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), true
	}
	s.fail(KindType, field, at)
	return 0, false
}

// float reads a number, also in a string; ok is false for null and after a fault. Java writes those that JSON has no
// number for as the strings "NaN", "Infinity" and "-Infinity".
func (s *scanner) float(field string) (f float64, ok bool) {
	at := s.pos
	text, ok := s.text(field)
	if !ok {
		return 0, false
	}
	switch string(text) {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	if f, ok = s.parseFloat(text); !ok {
		s.fail(KindType, field, at)
	}
	return f, ok
}

// parseFloat gives the whole number to the Iterator, which rounds it well then (by strconv); amid a longer text it may
// divide a rounded integer by a power of ten.
func (s *scanner) parseFloat(text []byte) (float64, bool) {
	it := s.iterator(text)
	f := it.ReadFloat64()
	return f, drained(it)
}

// boolean reads true or false, also in a string; ok is false for null and after a fault.
func (s *scanner) boolean(field string) (v, ok bool) {
	at := s.pos
	switch s.peek() {
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	}
	text, ok := s.text(field)
	if !ok {
		return false, false
	}
	switch string(text) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	s.fail(KindType, field, at)
	return false, false
}

// textPair is an entry of an object of strings.
type textPair struct {
	key, value []byte
	at         int // offset of value in the text, 0 if it does not stand there as it is
}

// readPairs reads the object of strings that is the value of field into pairs. Values that are numbers or booleans
// become their text, null becomes "".
func (s *scanner) readPairs(field string) {
	s.pairs = s.pairs[:0]
	if !s.openObject(field) {
		return
	}
	for first := true; ; first = false {
		key, ok := s.key(first)
		if !ok {
			return
		}
		at := s.pos
		value, _ := s.text(field)
		if s.pos-at == len(value)+len(`""`) {
			at++
		} else {
			at = 0
		}
		s.pairs = append(s.pairs, textPair{key, value, at})
	}
}

// madePairs makes Metadata of pairs. Their values become parts of text, which is what buf holds from start on.
func (s *scanner) madePairs(text string, start int, keys *interner) Metadata {
	made := make(Metadata, 0, len(s.pairs))
	for _, p := range s.pairs {
		value := ""
		if p.at > 0 {
			value = text[p.at-start:][:len(p.value)]
		} else {
			value = string(p.value)
		}
		made = append(made, Pair{keys.of(p.key), value})
	}
	return normalized(made)
}

// metadata reads the object of strings that is the value of field.
func (s *scanner) metadata(field string) Metadata {
	start := s.pos
	s.readPairs(field)
	if s.err != nil || len(s.pairs) == 0 {
		return nil
	}
	return s.madePairs(string(s.buf[start:s.pos]), start, new(interner))
}
