package wire

import (
	"reflect"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func TestNewMetadata(t *testing.T) {
	leakcheck.Check(t)
	from := map[string]string{"b": "2", "a": "1", "": "0", "\u7532": "x"}
	m := NewMetadata(from)
	from["a"] = "changed"
	want := Metadata{{"", "0"}, {"a", "1"}, {"b", "2"}, {"\u7532", "x"}}
	if !reflect.DeepEqual(m, want) {
		t.Fatalf("got %v, want %v", m, want)
	}
	for _, p := range want {
		if v, ok := m.Lookup(p.Key); !ok || v != p.Value {
			t.Errorf("%q: got %q, %t", p.Key, v, ok)
		}
	}
	for _, key := range []string{"aa", "c", "A"} {
		if v, ok := m.Lookup(key); ok || v != "" {
			t.Errorf("%q: got %q, %t", key, v, ok)
		}
	}
	if NewMetadata(nil) != nil || NewMetadata(map[string]string{}) != nil {
		t.Error("empty metadata is not nil")
	}
	if _, ok := Metadata(nil).Lookup(""); ok {
		t.Error("empty metadata has an entry")
	}
}

func TestMetadataEqual(t *testing.T) {
	leakcheck.Check(t)
	a := Metadata{{"k", "v"}, {"l", "w"}}
	for _, c := range []struct {
		name string
		b    Metadata
		want bool
	}{
		{"itself", a, true},
		{"a copy", Metadata{{"k", "v"}, {"l", "w"}}, true},
		{"the beginning, in the same memory", a[:1], false},
		{"another value", Metadata{{"k", "v"}, {"l", "x"}}, false},
		{"another key", Metadata{{"k", "v"}, {"m", "w"}}, false},
		{"nothing", nil, false},
	} {
		if a.Equal(c.b) != c.want || c.b.Equal(a) != c.want {
			t.Errorf("%s: equal is not %t", c.name, c.want)
		}
	}
	if !(Metadata{}).Equal(nil) {
		t.Error("two empty ones differ")
	}
}

// What Nacos 2.3.2 takes and refuses in the parameter metadata: captures 001, 006 and 026, and the rules of Java's
// String.split beyond them.
func TestParseMetadata(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct {
		text string
		want Metadata
		at   int // offset of the error, -1: none
	}{
		{"", nil, -1},
		{" \t", nil, -1},
		{"{}", nil, -1},
		{"null", nil, -1},
		{` {"k": "v", "a": "\u7532 & b=c"} `, Metadata{{"a", "\u7532 & b=c"}, {"k", "v"}}, -1},
		{`{"n":1.50,"b":true,"z":null}`, Metadata{{"b", "true"}, {"n", "1.50"}, {"z", ""}}, -1},
		{`{"k":"v"} behind`, Metadata{{"k", "v"}}, -1},
		{"a=1,b=2", Metadata{{"a", "1"}, {"b", "2"}}, -1},
		{"b=2,a=1,b=3", Metadata{{"a", "1"}, {"b", "3"}}, -1},
		{"a=1,,", Metadata{{"a", "1"}}, -1},
		{",,", nil, -1},
		{"a=1==", Metadata{{"a", "1"}}, -1},
		{"=1", Metadata{{"", "1"}}, -1},
		{" a = 1 ", Metadata{{" a ", " 1 "}}, -1},
		{`{"a"=1`, Metadata{{`{"a"`, "1"}}, -1},
		{"{not json", nil, 0},
		{`{"k":{}}`, nil, 0},
		{"a", nil, 0},
		{"a=", nil, 0},
		{"a=1,b", nil, 4},
		{"a=1,,b=2", nil, 4},
		{",a=1", nil, 0},
		{"a=1=2", nil, 0},
		{"a=1,b==2", nil, 4},
		{"==", nil, 0},
	} {
		got, err := ParseMetadata(c.text)
		if c.at < 0 {
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q: got %q, %v, want %q", c.text, got, err, c.want)
			}
			continue
		}
		if e, ok := err.(*DecodeError); !ok || got != nil || *e != (DecodeError{What: "metadata", Kind: KindSyntax, Offset: c.at}) {
			t.Errorf("%q: got %q, %v, want an error at %d", c.text, got, err, c.at)
		}
	}
}
