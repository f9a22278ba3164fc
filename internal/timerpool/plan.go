package timerpool

import "time"

// gridShare is the part of a period by which a grid may move its due times: a beat may
// be late by a tenth of its period and no more.
const gridShare = 10

// Grid is a raster of instants, Origin + n*Step for every whole n. Due times are rounded
// to it so that jobs go out in small bursts over connections that are warm: in one
// burst of 20 each 50 ms heartbeats cost half the processor time that they cost one by
// one (rule B4; design.md, "cost per beat").
type Grid struct {
	// Origin is any point of the grid. Clients that take the time of their start burst
	// at different instants. The zero time is a valid origin.
	Origin time.Time
	// Step is the distance of two points. Zero or less: no grid, times stay as they are.
	Step time.Duration
}

// Floor rounds down to a point of the grid, so that what is due is never late.
// The result keeps the monotonic clock reading of t.
func (g Grid) Floor(t time.Time) time.Time {
	if g.Step <= 0 {
		return t
	}
	var over time.Duration
	if g.Origin.IsZero() {
		over = t.Sub(t.Truncate(g.Step)) // Sub would overflow from the year 1
	} else if over = t.Sub(g.Origin) % g.Step; over < 0 {
		over += g.Step
	}
	return t.Add(-over)
}

// For returns the grid for jobs of the given period: the same one, with Step limited to
// a tenth of the period. The intervals between rounded due times of a job then stay
// within 0.9 and 1.1 periods, whether or not the step divides the period.
func (g Grid) For(period time.Duration) Grid {
	g.Step = max(0, min(g.Step, period/gridShare))
	return g
}

// Next returns when a periodic job is planned again whose last planned time, before any
// rounding to a grid, was planned: one period later, so that the time runs take
// and rounding add up to no drift; or now, if that is past already, so that nothing
// is caught up in a burst after a pause (rule B4).
func Next(planned time.Time, period time.Duration, now time.Time) time.Time {
	next := planned.Add(period)
	if next.Before(now) {
		return now
	}
	return next
}

// Spread returns the part of a period between its shares lo and hi that r chooses, a
// random number of [0,1): Spread(period, 0.5, 1, r) is a jittered delay of half a period
// up to a whole one. The result lies within lo*period and hi*period, including both.
func Spread(period time.Duration, lo, hi, r float64) time.Duration {
	from := time.Duration(lo * float64(period))
	to := time.Duration(hi * float64(period))
	return from + time.Duration(r*float64(to-from))
}
