package nacos

import (
	"math"
	"math/rand/v2"
	"sync"
)

// random is where every random choice comes from: by default the runtime's generator, which is lock-free;
// a source that the user gave is used under a lock. Safe for concurrent use; the zero value is valid.
type random struct {
	mu  sync.Mutex // guards src
	src rand.Source
}

func newRandom(src rand.Source) *random { return &random{src: src} }

// Uint64 makes random a rand.Source.
func (r *random) Uint64() uint64 {
	if r.src == nil {
		return rand.Uint64()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Uint64()
}

// float returns a number in [0, 1).
func (r *random) float() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// intn returns a number in [0, n); n must be above 0.
func (r *random) intn(n int) int { return int(uint64(uint32(r.Uint64()>>32)) * uint64(n) >> 32) }

// picker chooses an index at random by weight in constant time, whatever the number of weights (Walker's
// alias method). A nil table means that all weights are equal. It is immutable.
type picker struct {
	n     int
	table []aliasSlot
}

// aliasSlot keeps its own index with a chance of keep/2^32 and yields other otherwise.
type aliasSlot struct {
	keep  uint32
	other uint32
}

// pick returns an index in [0, n) by r, a uniformly random number; n must be above 0.
func (p *picker) pick(r uint64) int {
	i := int((r >> 32) * uint64(p.n) >> 32)
	if p.table == nil {
		return i
	}
	if s := p.table[i]; uint32(r) >= s.keep {
		return int(s.other)
	}
	return i
}

// newPicker builds the table for weight(0) .. weight(n-1), all of them above 0 after effectiveWeight.
func newPicker(n int, weight func(int) float64) picker {
	p := picker{n: n}
	top, uniform := 0.0, true
	for i := range n {
		top = max(top, weight(i))
		uniform = uniform && weight(i) == weight(0)
	}
	if uniform {
		return p
	}
	sum := 0.0 // of weights divided by the largest, so that it cannot overflow
	for i := range n {
		sum += weight(i) / top
	}
	p.table = make([]aliasSlot, n)
	scaled := make([]float64, n) // mean 1
	queue := make([]int32, n)    // the small ones from the front, the large ones from the back
	small, large := 0, n
	for i := range n {
		scaled[i] = weight(i) / top / sum * float64(n)
		if scaled[i] < 1 {
			queue[small] = int32(i)
			small++
		} else {
			large--
			queue[large] = int32(i)
		}
	}
	// Each small slot is filled up from a large one, which may become small by it.
	for small > 0 && large < n {
		s, l := queue[small-1], queue[large]
		small--
		p.table[s] = aliasSlot{keep: fraction(scaled[s]), other: uint32(l)}
		scaled[l] -= 1 - scaled[s]
		if scaled[l] < 1 {
			large++
			queue[small] = l
			small++
		}
	}
	// What is left is 1 but for rounding.
	for _, i := range queue[:small] {
		p.table[i] = aliasSlot{other: uint32(i)}
	}
	for _, i := range queue[large:] {
		p.table[i] = aliasSlot{other: uint32(i)}
	}
	return p
}

func fraction(f float64) uint32 {
	return uint32(min(max(f, 0)*(1<<32), math.MaxUint32))
}

// effectiveWeight is the weight that counts in a choice (H12): an infinite weight counts as 10000, one
// that is no number as 1.
func effectiveWeight(w float64) float64 {
	switch {
	case math.IsNaN(w):
		return 1
	case math.IsInf(w, 1):
		return maxWeight
	default:
		return w
	}
}

// pickWhere chooses by weight among those instances that pass. Weights count as parts of the largest, so that
// their sum does not overflow and tiny ones keep their proportion.
func pickWhere(list []Instance, pass func(Instance) bool, rnd *random) (Instance, bool) {
	top := 0.0
	kept := make([]int32, 0, len(list))
	for i := range list {
		if pass(list[i]) {
			kept = append(kept, int32(i))
			top = max(top, effectiveWeight(list[i].Weight))
		}
	}
	if len(kept) == 0 {
		return Instance{}, false
	}
	sum := 0.0
	for _, i := range kept {
		sum += effectiveWeight(list[i].Weight) / top
	}
	at := rnd.float() * sum
	for _, i := range kept {
		if at -= effectiveWeight(list[i].Weight) / top; at < 0 {
			return list[i], true
		}
	}
	return list[kept[len(kept)-1]], true // rounding
}
