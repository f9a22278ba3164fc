package memnet_test

import (
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func TestEveryTestChecksForLeaks(t *testing.T) { leakcheck.Covered(t, ".") }
