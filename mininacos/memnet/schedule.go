package memnet

import (
	"math"
	"math/rand/v2"
	"time"
)

// never is the instant of what waits for an event rather than for the clock: a
// deadline that is not set, a delivery that a black hole holds back.
const never = math.MaxInt64

// Every host has a lane: its deliveries arrive at instants that are equal to
// the lane modulo lanes. firstSpan is among how many of those, one every lanes
// nanoseconds, the instant of a delivery is drawn at first.
const (
	lanes     = 256
	firstSpan = 4
)

// pruneAt is the number of remembered instants at which those that are past
// are forgotten.
const pruneAt = 1024

// schedule gives every delivery of a network an instant of its own. Instants
// are nanoseconds since start. Network.mu guards it.
//
// Why unique: when two deliveries share an instant, two goroutines become
// runnable at once and the Go scheduler decides which goes first, so a run in
// virtual time does not repeat. With one delivery an instant, it does.
//
// Why lanes: goroutines on several hosts that do act at one instant (all
// clients start at noon) ask for instants in an order that is the scheduler's
// too. As hosts never compete for an instant, that order does not matter.
type schedule struct {
	start time.Time
	taken map[int64]struct{} // instants given out, the past ones pruned now and then
	prune int                // size of taken at which to prune next
}

func newSchedule() schedule {
	return schedule{start: time.Now(), taken: make(map[int64]struct{}), prune: pruneAt}
}

// now returns the present instant.
func (s *schedule) now() int64 { return int64(time.Since(s.start)) }

// at converts a deadline to an instant; the zero time means never.
func (s *schedule) at(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return int64(t.Sub(s.start))
}

// instant returns a free instant in a lane, later than both base and after, and
// takes it. r draws it from the next few; the range doubles until a free one is
// found, so that thousands of deliveries from one instant stay cheap.
func (s *schedule) instant(lane int64, r *rand.PCG, base, after int64) int64 {
	if len(s.taken) >= s.prune {
		s.forget()
	}
	first := max(base, after) + 1
	first += (lane - first) & (lanes - 1)
	for span := uint64(firstSpan); ; span *= 2 {
		at := first + lanes*int64(r.Uint64()%span)
		if _, used := s.taken[at]; !used {
			s.taken[at] = struct{}{}
			return at
		}
	}
}

// forget drops the instants that are past. An instant equal to now stays: it
// cannot be given out again, but one below it neither, as instants lie ahead.
func (s *schedule) forget() {
	now := s.now()
	for at := range s.taken {
		if at < now {
			delete(s.taken, at)
		}
	}
	s.prune = max(pruneAt, 2*len(s.taken))
}

// newStream returns the source of chance of one flow. It depends on the seed
// and on the name of the flow only, never on what other flows drew before: so
// hosts that act at the same instant do not change each other's chances.
func newStream(seed uint64, name string, ordinal uint64) rand.PCG {
	// FNV-1a: hash/maphash differs from process to process.
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return *rand.NewPCG(seed, h^(ordinal*0x9e3779b97f4a7c15))
}

// chance reports an event of the given probability. It draws nothing for 0, so
// that links without faults cost nothing.
func chance(r *rand.PCG, probability float64) bool {
	if !(probability > 0) {
		return false
	}
	return float64(r.Uint64()>>11)/(1<<53) < probability
}

// jitter draws a duration from [0, most].
func jitter(r *rand.PCG, most time.Duration) int64 {
	if most <= 0 {
		return 0
	}
	return int64(r.Uint64() % (uint64(most) + 1))
}

// laneOf returns the lane of the host made as number index: a different one for
// each of the first hosts, and with another seed another one.
func laneOf(seed uint64, index int) int64 {
	return int64((uint64(index)*(seed>>8|1) + seed) % lanes)
}
