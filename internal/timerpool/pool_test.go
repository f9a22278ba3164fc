package timerpool

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goroutines counts the goroutines of pools by their stacks.
func goroutines() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	return strings.Count(string(buf), "timerpool.(*Pool).tick(") + strings.Count(string(buf), "timerpool.(*Kind).work(")
}

func TestNewStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Kind("beat", 16).NewJob(record().once)
		synctest.Wait()
		assert.Zero(t, goroutines())
		p.Close()
	})
}

// Nothing of the pool is left once all jobs are stopped, without Close.
func TestNoGoroutineAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		k := p.Kind("beat", 4)
		jobs := make([]*Job, 100)
		for i := range jobs {
			jobs[i] = k.NewJob(func(context.Context) time.Time { return time.Now().Add(5 * time.Second) })
			jobs[i].Schedule(time.Now().Add(time.Duration(i) * time.Millisecond))
		}
		for range 3 { // stopped, it can be woken again
			after(time.Minute)
			assert.Equal(t, 1, goroutines(), "between runs only the timer's")
			for _, j := range jobs {
				j.Schedule(time.Time{})
			}
			synctest.Wait()
			assert.Zero(t, goroutines())
			for _, j := range jobs {
				j.Schedule(time.Now().Add(time.Second))
			}
		}
		for _, j := range jobs {
			j.Stop()
		}
		synctest.Wait()
		assert.Zero(t, goroutines())
		p.Close()
	})
}

func TestCloseCancelsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		k := p.Kind("poll", 2)
		ended := record()
		slow := k.NewJob(func(ctx context.Context) time.Time {
			<-ctx.Done()
			<-time.After(time.Second) // what a run needs to give up
			ended.add()
			return time.Now()
		})
		slow.Schedule(time.Now())
		waiting := record()
		for range 10 {
			k.NewJob(waiting.once).Schedule(time.Now().Add(2 * time.Minute))
		}
		k.NewJob(func(ctx context.Context) time.Time { <-ctx.Done(); return time.Time{} }).Schedule(time.Now())
		behind := k.NewJob(waiting.once)
		behind.Schedule(time.Now())
		after(time.Minute)

		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() {
				p.Close()
				assert.Equal(t, []time.Duration{61 * time.Second}, ended.at, "Close waits for the running job")
			})
		}
		closing.Wait()
		assert.Zero(t, goroutines())
		p.Close()

		slow.Schedule(time.Now())
		assert.True(t, slow.Due().IsZero())
		assert.True(t, behind.Due().IsZero())
		behind.Stop()
		k.NewJob(waiting.once).Schedule(time.Now())
		p.Kind("late", 1).NewJob(waiting.once).Schedule(time.Now())
		after(time.Hour)
		assert.Empty(t, waiting.at, "no run starts after Close")
	})
}

// Jobs of one worker run by due time; equal times in the order they were planned.
func TestJobsRunInDueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		k := p.Kind("beat", 1)
		var got []int
		job := func(id int) *Job {
			return k.NewJob(func(context.Context) time.Time {
				got = append(got, id)
				<-time.After(time.Second) // all others become due meanwhile
				return time.Time{}
			})
		}
		start := time.Now()
		job(0).Schedule(start)
		synctest.Wait()
		for id, ms := range []int{0, 40, 10, 30, 20, 30, 10, 30} {
			if id > 0 {
				job(id).Schedule(start.Add(time.Duration(ms) * time.Millisecond))
			}
		}
		after(time.Minute)
		assert.Equal(t, []int{0, 2, 6, 4, 3, 5, 7, 1}, got)
	})
}

// A job that returns times in the past, as a run longer than its period does, takes its
// turn like the others.
func TestLateJobDoesNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		k := p.Kind("beat", 1)
		origin := time.Now()
		turns := make([]int, 3)
		for i := range turns {
			k.NewJob(func(context.Context) time.Time {
				turns[i]++
				<-time.After(time.Second)
				return origin.Add(time.Duration(-i) * time.Hour)
			}).Schedule(origin)
		}
		after(300*time.Second - 1)
		assert.Equal(t, []int{100, 100, 100}, turns)
	})
}

