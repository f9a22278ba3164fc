package timerpool

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func TestGridFloor(t *testing.T) {
	leakcheck.Check(t)
	origin := time.Date(2024, 5, 1, 12, 0, 0, 123, time.UTC)
	for _, c := range []struct {
		name       string
		origin     time.Time
		step       time.Duration
		time, want time.Duration // from origin
	}{
		{"on a point", origin, 500, 1500, 1500},
		{"just after a point", origin, 500, 1501, 1500},
		{"just before a point", origin, 500, 1999, 1500},
		{"the origin", origin, 500, 0, 0},
		{"before the origin", origin, 500, -1, -500},
		{"before the origin, on a point", origin, 500, -500, -500},
		{"a step that divides nothing", origin, 7, 100, 98},
		{"no grid", origin, 0, 1234, 1234},
		{"a negative step is no grid", origin, -500, 1234, 1234},
		{"a step longer than the time", origin, time.Hour, time.Minute, 0},
	} {
		got := Grid{Origin: c.origin, Step: c.step}.Floor(c.origin.Add(c.time))
		assert.Equal(t, c.want, got.Sub(c.origin), c.name)
	}
}

// The zero origin lies further back than time.Duration reaches.
func TestGridFloorWithZeroOrigin(t *testing.T) {
	leakcheck.Check(t)
	at := time.Date(2024, 5, 1, 12, 0, 3, 740_000_000, time.UTC)
	got := Grid{Step: 500 * time.Millisecond}.Floor(at)
	assert.Equal(t, time.Date(2024, 5, 1, 12, 0, 3, 500_000_000, time.UTC), got)
}

func TestGridFor(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct{ step, period, want time.Duration }{
		{500 * time.Millisecond, 5 * time.Second, 500 * time.Millisecond},
		{500 * time.Millisecond, time.Minute, 500 * time.Millisecond},
		{500 * time.Millisecond, time.Second, 100 * time.Millisecond},
		{500 * time.Millisecond, 100 * time.Millisecond, 10 * time.Millisecond},
		{500 * time.Millisecond, 9, 0},
		{500 * time.Millisecond, 0, 0},
		{500 * time.Millisecond, -time.Second, 0},
		{0, time.Second, 0},
		{-1, time.Second, 0},
	} {
		origin := time.Unix(1, 0)
		assert.Equal(t, Grid{Origin: origin, Step: c.want}, Grid{Origin: origin, Step: c.step}.For(c.period), "%v for %v", c.step, c.period)
	}
}

func TestNext(t *testing.T) {
	leakcheck.Check(t)
	planned := time.Unix(1000, 0)
	for _, c := range []struct {
		name      string
		now, want time.Duration // from planned
	}{
		{"in time", time.Second, 5 * time.Second},
		{"before it was planned", -time.Second, 5 * time.Second},
		{"at the last moment", 5 * time.Second, 5 * time.Second},
		{"late", 5*time.Second + 1, 5*time.Second + 1},
		{"after a pause of many periods", time.Hour, time.Hour},
	} {
		got := Next(planned, 5*time.Second, planned.Add(c.now))
		assert.Equal(t, c.want, got.Sub(planned), c.name)
	}
}

func TestSpread(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct {
		lo, hi, r float64
		want      time.Duration
	}{
		{0, 1, 0, 0},
		{0, 1, 0.25, time.Second},
		{0.5, 1, 0, 2 * time.Second},
		{0.5, 1, 0.5, 3 * time.Second},
		{1, 1, 0.7, 4 * time.Second},
		{0.9, 1.1, 0.5, 4 * time.Second},
		{-0.5, 0.5, 0.5, 0},
	} {
		assert.InDelta(t, c.want, Spread(4*time.Second, c.lo, c.hi, c.r), 1, "%+v", c)
	}
	assert.Zero(t, Spread(0, 0.5, 1, 0.5))
}

func TestSpreadStaysWithinItsBounds(t *testing.T) {
	leakcheck.Check(t)
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 10_000 {
		period := time.Duration(rnd.Int64N(int64(24 * time.Hour)))
		lo := rnd.Float64()
		hi := lo + rnd.Float64()
		for _, r := range []float64{0, rnd.Float64(), 1 - 1.0/(1<<53)} {
			got := Spread(period, lo, hi, r)
			require.GreaterOrEqual(t, got, time.Duration(lo*float64(period)))
			require.LessOrEqual(t, got, time.Duration(hi*float64(period)))
		}
	}
}

// B4: whatever period, grid and lateness of the runs, what is due is never late, the
// intervals of runs that are in time stay within 0.9 and 1.1 periods, and n periods
// after the first beat there were n beats: rounding adds up to no drift. The periods
// here are short and the grids do not divide them.
func TestB4IntervalsStayWithinATenthOfThePeriod(t *testing.T) {
	leakcheck.Check(t)
	rnd := rand.New(rand.NewPCG(3, 2))
	for range 2000 {
		period := 10 + time.Duration(rnd.Int64N(int64(10*time.Second)))
		if rnd.IntN(2) == 0 {
			period = 10 + period%time.Millisecond
		}
		start := time.Unix(1_700_000_000, rnd.Int64N(1e9))
		grid := Grid{Origin: start.Add(-time.Duration(rnd.Int64N(1e12))), Step: 1 + time.Duration(rnd.Int64N(1e9))}.For(period)
		planned := start
		last := grid.Floor(planned)
		const beats = 50
		for range beats {
			// The run may begin and end late, but before the next one is planned.
			now := planned.Add(time.Duration(rnd.Int64N(int64(period))))
			planned = Next(planned, period, now)
			due := grid.Floor(planned)
			require.False(t, due.After(planned), "late: %v of %v", due, planned)
			interval := float64(due.Sub(last)) / float64(period)
			require.LessOrEqual(t, interval, 1.1, "period %v grid %v", period, grid.Step)
			require.GreaterOrEqual(t, interval, 0.9, "period %v grid %v", period, grid.Step)
			last = due
		}
		require.Equal(t, beats*period, planned.Sub(start))
	}
}

// A grid's points are a whole number of steps from its origin, and Floor finds the last
// one that is not after the time.
func TestGridFloorFindsTheLastPoint(t *testing.T) {
	leakcheck.Check(t)
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 10_000 {
		g := Grid{Origin: time.Unix(rnd.Int64N(2e9), rnd.Int64N(1e9)), Step: 1 + time.Duration(rnd.Int64N(1e10))}
		at := time.Unix(rnd.Int64N(2e9), rnd.Int64N(1e9))
		got := g.Floor(at)
		require.Zero(t, got.Sub(g.Origin)%g.Step)
		require.False(t, got.After(at))
		require.Less(t, at.Sub(got), g.Step)
		require.True(t, got.Equal(g.Floor(got)), "rounding again changes nothing")
	}
}

// A step of the wall clock must not move due times, so rounding keeps the monotonic
// reading.
func TestGridFloorKeepsTheMonotonicReading(t *testing.T) {
	leakcheck.Check(t)
	now := time.Now()
	for _, g := range []Grid{{Origin: now.Add(-time.Hour), Step: time.Second}, {Step: time.Second}} {
		assert.Contains(t, g.Floor(now).String(), " m=")
	}
}
