package wire

import (
	"strings"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// Bodies of every wrong shape give an error that tells the kind, the field and the place, and never what they held.
func TestP13_Malformed(t *testing.T) {
	leakcheck.Check(t)
	list := func(b []byte) error { _, _, err := DecodeServiceInfo(b); return err }
	reply := func(b []byte) error { _, err := DecodeBeatReply(b); return err }
	beat := func(b []byte) error { _, err := DecodeBeat(b); return err }
	services := func(b []byte) error { _, err := DecodeServiceList(b); return err }
	status := func(b []byte) error { _, err := DecodeServerStatus(b); return err }
	host := func(fields string) string { return `{"name":"g@@s","hosts":[{` + fields + `}]}` }
	for _, c := range []struct {
		name, body  string
		decode      func([]byte) error
		kind, field string
		offset      int
	}{
		{"nothing", "", list, KindEmpty, "", 0},
		{"white space", " \r\n\t", list, KindEmpty, "", 4},
		{"a page", " <html><body>down</body></html>", list, KindHTML, "", 1},
		{"a word", "ok", list, KindSyntax, "", 0},
		{"a word like a literal", "nil", list, KindSyntax, "", 0},
		{"a cut literal", "tru", list, KindTruncated, "", 3},
		{"a byte order mark", "\xef\xbb\xbf{}", list, KindSyntax, "", 0},
		{"an array", "[]", list, KindType, "", 0},
		{"a string", `"secret"`, list, KindType, "", 0},
		{"null", "null", list, KindType, "", 0},
		{"an array cut off", "[1,", list, KindTruncated, "", 3},
		{"an empty object", " {}", list, KindMissingField, "name", 1},
		{"another object", `{"code":403,"message":"secret"}`, list, KindMissingField, "name", 0},
		{"a null name", `{"name":null,"hosts":[]}`, list, KindMissingField, "name", 0},
		{"a second value", `{"name":"g@@s"}{}`, list, KindTrailing, "", 15},
		{"a letter behind", `{"name":"g@@s"} x`, list, KindTrailing, "", 16},
		{"a NUL behind", "{\"name\":\"g@@s\"}\x00", list, KindTrailing, "", 15},
		{"no colon", `{"name" "g@@s"}`, list, KindSyntax, "", 8},
		{"no comma", `{"name":"g@@s" "a":1}`, list, KindSyntax, "", 15},
		{"a comma too many", `{"name":"g@@s",}`, list, KindSyntax, "", 15},
		{"a comma first", `{,"name":"g@@s"}`, list, KindSyntax, "", 1},
		{"a comma too many in an array", `{"x":[1,]}`, list, KindSyntax, "", 8},
		{"a bare key", `{name:"g@@s"}`, list, KindSyntax, "", 1},
		{"brackets crossed", `{"x":[1}]`, list, KindSyntax, "", 7},
		{"a line end in a string", "{\"name\":\"g\n\"}", list, KindSyntax, "", 10},
		{"a line end behind an escape", "{\"name\":\"\\t\n\"}", list, KindSyntax, "", 11},
		{"an unknown escape", `{"name":"\q"}`, list, KindSyntax, "", 9},
		{"a short escape", `{"name":"\u12"}`, list, KindSyntax, "", 9},
		{"a leading zero", `{"name":"g@@s","x":01}`, list, KindSyntax, "", 20},
		{"a leading plus", `{"x":+1}`, list, KindSyntax, "", 5},
		{"a minus alone", `{"x":-}`, list, KindSyntax, "", 6},
		{"no digit behind the point", `{"x":1.}`, list, KindSyntax, "", 7},
		{"no digit in the exponent", `{"x":1e+}`, list, KindSyntax, "", 8},
		{"a literal in capitals", `{"x":NULL}`, list, KindSyntax, "", 5},
		{"NaN", `{"x":NaN}`, list, KindSyntax, "", 5},
		{"a name that is an object", `{"name":{}}`, list, KindType, "name", 8},
		{"hosts that are an object", `{"name":"g@@s","hosts":{}}`, list, KindType, "hosts", 23},
		{"hosts that are a string", `{"name":"g@@s","hosts":"secret"}`, list, KindType, "hosts", 23},
		{"a time that is a word", `{"lastRefTime":"secret"}`, list, KindType, "lastRefTime", 15},
		{"a time with a fraction", `{"lastRefTime":1.5}`, list, KindType, "lastRefTime", 15},
		{"a time beyond int64", `{"lastRefTime":9223372036854775808}`, list, KindType, "lastRefTime", 15},
		{"a flag that is a word", `{"valid":"yes"}`, list, KindType, "valid", 9},
		{"a flag that is a number", `{"valid":1}`, list, KindType, "valid", 9},
		{"a null host", `{"name":"g@@s","hosts":[null]}`, list, KindBadHost, "", 24},
		{"a host that is a number", `{"name":"g@@s","hosts":[7]}`, list, KindBadHost, "", 24},
		{"a host without ip", host(`"port":80`), list, KindBadHost, "ip", 24},
		{"a host with an empty ip", host(`"ip":""`), list, KindBadHost, "ip", 24},
		{"a host with a null ip", host(`"ip":null`), list, KindBadHost, "ip", 24},
		{"a negative port", host(`"ip":"a","port":-1`), list, KindBadHost, "port", 41},
		{"a port too high", host(`"ip":"a","port":65536`), list, KindBadHost, "port", 41},
		{"a port with a fraction", host(`"ip":"a","port":80.5`), list, KindBadHost, "port", 41},
		{"a port that is a word", host(`"ip":"a","port":"http"`), list, KindBadHost, "port", 41},
		{"a negative weight", host(`"ip":"a","weight":-0.1`), list, KindBadHost, "weight", 43},
		{"a weight beyond float64", host(`"ip":"a","weight":1e999`), list, KindBadHost, "weight", 43},
		{"a weight below all numbers", host(`"ip":"a","weight":"-Infinity"`), list, KindBadHost, "weight", 43},
		{"a weight of letters", host(`"ip":"a","weight":"nan"`), list, KindBadHost, "weight", 43},
		{"metadata that are a list", host(`"ip":"a","metadata":[]`), list, KindBadHost, "metadata", 45},
		{"metadata with an object", host(`"ip":"a","metadata":{"k":{}}`), list, KindBadHost, "metadata", 50},
		{"the second host is bad", `{"name":"g@@s","hosts":[{"ip":"a"},{}]}`, list, KindBadHost, "ip", 35},
		{"nested too deep", `{"x":` + strings.Repeat("[", 100_000), list, KindTooDeep, "", 5 + maxDepth - 1},
		{"nested too deep in a host", host(`"x":` + strings.Repeat(`{"x":`, 100_000)), list, KindTooDeep, "", 29 + 5*(maxDepth-3)},

		{"beat: nothing", "", beat, KindEmpty, "", 0},
		{"beat: not JSON", "{nope", beat, KindSyntax, "", 1},
		{"beat: an array", "[]", beat, KindType, "", 0},
		{"beat: a port beyond int", `{"port":2147483648}`, beat, KindType, "port", 8},
		{"beat: a weight that is a word", `{"weight":"secret"}`, beat, KindType, "weight", 10},
		{"beat: metadata that are text", `{"metadata":"a=b"}`, beat, KindType, "metadata", 12},
		{"beat: trailing", `{} secret`, beat, KindTrailing, "", 3},

		{"reply: nothing", "", reply, KindEmpty, "", 0},
		{"reply: the text ok", "ok", reply, KindSyntax, "", 0},
		{"reply: an empty object", "{}", reply, KindMissingField, "code", 0},
		{"reply: another object", `{"status":500,"message":"secret"}`, reply, KindMissingField, "code", 0},
		{"reply: only nulls", `{"code":null}`, reply, KindMissingField, "code", 0},
		{"reply: a code that is a word", `{"code":"secret"}`, reply, KindType, "code", 8},
		{"reply: a code beyond int", `{"code":4294977496}`, reply, KindType, "code", 8},
		{"reply: an object for a flag", `{"lightBeatEnabled":{}}`, reply, KindType, "lightBeatEnabled", 20},
		{"reply: trailing", `{"code":10200}}`, reply, KindTrailing, "", 14},

		{"services: a page", "<html>", services, KindHTML, "", 0},
		{"services: no count", `{"doms":[]}`, services, KindMissingField, "count", 0},
		{"services: no names", `{"count":0}`, services, KindMissingField, "doms", 0},
		{"services: null names", `{"count":0,"doms":null}`, services, KindMissingField, "doms", 0},
		{"services: a negative count", `{"count":-1,"doms":[]}`, services, KindType, "count", 9},
		{"services: a name that is an object", `{"count":1,"doms":[{}]}`, services, KindType, "doms", 19},

		{"status: missing", `{"a":1}`, status, KindMissingField, "status", 0},
		{"status: an object", `{"status":{}}`, status, KindType, "status", 10},

		{"ok: nothing", " ", DecodeOK, KindEmpty, "", 0},
		{"ok: a page", "\n<html>", DecodeOK, KindHTML, "", 1},
		{"ok: more", "okay", DecodeOK, KindUnexpected, "", 0},
		{"ok: in quotes", `"ok"`, DecodeOK, KindUnexpected, "", 0},
		{"ok: JSON", `{"code":0}`, DecodeOK, KindUnexpected, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.decode([]byte(c.body))
			e, ok := err.(*DecodeError)
			if !ok {
				t.Fatalf("got %v, want a *DecodeError", err)
			}
			if e.Kind != c.kind || e.Field != c.field || e.Offset != c.offset {
				t.Errorf("got %s of %q at %d, want %s of %q at %d", e.Kind, e.Field, e.Offset, c.kind, c.field, c.offset)
			}
			if strings.Contains(e.Error(), "secret") {
				t.Errorf("the error quotes the input: %v", e)
			}
		})
	}
}

func TestDecodeErrorText(t *testing.T) {
	leakcheck.Check(t)
	for want, e := range map[string]*DecodeError{
		"decode instance list: truncated at byte 12":      {What: "instance list", Kind: KindTruncated, Offset: 12},
		"decode instance list: bad host (ip) at byte 310": {What: "instance list", Kind: KindBadHost, Field: "ip", Offset: 310},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e, want)
		}
	}
}

func TestDecodeOK(t *testing.T) {
	leakcheck.Check(t)
	for _, body := range []string{"ok", "ok\n", " \r\nok "} {
		if err := DecodeOK([]byte(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}
