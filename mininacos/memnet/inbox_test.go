package memnet

import (
	"bytes"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// FuzzInbox drives an inbox by a script and compares it with a plain list of
// bytes with the instants at which they arrive.
func FuzzInbox(f *testing.F) {
	f.Add([]byte{0, 10, 1, 200, 3, 5, 2, 100, 4, 0, 5, 0, 1, 255, 3, 255, 2, 255})
	f.Add([]byte{0, 255, 0, 255, 3, 200, 1, 9, 0, 255, 3, 255, 1, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			return // a step takes as long as the inbox is full
		}
		type arrival struct {
			at int64
			b  byte
		}
		var (
			q      inbox
			model  []arrival
			now    int64
			sample byte
		)
		for i := 0; i+1 < len(script); i += 2 {
			arg := int64(script[i+1])
			switch script[i] % 6 {
			case 0: // arrives in a while
				at := max(now, q.last) + 1 + arg
				b := make([]byte, arg)
				for j := range b {
					sample++
					b[j] = sample
					model = append(model, arrival{at, sample})
				}
				if len(b) > 0 {
					q.push(at, data, b)
				}
			case 1:
				b := make([]byte, arg)
				n := q.read(b, now)
				var want []byte
				for len(want) < len(b) && len(model) > 0 && model[0].at <= now {
					want = append(want, model[0].b)
					model = model[1:]
				}
				if !bytes.Equal(b[:n], want) {
					t.Fatalf("step %d: read % x, want % x", i, b[:n], want)
				}
			case 2:
				now += arg
			case 3:
				q.hold(now)
				for j := range model {
					if model[j].at > now {
						model[j].at = never
					}
				}
				// Released at once: nothing with an instant follows what is held back.
				q.release(func(after int64) int64 { return max(now, after) + 1 + arg })
				// Take the new instants over from the inbox; what is checked is the order.
				j := 0
				for _, s := range q.segs[q.head:] {
					for range s.n {
						if model[j].at != never && model[j].at != s.at {
							t.Fatalf("step %d: an arrived byte moved", i)
						}
						model[j].at = s.at
						j++
					}
				}
				if j != len(model) {
					t.Fatalf("step %d: %d bytes, want %d", i, j, len(model))
				}
			case 4:
				q.drop(now)
				for len(model) > 0 && model[len(model)-1].at > now {
					model = model[:len(model)-1]
				}
			case 5:
				if q.broken(now) || q.finished(now) {
					t.Fatalf("step %d: ended", i)
				}
			}
			if q.size() != len(model) {
				t.Fatalf("step %d: size %d, want %d", i, q.size(), len(model))
			}
			at := int64(0)
			for _, s := range q.segs[q.head:] {
				if s.at <= at || s.n == 0 {
					t.Fatalf("step %d: segments %v are not in order", i, q.segs[q.head:])
				}
				at = s.at
			}
		}
	})
}

func TestInboxEnds(t *testing.T) {
	leakcheck.Check(t)
	var q inbox
	q.push(10, data, []byte("x"))
	q.push(20, fin, nil)
	q.push(30, reset, nil)
	for now, want := range map[int64][2]bool{0: {false, false}, 20: {true, false}, 30: {true, true}} {
		if got := [2]bool{q.finished(now), q.broken(now)}; got != want {
			t.Errorf("at %d: finished, broken = %v, want %v", now, got, want)
		}
	}
	q.hold(15)
	if q.finished(1000) || q.broken(1000) {
		t.Error("held back, and arrived")
	}
	q.release(func(after int64) int64 { return after + 100 })
	if !q.finished(130) || q.broken(130) || !q.broken(230) {
		t.Errorf("released: %v, reset at %d", q.segs, q.resetAt)
	}
	q.drop(15)
	if q.resetAt != 0 || q.size() != 1 {
		t.Errorf("dropped: %v, reset at %d", q.segs, q.resetAt)
	}
}

// An inbox that is empty keeps no large buffer.
func TestInboxShrinks(t *testing.T) {
	leakcheck.Check(t)
	var q inbox
	b := make([]byte, window)
	q.push(1, data, b)
	if q.read(b, 1) != window || cap(q.buf) > keepBuf {
		t.Errorf("an empty inbox keeps %d bytes", cap(q.buf))
	}
}
