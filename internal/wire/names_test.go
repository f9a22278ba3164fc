package wire

import (
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func TestSplitGroupedName(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct {
		name, group, service string
		ok                   bool
	}{
		{"DEFAULT_GROUP@@cap.svc", "DEFAULT_GROUP", "cap.svc", true},
		{"g@@a@@b", "g", "a@@b", true},
		{"g@@@s", "g", "@s", true},
		{"cap.svc", "", "", false},
		{"g@s", "", "", false},
		{"@@s", "", "", false},
		{"g@@", "", "", false},
		{"@@", "", "", false},
		{"", "", "", false},
	} {
		group, service, ok := SplitGroupedName(c.name)
		if group != c.group || service != c.service || ok != c.ok {
			t.Errorf("%q: got %q, %q, %t", c.name, group, service, ok)
		}
		if ok && GroupedName(group, service) != c.name {
			t.Errorf("%q: joined again: %q", c.name, GroupedName(group, service))
		}
	}
}
