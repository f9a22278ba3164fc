package timerpool

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkJobMemory reports what a waiting job costs, its closure not included.
func BenchmarkJobMemory(b *testing.B) {
	p := New()
	defer p.Close()
	k := p.Kind("beat", 16)
	run := func(context.Context) time.Time { return time.Time{} }
	at := time.Now().Add(time.Hour)
	jobs := make([]*Job, b.N)
	before := heapBytes()
	b.ResetTimer()
	for i := range jobs {
		jobs[i] = k.NewJob(run)
		jobs[i].Schedule(at.Add(time.Duration(i)))
	}
	b.StopTimer()
	b.ReportMetric(float64(heapBytes()-before)/float64(b.N), "heap-B/job")
}

// BenchmarkSchedule moves one of many waiting jobs.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			p := New()
			defer p.Close()
			k := p.Kind("beat", 16)
			at := time.Now().Add(time.Hour)
			jobs := make([]*Job, n)
			for i := range jobs {
				jobs[i] = k.NewJob(func(context.Context) time.Time { return time.Time{} })
				jobs[i].Schedule(at.Add(time.Duration(i) * time.Microsecond))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				jobs[i].Schedule(at.Add(time.Duration(i*31%n) * time.Microsecond))
			}
		})
	}
}

// BenchmarkRun is a whole turn of a job among many: due, run, due again behind the others.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{16, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			p := New()
			k := p.Kind("beat", 16)
			var turns atomic.Int64 // below 0 until all jobs are scheduled
			turns.Store(-1 << 62)
			done := make(chan struct{})
			for range n {
				k.NewJob(func(context.Context) time.Time {
					if turns.Add(1) == int64(b.N) {
						close(done)
					}
					return time.Now()
				}).Schedule(time.Now())
			}
			b.ReportAllocs()
			b.ResetTimer()
			turns.Store(0)
			<-done
			b.StopTimer()
			p.Close()
		})
	}
}