// B7, H14: a kind whose workers are all blocked does not delay another.
func TestB7KindsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		poll, beat := p.Kind("poll", 2), p.Kind("beat", 1)
		for range 20 {
			poll.NewJob(func(ctx context.Context) time.Time { <-ctx.Done(); return time.Time{} }).Schedule(time.Now())
		}
		r := record()
		beat.NewJob(func(context.Context) time.Time {
			r.add()
			return time.Now().Add(5 * time.Second)
		}).Schedule(time.Now().Add(5 * time.Second))
		after(time.Hour)
		require.Len(t, r.at, 720)
		for i, at := range r.at {
			require.Equal(t, time.Duration(i+1)*5*time.Second, at)
		}
	})
}

func TestB7WorkersAreBounded(t *testing.T) {
	for _, workers := range []int{-1, 0, 1, 2, 16} {
		synctest.Test(t, func(t *testing.T) {
			p := New()
			defer p.Close()
			k := p.Kind("beat", workers)
			var now, most, total atomic.Int32
			for range 100 {
				k.NewJob(func(context.Context) time.Time {
					most.Store(max(most.Load(), now.Add(1)))
					<-time.After(time.Second)
					now.Add(-1)
					total.Add(1)
					return time.Time{}
				}).Schedule(time.Now())
			}
			synctest.Wait()
			assert.LessOrEqual(t, goroutines(), max(1, workers)+1)
			after(time.Hour)
			assert.EqualValues(t, max(1, workers), most.Load())
			assert.EqualValues(t, 100, total.Load())
		})
	}
}

// The issue asks that 100,000 jobs cost memory, and little, but no goroutines.
func TestHundredThousandJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, workers = 100_000, 16
		const period = 5 * time.Second
		p := New()
		defer p.Close()
		k := p.Kind("beat", workers)
		var total atomic.Int64
		beat := func(context.Context) time.Time {
			<-time.After(100 * time.Microsecond)
			total.Add(1)
			return time.Now().Add(period)
		}
		all := make([]*Job, jobs)
		before := heapBytes()
		for i := range all {
			all[i] = k.NewJob(beat)
			all[i].Schedule(time.Now().Add(time.Duration(i*10/jobs+1) * period / 10)) // ten bursts
		}
		perJob := float64(heapBytes()-before) / jobs
		assert.Less(t, perJob, 100.0, "bytes a job")
		for n := range 10 {
			after(period / 10)
			assert.Equal(t, workers+1, goroutines(), "during a burst")
			assert.EqualValues(t, n*jobs/10, total.Load())
		}
		after(period/10 - 1)
		assert.EqualValues(t, jobs, total.Load())

		for _, j := range all {
			j.Stop()
		}
		after(time.Second)
		assert.Zero(t, goroutines())
		assert.Less(t, cap(p.planned.entries), 1000, "the plan gives memory back after a peak")
		t.Logf("%.0f bytes a job", perJob)
	})
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Every method from many goroutines at once, for the race detector; what is asserted is
// that no job runs beside itself, that Stop is final and that Close ends it all.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		kinds := []*Kind{p.Kind("beat", 3), p.Kind("poll", 2)}
		jobs := make([]*Job, 50)
		var runsNow [50]atomic.Int32
		for i := range jobs {
			jobs[i] = kinds[i%2].NewJob(func(context.Context) time.Time {
				assert.EqualValues(t, 1, runsNow[i].Add(1))
				defer runsNow[i].Add(-1)
				<-time.After(time.Duration(i) * time.Microsecond)
				if i%3 == 0 {
					return time.Time{}
				}
				return time.Now().Add(time.Duration(i) * time.Microsecond)
			})
		}
		var users sync.WaitGroup
		for u := range 8 {
			users.Go(func() {
				for n := range 2000 {
					j := jobs[(n*7+u)%len(jobs)]
					switch n % 10 {
					case 8:
						j.Due()
					case 9:
						if n > 1500 {
							j.Stop()
						}
					default:
						j.Schedule(time.Now().Add(time.Duration(n%50-10) * time.Microsecond))
					}
					<-time.After(time.Microsecond)
				}
			})
		}
		users.Wait()
		p.Close()
		assert.Zero(t, goroutines())
	})
}
