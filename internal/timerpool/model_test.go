package timerpool

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// script is what one random test does, decided beforehand: who schedules and stops which
// job when, how long each run of a job takes and when it wants to run again. Times are
// from the start. Each carries nanoseconds of its own, so no two events share an
// instant and there is only one right answer.
type script struct {
	workers []int // per kind; job i is of kind i % len(workers)
	jobs    int
	calls   []call // by time
	runs    [][]runPlan
}

type call struct {
	at   time.Duration
	job  int
	stop bool
	due  time.Duration // never: takes it off the plan
}

// runPlan is one run of a job: its length, and how long after its end it is due again.
type runPlan struct{ takes, again time.Duration }

// span is one run as it happened.
type span struct {
	job        int
	start, end time.Duration
}

func randomScript(rnd *rand.Rand) script {
	s := script{workers: make([]int, 1+rnd.IntN(3)), jobs: 1 + rnd.IntN(12)}
	for i := range s.workers {
		s.workers[i] = 1 + rnd.IntN(4)
	}
	ms := func(n int) time.Duration {
		return time.Duration(rnd.IntN(n))*time.Millisecond + time.Duration(1+rnd.IntN(999_999))
	}
	for range 60 {
		c := call{at: ms(2000), job: rnd.IntN(s.jobs), stop: rnd.IntN(20) == 0}
		c.due = c.at + ms(300) - 50*time.Millisecond // some are past
		if rnd.IntN(10) == 0 {
			c.due = never
		}
		s.calls = append(s.calls, c)
	}
	slices.SortFunc(s.calls, func(a, b call) int { return int(a.at - b.at) })
	for range s.jobs {
		var runs []runPlan
		for range 20 {
			r := runPlan{takes: ms(60), again: ms(100)}
			if rnd.IntN(3) == 0 {
				r.again = never
			}
			runs = append(runs, r)
		}
		runs[len(runs)-1].again = never
		s.runs = append(s.runs, append(runs, slices.Repeat([]runPlan{{takes: 1, again: never}}, len(s.calls))...))
	}
	return s
}

// perform plays a script on a pool, in a bubble.
func (s script) perform(t *testing.T) []span {
	var got []span
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		start := time.Now()
		kinds := make([]*Kind, len(s.workers))
		for i, n := range s.workers {
			kinds[i] = p.Kind("model", n)
		}
		spans := make([][]span, s.jobs) // by job, so that runs share nothing
		jobs := make([]*Job, s.jobs)
		for i := range jobs {
			jobs[i] = kinds[i%len(kinds)].NewJob(func(context.Context) time.Time {
				r := s.runs[i][len(spans[i])]
				began := time.Since(start)
				<-time.After(r.takes)
				spans[i] = append(spans[i], span{i, began, time.Since(start)})
				if r.again == never {
					return time.Time{}
				}
				return time.Now().Add(r.again)
			})
		}
		for _, c := range s.calls {
			<-time.After(c.at - time.Since(start))
			switch {
			case c.stop:
				jobs[c.job].Stop()
			case c.due == never:
				jobs[c.job].Schedule(time.Time{})
			default:
				jobs[c.job].Schedule(start.Add(c.due))
			}
		}
		after(time.Hour)
		got = slices.Concat(spans...)
	})
	return got
}

// modelJob is a job of the reference.
type modelJob struct {
	due              time.Duration
	since            time.Duration // when it is due or was planned, if that was later: its place in the queue
	end              time.Duration // of the run; never: not running
	runs             int
	moved, isStopped bool
}

func (j *modelJob) plan(due, now time.Duration) { j.due, j.since = due, max(due, now) }

// predict says what must happen, by looking at everything at every instant.
func (s script) predict() []span {
	jobs := make([]modelJob, s.jobs)
	for i := range jobs {
		jobs[i] = modelJob{due: never, since: never, end: never}
	}
	var spans []span
	calls := s.calls
	for {
		now := s.nextEvent(jobs, calls)
		if now == never {
			return spans
		}
		for len(calls) > 0 && calls[0].at == now {
			c := calls[0]
			calls = calls[1:]
			j := &jobs[c.job]
			switch {
			case j.isStopped:
			case c.stop:
				j.isStopped = true
				j.plan(never, now)
			default:
				j.plan(c.due, now)
				j.moved = j.end != never
			}
		}
		for i := range jobs {
			j := &jobs[i]
			if j.end != now {
				continue
			}
			j.end = never
			again := s.runs[i][j.runs-1].again
			switch {
			case j.isStopped:
			case j.moved:
				j.plan(j.due, now)
			case again != never:
				j.plan(now+again, now)
			}
			j.moved = false
		}
		for i := s.startable(jobs, now); i >= 0; i = s.startable(jobs, now) {
			j := &jobs[i]
			j.due, j.since, j.end = never, never, now+s.runs[i][j.runs].takes
			j.runs++
			spans = append(spans, span{i, now, j.end})
		}
	}
}

// nextEvent is the next call, end of a run or due time that a free worker waits for.
func (s script) nextEvent(jobs []modelJob, calls []call) time.Duration {
	next := never
	if len(calls) > 0 {
		next = calls[0].at
	}
	for i, j := range jobs {
		next = min(next, j.end)
		if j.end == never && s.free(jobs, i%len(s.workers)) {
			next = min(next, j.since)
		}
	}
	return next
}

// startable is the job that has waited longest of those which may start, or -1.
func (s script) startable(jobs []modelJob, now time.Duration) int {
	best := -1
	for i, j := range jobs {
		if j.end == never && j.since <= now && s.free(jobs, i%len(s.workers)) && (best < 0 || j.since < jobs[best].since) {
			best = i
		}
	}
	return best
}

func (s script) free(jobs []modelJob, kind int) bool {
	busy := 0
	for i, j := range jobs {
		if i%len(s.workers) == kind && j.end != never {
			busy++
		}
	}
	return busy < s.workers[kind]
}

// The pool starts every run at the very nanosecond at which a model that looks at all
// jobs at every event does, over random schedules, stops, lengths and worker counts.
func TestPoolAgainstAModel(t *testing.T) {
	for seed := range uint64(300) {
		s := randomScript(rand.New(rand.NewPCG(seed, 7)))
		want, got := s.predict(), s.perform(t)
		byStart := func(a, b span) int { return int(a.start - b.start) }
		slices.SortFunc(want, byStart)
		slices.SortFunc(got, byStart)
		require.Equal(t, want, got, "seed %d", seed)
	}
}
