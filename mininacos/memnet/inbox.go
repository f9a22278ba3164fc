package memnet

// kind tells what a segment carries.
type kind uint8

const (
	data  kind = iota
	fin        // the sender writes no more
	reset      // the connection is broken; nothing follows it
)

// segment is one delivery: n bytes, or the end of the stream.
type segment struct {
	at   int64 // when it arrives; never while a black hole holds it back
	n    int
	kind kind
}

// keepBuf is the largest buffer that an empty inbox keeps, in bytes.
const keepBuf = 8 << 10

// inbox is what is on its way to, or waits at, one end of a TCP connection, in
// the order of arrival. It knows no clock. Network.mu guards it.
type inbox struct {
	segs    []segment
	head    int    // index of the first segment in segs
	buf     []byte // the bytes of all data segments
	off     int    // where the unread part of buf begins
	last    int64  // latest instant given to a segment: later ones come after it
	resetAt int64  // when the reset arrives; 0: there is none
}

// size returns the number of bytes not read yet, those on their way included.
func (q *inbox) size() int { return len(q.buf) - q.off }

// first returns the next segment, nil if there is none.
func (q *inbox) first() *segment {
	if q.head == len(q.segs) {
		return nil
	}
	return &q.segs[q.head]
}

// push appends a segment that arrives at the instant at.
func (q *inbox) push(at int64, k kind, b []byte) {
	if q.off > 0 && len(q.buf)+len(b) > cap(q.buf) {
		n := copy(q.buf, q.buf[q.off:])
		q.buf, q.off = q.buf[:n], 0
	}
	if q.head > 0 && len(q.segs) == cap(q.segs) {
		n := copy(q.segs, q.segs[q.head:])
		q.segs, q.head = q.segs[:n], 0
	}
	q.buf = append(q.buf, b...)
	q.segs = append(q.segs, segment{at, len(b), k})
	if at != never {
		q.last = at
	}
	if k == reset {
		q.resetAt = at
	}
}

// read moves bytes that have arrived by now to b.
func (q *inbox) read(b []byte, now int64) (n int) {
	for n < len(b) {
		s := q.first()
		if s == nil || s.kind != data || s.at > now {
			break
		}
		m := copy(b[n:], q.buf[q.off:q.off+s.n])
		n += m
		q.off += m
		s.n -= m
		if s.n > 0 {
			break
		}
		q.head++
	}
	if q.off == len(q.buf) {
		q.buf, q.off = q.buf[:0], 0
		if cap(q.buf) > keepBuf {
			q.buf = nil
		}
	}
	if q.head == len(q.segs) {
		q.segs, q.head = q.segs[:0], 0
	}
	return n
}

// finished reports whether the end of the stream has arrived by now.
func (q *inbox) finished(now int64) bool {
	for _, s := range q.segs[q.head:] {
		if s.kind == fin {
			return s.at <= now
		}
	}
	return false
}

// broken reports whether a reset has arrived by now.
func (q *inbox) broken(now int64) bool { return q.resetAt != 0 && q.resetAt <= now }

// hold keeps back what has not arrived by now.
func (q *inbox) hold(now int64) {
	for i := q.head; i < len(q.segs); i++ {
		if q.segs[i].at > now {
			q.segs[i].at = never
		}
	}
	if q.resetAt > now {
		q.resetAt = never
	}
}

// release gives everything that is held back an instant, in order.
func (q *inbox) release(instant func(after int64) int64) {
	for i := q.head; i < len(q.segs); i++ {
		s := &q.segs[i]
		if s.at != never {
			continue
		}
		s.at = instant(q.last)
		q.last = s.at
		if s.kind == reset {
			q.resetAt = s.at
		}
	}
}

// drop loses what has not arrived by now, or is held back.
func (q *inbox) drop(now int64) {
	for len(q.segs) > q.head {
		s := q.segs[len(q.segs)-1]
		if s.at <= now {
			break
		}
		q.buf = q.buf[:len(q.buf)-s.n]
		q.segs = q.segs[:len(q.segs)-1]
		if s.kind == reset {
			q.resetAt = 0
		}
	}
}

// clear loses everything, and the memory for it.
func (q *inbox) clear() { q.segs, q.head, q.buf, q.off = nil, 0, nil, 0 }
