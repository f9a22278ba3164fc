// Package leakcheck fails a test that leaves goroutines behind.
//
// House rule 11 says that every goroutine has an owner which waits for it; this package is how the tests hold the
// code to it. Tests inside a synctest bubble do not need it: a bubble does not end while its goroutines live.
package leakcheck

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// grace is how long goroutines may take to end after the test body and the cleanups registered later than Check:
// a goroutine that has sent its last signal still needs the scheduler to run off its end.
const grace = 2 * time.Second

// Check remembers the goroutines that run now and registers a cleanup that fails t when others are still there
// 2 s after the test. Call it first in a test, so that its cleanup runs last. Goroutines that another test running in
// parallel starts count too: a test that calls Check must not call t.Parallel.
func Check(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		if left := leaked(before, grace); len(left) > 0 {
			t.Errorf("leakcheck: %d goroutines outlive the test:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// leaked polls until no goroutine but those of before is left or wait is over, and returns the stacks of the rest.
func leaked(before map[string]string, wait time.Duration) []string {
	deadline := time.Now().Add(wait)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		var left []string
		for id, stack := range goroutines() {
			if _, old := before[id]; !old && !harmless(stack) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-poll.C
	}
}

// goroutines returns the stacks of all goroutines by their id.
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[string]string)
	for _, stack := range bytes.Split(buf, []byte("\n\n")) {
		// The first line reads "goroutine 12 [running]:"; ids are never used twice.
		head, _, _ := strings.Cut(string(stack), " [")
		all[head] = string(stack)
	}
	return all
}

// harmless tells goroutines of the Go runtime, the testing package and signal delivery, which no test owns.
func harmless(stack string) bool {
	for _, mark := range []string{
		"testing.(*T).Run(",
		"testing.(*F).Fuzz(",
		"testing.runFuzzing(",
		"testing.runFuzzTests(",
		"testing.tRunner.func",
		"testing.(*M).",
		"os/signal.signal_recv(",
		"os/signal.loop(",
		"runtime.ensureSigM",
		"runtime/trace.Start",
		"runtime.ReadTrace(",
		"runtime/pprof.profileWriter(",
	} {
		if strings.Contains(stack, mark) {
			return true
		}
	}
	return false
}
