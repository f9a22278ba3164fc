package timerpool

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// Random pushes, moves and removals against a sorted slice; every job knows its index.
func TestQueueAgainstASortedSlice(t *testing.T) {
	leakcheck.Check(t)
	rnd := rand.New(rand.NewPCG(5, 1))
	var q queue
	var model []entry
	for n := range 3000 {
		e := entry{due: time.Duration(rnd.IntN(200)), seq: uint64(n), job: new(Job)}
		grow := (n/300)%2 == 0
		switch op := rnd.IntN(10); {
		case len(model) == 0 || grow && op < 6:
			q.push(e)
			model = append(model, e)
		case op < 8:
			i := rnd.IntN(len(model))
			q.remove(model[i].job.index)
			model = slices.Delete(model, i, i+1)
		default:
			i := rnd.IntN(len(model))
			e.job = model[i].job
			q.set(e.job.index, e)
			model[i] = e
		}
		slices.SortFunc(model, func(a, b entry) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		require.Len(t, q.entries, len(model))
		if len(model) == 0 {
			require.Equal(t, never, q.first())
			continue
		}
		require.Equal(t, model[0], q.entries[0])
		require.Equal(t, model[0].due, q.first())
		for i, e := range q.entries {
			require.EqualValues(t, i, e.job.index)
		}
	}
	for _, want := range model {
		require.Equal(t, want, q.pop())
	}
}

func TestQueueGivesMemoryBack(t *testing.T) {
	leakcheck.Check(t)
	var q queue
	for i := range 100_000 {
		q.push(entry{due: time.Duration(i), job: new(Job)})
	}
	for len(q.entries) > 0 {
		q.pop()
	}
	require.LessOrEqual(t, cap(q.entries), 2*minCapacity)
	for _, e := range q.entries[:cap(q.entries)] {
		require.Nil(t, e.job, "a queue holds no job that left it")
	}
}
