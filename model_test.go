package nacos

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// at makes an instance at a port, changed as asked.
func at(port int, change ...func(*Instance)) Instance {
	in := NewInstance("10.9.0.1", port)
	for _, f := range change {
		f(&in)
	}
	return in
}

func sick(in *Instance)     { in.Healthy = false }
func disabled(in *Instance) { in.Enabled = false }
func tagged(in *Instance)   { in.Metadata = NewMetadata(map[string]string{"k": "v"}) }

// H7
func TestDiff(t *testing.T) {
	leakcheck.Check(t)
	elsewhere := at(1)
	elsewhere.Cluster = "b"
	list := func(in ...Instance) []Instance { return in }
	for name, c := range map[string]struct {
		before, after            []Instance
		added, removed, modified []int
	}{
		"nothing at all":          {},
		"from nothing":            {nil, hosts(1, 2), []int{1, 2}, nil, nil},
		"to nothing":              {hosts(1, 2), nil, nil, []int{1, 2}, nil},
		"the same":                {hosts(1, 2), hosts(1, 2), nil, nil, nil},
		"another order":           {hosts(1, 2, 3, 4), hosts(4, 2, 1, 3), nil, nil, nil},
		"in front":                {hosts(1, 2), hosts(3, 1, 2), []int{3}, nil, nil},
		"in the middle":           {hosts(1, 2), hosts(1, 3, 2), []int{3}, nil, nil},
		"one for another":         {hosts(1, 2, 3), hosts(1, 4, 3), []int{4}, []int{2}, nil},
		"all for others":          {hosts(1, 2), hosts(3, 4), []int{3, 4}, []int{1, 2}, nil},
		"everything at once":      {list(at(1), at(2), at(3)), list(at(3, sick), at(4), at(1)), []int{4}, []int{2}, []int{3}},
		"weight":                  {list(at(1)), list(at(1, weight(2))), nil, nil, []int{1}},
		"health":                  {list(at(1)), list(at(1, sick)), nil, nil, []int{1}},
		"enabled":                 {list(at(1)), list(at(1, disabled)), nil, nil, []int{1}},
		"metadata":                {list(at(1)), list(at(1, tagged)), nil, nil, []int{1}},
		"modified at the end":     {list(at(1), at(2)), list(at(3), at(2, sick)), []int{3}, []int{1}, []int{2}},
		"another cluster":         {list(at(1)), list(elsewhere), []int{1}, []int{1}, nil},
		"id alone":                {list(at(1)), list(at(1, func(in *Instance) { in.ID = "x" })), nil, nil, nil},
		"a weight that is no one": {list(at(1, weight(math.NaN()))), list(at(1, weight(math.NaN()))), nil, nil, nil},
	} {
		got := diff(c.before, c.after)
		for what, pair := range map[string][2][]int{
			"added": {c.added, ports(got.added)}, "removed": {c.removed, ports(got.removed)}, "modified": {c.modified, ports(got.modified)},
		} {
			assert.ElementsMatch(t, pair[0], pair[1], "%s: %s", name, what)
		}
		assert.Equal(t, len(c.added)+len(c.removed)+len(c.modified) == 0, got.none(), name)
	}
}

// H7: what a change leads to is the newer list, for lists of every kind of difference.
func TestDiffTellsTheOldInstanceOnlyWhenItIsRemoved(t *testing.T) {
	leakcheck.Check(t)
	c := diff([]Instance{at(1, tagged), at(2)}, []Instance{at(2, sick)})
	assert.Equal(t, changes{removed: []Instance{at(1, tagged)}, modified: []Instance{at(2, sick)}}, c)
}

func TestInstanceAsText(t *testing.T) {
	leakcheck.Check(t)
	assert.Equal(t, "10.9.0.1:80", at(80).String())
	assert.Equal(t, "[2001:db8::1]:80", NewInstance("2001:db8::1", 80).Addr())
	in := at(80, weight(0.5), sick, disabled)
	in.Cluster, in.Ephemeral = "b", false
	assert.Equal(t, "10.9.0.1:80 cluster=b weight=0.5 unhealthy disabled persistent", in.String())
	assert.Equal(t, []string{"poll", "none", "none"}, []string{SourcePoll.String(), SourceNone.String(), Source(99).String()})
}

func TestMetadataIsItsOwn(t *testing.T) {
	leakcheck.Check(t)
	given := map[string]string{"b": "2", "a": "1", "empty": ""}
	m := NewMetadata(given)
	given["a"] = "changed"
	m.Map()["b"] = "changed"
	assert.Equal(t, map[string]string{"a": "1", "b": "2", "empty": ""}, m.Map())
	assert.Equal(t, `{"a":"1","b":"2","empty":""}`, m.String())
	assert.Equal(t, 3, m.Len())
	for key, want := range map[string]bool{"a": true, "empty": true, "none": false} {
		_, found := m.Lookup(key)
		assert.Equal(t, want, found, key)
	}
	var keys []string
	for k := range m.All() {
		if keys = append(keys, k); k == "b" {
			break
		}
	}
	assert.Equal(t, []string{"a", "b"}, keys)
	assert.True(t, m.Equal(NewMetadata(m.Map())))
	assert.False(t, m.Equal(NewMetadata(given)))
	assert.True(t, Metadata{}.Equal(NewMetadata(nil)))
	assert.Zero(t, Metadata{}.Get("a"))
}
