package timerpool

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// runs records when a job ran. Runs of one job never overlap, and a bubble is read
// after synctest.Wait, so it needs no lock.
type runs struct {
	began time.Time
	at    []time.Duration
}

func record() *runs { return &runs{began: time.Now()} }

func (r *runs) add() { r.at = append(r.at, time.Since(r.began)) }

// once is a run that is not repeated.
func (r *runs) once(context.Context) time.Time {
	r.add()
	return time.Time{}
}

// after moves the clock of the bubble and lets everything that is due then happen.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestJobRunsWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		r := record()
		j := p.Kind("beat", 1).NewJob(r.once)
		assert.True(t, j.Due().IsZero())
		at := time.Now().Add(3 * time.Second)
		j.Schedule(at)
		assert.True(t, at.Equal(j.Due()))
		after(time.Minute)
		assert.Equal(t, []time.Duration{3 * time.Second}, r.at)
		assert.True(t, j.Due().IsZero(), "a job that returned the zero time is not due again")
	})
}

func TestJobRepeatsAtReturnedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		r := record()
		j := p.Kind("beat", 1).NewJob(func(context.Context) time.Time {
			r.add()
			return time.Now().Add(5 * time.Second)
		})
		j.Schedule(time.Now().Add(time.Second))
		after(12 * time.Second)
		assert.Equal(t, []time.Duration{1 * time.Second, 6 * time.Second, 11 * time.Second}, r.at)
		assert.Equal(t, 16*time.Second, j.Due().Sub(r.began))
	})
}

func TestScheduleReplacesTheFormerTime(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second time.Duration
	}{
		{"earlier", 10 * time.Second, 2 * time.Second},
		{"later", 2 * time.Second, 10 * time.Second},
		{"the same", 2 * time.Second, 2 * time.Second},
		{"past", 2 * time.Second, -time.Hour},
		{"before the year 1700", 2 * time.Second, -1 << 62},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New()
				defer p.Close()
				r := record()
				j := p.Kind("beat", 1).NewJob(r.once)
				j.Schedule(time.Now().Add(c.first))
				synctest.Wait()
				j.Schedule(time.Now().Add(c.second))
				assert.True(t, time.Now().Add(c.second).Equal(j.Due()))
				after(time.Minute)
				assert.Equal(t, []time.Duration{max(0, c.second)}, r.at)
			})
		})
	}
}

func TestScheduleZeroTakesOffThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		r := record()
		j := p.Kind("beat", 1).NewJob(r.once)
		j.Schedule(time.Time{})
		j.Schedule(time.Now().Add(time.Second))
		j.Schedule(time.Time{})
		assert.True(t, j.Due().IsZero())
		after(time.Minute)
		assert.Empty(t, r.at)
		j.Schedule(time.Now())
		synctest.Wait()
		assert.Len(t, r.at, 1)
	})
}

// Whatever a run returns, a Schedule made during it decides.
func TestScheduleDuringARunWins(t *testing.T) {
	for _, c := range []struct {
		name      string
		scheduled time.Time
		returned  time.Duration // from the end of the run; 0 is the zero time
		want      []time.Duration
	}{
		{"over a later time", time.Unix(946684800, 0).Add(20 * time.Second), time.Hour, []time.Duration{0, 20 * time.Second}},
		{"over an earlier time", time.Unix(946684800, 0).Add(20 * time.Second), time.Second, []time.Duration{0, 20 * time.Second}},
		{"over not again", time.Unix(946684800, 0).Add(20 * time.Second), 0, []time.Duration{0, 20 * time.Second}},
		{"when past at the end", time.Unix(946684800, 0).Add(3 * time.Second), time.Hour, []time.Duration{0, 10 * time.Second}},
		{"with the zero time", time.Time{}, time.Second, []time.Duration{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New()
				defer p.Close()
				r := record()
				j := p.Kind("beat", 1).NewJob(func(context.Context) time.Time {
					r.add()
					<-time.After(10 * time.Second)
					if len(r.at) > 1 || c.returned == 0 {
						return time.Time{}
					}
					return time.Now().Add(c.returned)
				})
				j.Schedule(time.Now())
				after(time.Second)
				j.Schedule(c.scheduled)
				assert.True(t, c.scheduled.Equal(j.Due()))
				after(2 * time.Hour)
				assert.Equal(t, c.want, r.at)
			})
		})
	}
}

func TestStopBeforeTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		r := record()
		j := p.Kind("beat", 1).NewJob(r.once)
		j.Schedule(time.Now().Add(time.Second))
		j.Stop()
		j.Stop()
		assert.True(t, j.Due().IsZero())
		j.Schedule(time.Now())
		assert.True(t, j.Due().IsZero(), "Schedule after Stop does nothing")
		after(time.Minute)
		assert.Empty(t, r.at)
	})
}

// Stop while a worker runs the job: that run goes on with a live context, and is the last.
func TestStopDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		r := record()
		var cause error
		j := p.Kind("beat", 1).NewJob(func(ctx context.Context) time.Time {
			r.add()
			<-time.After(time.Second)
			cause = ctx.Err()
			return time.Now().Add(time.Second)
		})
		j.Schedule(time.Now())
		synctest.Wait()
		j.Schedule(time.Now().Add(time.Second))
		j.Stop()
		assert.Zero(t, time.Since(r.began), "Stop does not wait for the run")
		j.Schedule(time.Now())
		after(time.Minute)
		assert.Len(t, r.at, 1)
		assert.NoError(t, cause)
		assert.True(t, j.Due().IsZero())
	})
}

// A job that is due but waits for a worker is still to be stopped and moved.
func TestStopAndScheduleOfAJobThatWaitsForAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		k := p.Kind("beat", 1)
		release := make(chan struct{})
		k.NewJob(func(context.Context) time.Time {
			<-release
			return time.Time{}
		}).Schedule(time.Now())
		synctest.Wait()
		stopped, moved, stays := record(), record(), record()
		a, b, c := k.NewJob(stopped.once), k.NewJob(moved.once), k.NewJob(stays.once)
		for _, j := range []*Job{a, b, c} {
			j.Schedule(time.Now().Add(time.Second))
		}
		after(2 * time.Second)
		a.Stop()
		b.Schedule(time.Now().Add(time.Hour))
		after(time.Second)
		close(release)
		after(2 * time.Hour)
		assert.Empty(t, stopped.at)
		assert.Equal(t, []time.Duration{time.Hour + 2*time.Second}, moved.at)
		assert.Equal(t, []time.Duration{3 * time.Second}, stays.at)
	})
}

// A job that runs for longer than its period, and is scheduled all the while, never
// runs twice at once even though workers are free.
func TestJobNeverRunsTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		running, total := 0, 0 // no lock: the race detector sees two at once
		j := p.Kind("beat", 8).NewJob(func(context.Context) time.Time {
			running++
			total++
			assert.Equal(t, 1, running)
			<-time.After(7 * time.Second)
			running--
			return time.Now().Add(-time.Second)
		})
		for range 1000 {
			j.Schedule(time.Now())
			<-time.After(time.Second)
		}
		j.Stop()
		after(time.Minute)
		assert.InDelta(t, 1000/7, total, 2)
	})
}
