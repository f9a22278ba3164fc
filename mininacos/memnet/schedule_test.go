package memnet

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// Instants are unique, in their lane, and later than asked, however many are
// drawn at once.
func TestScheduleInstantsAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule()
		r := rand.NewPCG(1, 2)
		seen := make(map[int64]bool)
		for i := range 20_000 {
			lane, base, after := int64(i%3), int64(i%5)*100, int64(i%7)*300
			at := s.instant(lane, r, base, after)
			if seen[at] || at <= base || at <= after || at%lanes != lane {
				t.Fatalf("instant(%d, %d, %d) = %d, seen before: %t", lane, base, after, at, seen[at])
			}
			seen[at] = true
		}
	})
}

// Past instants are forgotten: a network that runs for ever does not grow.
func TestScheduleForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule()
		r := rand.NewPCG(1, 2)
		for range 100 * pruneAt {
			s.instant(0, r, s.now(), 0)
			time.Sleep(10 * time.Microsecond)
		}
		if len(s.taken) > 2*pruneAt {
			t.Errorf("%d instants are remembered", len(s.taken))
		}
	})
}

func TestLaneOf(t *testing.T) {
	leakcheck.Check(t)
	for _, seed := range []uint64{0, 1, 255, 256, 1 << 40, ^uint64(0)} {
		seen := make(map[int64]bool)
		for i := range lanes {
			lane := laneOf(seed, i)
			if lane < 0 || lane >= lanes || seen[lane] {
				t.Errorf("seed %d, host %d: lane %d is out of range or taken", seed, i, lane)
			}
			seen[lane] = true
		}
	}
}

func TestChanceAndJitter(t *testing.T) {
	leakcheck.Check(t)
	r := rand.NewPCG(1, 2)
	for _, p := range []float64{0, 0.1, 0.5, 1, -1, 2} {
		hits := 0
		for range 10_000 {
			if chance(r, p) {
				hits++
			}
		}
		want := int(10_000 * min(max(p, 0), 1))
		if hits < want-200 || hits > want+200 {
			t.Errorf("chance %v: %d of 10000", p, hits)
		}
	}
	for range 1000 {
		if got := jitter(r, 5); got < 0 || got > 5 {
			t.Errorf("jitter = %d", got)
		}
	}
	if jitter(r, 0) != 0 || jitter(r, -1) != 0 {
		t.Error("no jitter is not 0")
	}
}

// Streams of other seeds, names and ordinals differ; the same ones are equal.
func TestNewStream(t *testing.T) {
	leakcheck.Check(t)
	first := func(seed uint64, name string, ordinal uint64) uint64 {
		r := newStream(seed, name, ordinal)
		return r.Uint64()
	}
	seen := make(map[uint64]bool)
	for seed := range uint64(3) {
		for _, name := range []string{"a", "b", "ab"} {
			for ordinal := range uint64(3) {
				v := first(seed, name, ordinal)
				if seen[v] {
					t.Errorf("%d %s %d: a stream twice", seed, name, ordinal)
				}
				seen[v] = true
				if v != first(seed, name, ordinal) {
					t.Errorf("%d %s %d: not repeatable", seed, name, ordinal)
				}
			}
		}
	}
}
