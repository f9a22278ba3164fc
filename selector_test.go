package nacos

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// weighed makes a list of instances with these weights, at ports from 0 on.
func weighed(weights ...float64) []Instance {
	list := make([]Instance, len(weights))
	for i, w := range weights {
		list[i] = at(i, weight(w))
	}
	return list
}

func everyone(Instance) bool { return true }

// H12: each is chosen as often as its weight says, both with and without a filter.
func TestChoicesFollowTheWeights(t *testing.T) {
	leakcheck.Check(t)
	const tiny, huge = math.SmallestNonzeroFloat64, math.MaxFloat64
	for name, c := range map[string]struct {
		weights []float64
		shares  []float64 // in proportion
	}{
		"one":                 {[]float64{7}, []float64{1}},
		"equal":               {[]float64{3, 3, 3}, []float64{1, 1, 1}},
		"whole":               {[]float64{1, 2, 3, 4}, []float64{1, 2, 3, 4}},
		"all below one":       {[]float64{0.001, 0.002, 0.005}, []float64{1, 2, 5}},
		"far apart":           {[]float64{0.5, 10000}, []float64{0.5, 10000}},
		"tiny":                {[]float64{1e-300, 3e-300}, []float64{1, 3}},
		"as tiny as can be":   {[]float64{tiny, 3 * tiny}, []float64{1, 3}},
		"a tiny one":          {[]float64{tiny, 1}, []float64{0, 1}},
		"huge":                {[]float64{huge, huge / 2, huge}, []float64{2, 1, 2}},
		"a huge one":          {[]float64{1, huge}, []float64{0, 1}},
		"infinite":            {[]float64{math.Inf(1), 5000}, []float64{2, 1}},
		"all infinite":        {[]float64{math.Inf(1), math.Inf(1)}, []float64{1, 1}},
		"no number":           {[]float64{math.NaN(), 3}, []float64{1, 3}},
		"many of few weights": {[]float64{1, 1, 1, 1, 5, 1, 1, 1, 1, 5}, []float64{1, 1, 1, 1, 5, 1, 1, 1, 1, 5}},
	} {
		list := weighed(c.weights...)
		rnd := newRandom(rand.NewPCG(1, 2))
		pick := newPicker(len(list), func(i int) float64 { return effectiveWeight(list[i].Weight) })
		assertShares(t, name, c.shares, func() int { return pick.pick(rnd.Uint64()) })
		assertShares(t, name+", filtered", c.shares, func() int {
			in, ok := pickWhere(list, everyone, rnd)
			assert.True(t, ok)
			return in.Port
		})
	}
}

// assertShares compares how often pick gives each index with what shares say, by chi-square: with the fixed
// source of the tests a value beyond the 99.99 % bound is a fault, not bad luck.
func assertShares(t *testing.T, name string, shares []float64, pick func() int) {
	t.Helper()
	const draws = 20_000
	counts := make([]float64, len(shares))
	for range draws {
		counts[pick()]++
	}
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	chi := 0.0
	for i, s := range shares {
		if s == 0 {
			assert.Zero(t, counts[i], name)
			continue
		}
		want := draws * s / sum
		chi += (counts[i] - want) * (counts[i] - want) / want
	}
	freedom := float64(len(shares) - 1)
	assert.LessOrEqual(t, chi, freedom+4*math.Sqrt(2*freedom)+12, "%s: %v", name, counts)
}

// H12: a filter chooses among those that pass, by their weights; none passes: none.
func TestAFilteredChoice(t *testing.T) {
	leakcheck.Check(t)
	rnd := newRandom(rand.NewPCG(1, 2))
	list := weighed(1, 100, 3)
	assertShares(t, "odd ones out", []float64{1, 0, 3}, func() int {
		in, _ := pickWhere(list, func(in Instance) bool { return in.Port != 1 }, rnd)
		return in.Port
	})
	_, ok := pickWhere(list, func(Instance) bool { return false }, rnd)
	assert.False(t, ok)
	_, ok = pickWhere(nil, everyone, rnd)
	assert.False(t, ok)
}

// The smallest and the largest random numbers stay within the list.
func TestChoicesStayWithinTheList(t *testing.T) {
	leakcheck.Check(t)
	for _, weights := range [][]float64{{1}, {1, 1}, {1, 2}, {1e-320, 1, 10000}, {0.1, 0.2, 0.3, 0.4, 0.7, 0.9, 1e-9}} {
		list := weighed(weights...)
		pick := newPicker(len(list), func(i int) float64 { return list[i].Weight })
		for _, r := range []uint64{0, 1, math.MaxUint32, 1 << 32, math.MaxUint64, math.MaxUint64 - 1} {
			assert.Less(t, pick.pick(r), len(list))
			assert.GreaterOrEqual(t, pick.pick(r), 0)
			rnd := newRandom(fixed(r))
			_, ok := pickWhere(list, everyone, rnd)
			assert.True(t, ok)
			assert.Less(t, rnd.float(), 1.0)
			assert.Less(t, rnd.intn(3), 3)
		}
	}
}

// fixed is a source of one number.
type fixed uint64

func (f fixed) Uint64() uint64 { return uint64(f) }

// H11: what a choice may return at all.
func TestSelectable(t *testing.T) {
	leakcheck.Check(t)
	for w, want := range map[float64]bool{1: true, 0: false, math.Copysign(0, -1): false, -1: false, math.Inf(-1): false,
		math.Inf(1): true, math.SmallestNonzeroFloat64: true} {
		in := at(1, weight(w))
		assert.Equal(t, want, in.selectable(), w)
		disabled(&in)
		assert.False(t, in.selectable())
	}
	in := at(1, weight(math.NaN()))
	assert.True(t, in.selectable(), "no number counts as 1")
}
