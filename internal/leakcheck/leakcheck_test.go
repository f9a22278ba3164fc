package leakcheck

import (
	"strings"
	"testing"
	"time"
)

// A goroutine that ends is not reported, also when it ends only after the test body did.
func TestCheckPassesWhenGoroutinesEnd(t *testing.T) {
	Check(t)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() { <-stop }()
}

// A goroutine that stays is reported with its stack; one that ran before is not.
func TestLeakedNamesTheGoroutine(t *testing.T) {
	Check(t)
	stop := make(chan struct{})
	defer close(stop)
	go waitOld(stop)
	before := goroutines()
	go waitNew(stop)

	left := leaked(before, 20*time.Millisecond)
	if len(left) != 1 || !strings.Contains(left[0], "waitNew") {
		t.Fatalf("leaked = %q, want the stack of waitNew alone", left)
	}
}

func waitOld(stop chan struct{}) { <-stop }

func waitNew(stop chan struct{}) { <-stop }
