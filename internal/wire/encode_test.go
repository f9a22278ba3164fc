package wire

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// Numbers as Java's Double.toString prints them; the first six are in captures.
func TestAppendDouble(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct {
		f    float64
		want string
	}{
		{1, "1.0"},
		{2.5, "2.5"},
		{0, "0.0"},
		{10000, "10000.0"},
		{100000, "100000.0"},
		{0.03955078, "0.03955078"},
		{math.Copysign(0, -1), "-0.0"},
		{-1, "-1.0"},
		{0.1, "0.1"},
		{1.0 / 3, "0.3333333333333333"},
		{0.001, "0.001"},
		{0.000999, "9.99E-4"},
		{0.0001, "1.0E-4"},
		{1e-10, "1.0E-10"},
		{9999999.9, "9999999.9"},
		{1e7, "1.0E7"},
		{-12345678.9, "-1.23456789E7"},
		{1e21, "1.0E21"},
		{1e100, "1.0E100"},
		{math.MaxFloat64, "1.7976931348623157E308"},
		{math.SmallestNonzeroFloat64, "5.0E-324"}, // Java before 19: 4.9E-324
		{math.NaN(), `"NaN"`},
		{math.Inf(1), `"Infinity"`},
		{math.Inf(-1), `"-Infinity"`},
	} {
		if got := string(appendDouble([]byte("x"), c.f)); got != "x"+c.want {
			t.Errorf("%v: got %s, want x%s", c.f, got, c.want)
		}
	}
}

func TestAppendString(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct{ s, want string }{
		{"", `""`},
		{"cap.svc", `"cap.svc"`},
		{`a"b\c`, `"a\"b\\c"`},
		{"\b\t\n\f\r", `"\b\t\n\f\r"`},
		{"\x00\x1f\x0b", `"\u0000\u001F\u000B"`},
		{"<a href='x'>&</a>", `"<a href='x'>&</a>"`},
		{"\u7532 & b=c \U0001f600\u2028\x7f", "\"\u7532 & b=c \U0001f600\u2028\x7f\""},
		{"a\xffb\xc3", "\"a\ufffdb\ufffd\""},
		{"\ufffd", "\"\ufffd\""},
	} {
		got := appendString([]byte("x"), c.s)
		if string(got) != "x"+c.want {
			t.Errorf("%q: got %s, want x%s", c.s, got, c.want)
		}
		if !json.Valid(got[1:]) {
			t.Errorf("%q: not JSON: %s", c.s, got)
		}
	}
}

// What is absent when decoding stays so when encoding: pushes have no group, 1.x lists no times.
func TestAppendServiceInfoLeavesOutWhatWasNotSent(t *testing.T) {
	leakcheck.Check(t)
	for want, info := range map[string]*ServiceInfo{
		`{"name":"g@@s","clusters":"","checksum":"","allIPs":false,"reachProtectionThreshold":false,"valid":false}`:           {Name: "g@@s"},
		`{"name":"g@@s","clusters":"","hosts":[],"checksum":"","allIPs":false,"reachProtectionThreshold":false,"valid":true}`: {Name: "g@@s", HasHosts: true, Valid: true},
		`{"name":"","clusters":"a,b","hosts":[{"instanceId":"","ip":"a","port":0,"weight":0.0,"healthy":false,"enabled":false,"ephemeral":false,"clusterName":"","serviceName":"","metadata":{}}],"checksum":"x","allIPs":true,"reachProtectionThreshold":true,"valid":false}`: {
			Clusters: "a,b", Hosts: []Host{{IP: "a"}}, Checksum: "x", AllIPs: true, ReachProtectionThreshold: true,
		},
	} {
		if got := string(AppendServiceInfo(nil, info)); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
