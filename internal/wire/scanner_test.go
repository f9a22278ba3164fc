package wire

import (
	"strings"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// plainEnd finds the first of any special byte, wherever it stands among eight and whatever follows it.
func TestPlainEnd(t *testing.T) {
	leakcheck.Check(t)
	for c := range 256 {
		special := c < ' ' || c == '"' || c == '\\'
		for at := range 20 {
			for _, rest := range []string{"", "x", "\x00\x1f\"\\ \x21\x23\x80\xff"} {
				buf := []byte("\"" + strings.Repeat("\xff", at) + string([]byte{byte(c)}) + rest)
				want := 1 + at
				if !special {
					want = 2 + at
					if rest == "x" {
						want++
					}
				}
				if got := plainEnd(buf, 1); got != want {
					t.Fatalf("%q: got %d, want %d", buf, got, want)
				}
			}
		}
	}
}

// Objects and arrays may nest as deep as maxDepth, but not deeper.
func TestDepth(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct {
		depth int
		kind  string
	}{{maxDepth, ""}, {maxDepth + 1, KindTooDeep}} {
		n := c.depth - 1 // one is the list
		_, _, err := DecodeServiceInfo([]byte(`{"name":"g@@s","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"))
		if c.kind == "" && err != nil || c.kind != "" && kindOf(err) != c.kind {
			t.Errorf("depth %d: got %v, want %q", c.depth, err, c.kind)
		}
	}
}
