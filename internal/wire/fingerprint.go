package wire

import "hash/maphash"

// seed differs between processes, so that nobody can make a body with the fingerprint of another one. It never changes.
var seed = maphash.MakeSeed()

// Fingerprint recognizes an instance list that did not change but for the time at which the server wrote it (rule H7),
// without keeping the body: it is a hash of what stands before the digits of lastRefTime and one of what follows. It is
// comparable; the zero value matches nothing.
type Fingerprint struct {
	before, after uint64
	start         int // offset of the digits
	rest          int // bytes behind the digits; never 0, an object ends with a brace
}

// newFingerprint returns the one of body, whose lastRefTime has its digits at start; zero without digits there.
func newFingerprint(body []byte, start int) Fingerprint {
	if start == 0 {
		return Fingerprint{}
	}
	_, end, ok := timeAt(body, start)
	if !ok {
		return Fingerprint{}
	}
	return Fingerprint{
		before: maphash.Bytes(seed, body[:start]),
		after:  maphash.Bytes(seed, body[end:]),
		start:  start,
		rest:   len(body) - end,
	}
}

// Match tells whether body is the fingerprinted one, but for the digits of lastRefTime, which it returns (ms). It
// compares by hash: another body matches with a probability of 2^-64.
func (f Fingerprint) Match(body []byte) (lastRefTime int64, same bool) {
	if f.rest == 0 || len(body) <= f.start+f.rest {
		return 0, false
	}
	v, end, ok := timeAt(body, f.start)
	if !ok || len(body)-end != f.rest ||
		maphash.Bytes(seed, body[:f.start]) != f.before || maphash.Bytes(seed, body[end:]) != f.after {
		return 0, false
	}
	return v, true
}

// timeAt reads the digits of a JSON number from start on; ok is false if there are none, for zeros in front, which JSON
// does not have, beyond the range of an int64, and where a fraction or an exponent follows.
func timeAt(body []byte, start int) (v int64, end int, ok bool) {
	end = start
	for end < len(body) && isDigit(body[end]) {
		if end-start == len("9223372036854775807") {
			return 0, 0, false
		}
		end++
	}
	if end == start || end == len(body) || body[start] == '0' && end > start+1 {
		return 0, 0, false
	}
	switch body[end] {
	case '.', 'e', 'E':
		return 0, 0, false
	}
	for _, c := range body[start:end] {
		v = 10*v + int64(c-'0') // wraps below zero, for there are at most 19 digits
	}
	return v, end, v >= 0
}
