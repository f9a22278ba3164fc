package timerpool

import "time"

// arity of the heap: four children side by side in memory make it half as deep as a
// binary one.
const arity = 4

// minCapacity is how many entries a queue keeps room for whatever it held before.
const minCapacity = 64

// entry is a job in a queue. The keys stand here rather than in the job so that
// comparing does not visit every job.
type entry struct {
	due time.Duration
	seq uint64 // breaks ties: equal due times keep the order in which they were planned
	job *Job
}

func (e *entry) before(o *entry) bool {
	if e.due != o.due {
		return e.due < o.due
	}
	return e.seq < o.seq
}

// queue is a heap of jobs by due time, which tells each job its index. The zero value
// is an empty queue; the caller locks.
type queue struct {
	entries []entry
}

// first returns the earliest due time, never for an empty queue.
func (q *queue) first() time.Duration {
	if len(q.entries) == 0 {
		return never
	}
	return q.entries[0].due
}

func (q *queue) push(e entry) {
	q.entries = append(q.entries, e)
	q.up(len(q.entries)-1, e)
}

// pop removes the earliest entry of a queue that is not empty.
func (q *queue) pop() entry {
	e := q.entries[0]
	q.remove(0)
	return e
}

func (q *queue) remove(index int32) {
	last := len(q.entries) - 1
	moved := q.entries[last]
	q.entries[last] = entry{} // lets go of the job
	q.entries = q.entries[:last]
	if int(index) != last {
		q.set(index, moved)
	}
	q.shrink()
}

// set puts an entry in the place of the one at index and moves it where it belongs.
func (q *queue) set(index int32, e entry) {
	if i := q.up(int(index), e); i == int(index) {
		q.down(i, e)
	}
}

// up places e at i or at an ancestor of i, and returns where.
func (q *queue) up(i int, e entry) int {
	for i > 0 {
		parent := (i - 1) / arity
		if !e.before(&q.entries[parent]) {
			break
		}
		q.place(i, q.entries[parent])
		i = parent
	}
	q.place(i, e)
	return i
}

// down places e at i or at a descendant of i.
func (q *queue) down(i int, e entry) {
	for {
		least := arity*i + 1
		if least >= len(q.entries) {
			break
		}
		for c := least + 1; c < min(arity*i+arity+1, len(q.entries)); c++ {
			if q.entries[c].before(&q.entries[least]) {
				least = c
			}
		}
		if !q.entries[least].before(&e) {
			break
		}
		q.place(i, q.entries[least])
		i = least
	}
	q.place(i, e)
}

func (q *queue) place(i int, e entry) {
	q.entries[i] = e
	e.job.index = int32(i)
}

// shrink gives memory back after a peak.
func (q *queue) shrink() {
	if n := cap(q.entries) / 2; n >= minCapacity && len(q.entries) < n/2 {
		q.entries = append(make([]entry, 0, n), q.entries...)
	}
}
