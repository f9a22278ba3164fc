package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// seeds are texts of every shape that a decoder meets; the targets add captures of their own.
func seeds(f *testing.F, more ...string) {
	f.Helper()
	for _, text := range append(more,
		"", " ", "ok", "<html><body>x</body></html>", "null", "{}", "[]", `{"a":1}`, `{"":{"":[]}}`, `{"a":1}x`,
		`{"a":"\u00e9\ud83d\ude00\ud800"}`, `{"a":-0.5E-3,"b":[true,false,null]}`, "{\"a\":\"\xff\"}", `{"message":"a&lt;b"}`,
		strings.Repeat("[", 300),
	) {
		f.Add([]byte(text))
	}
}

// mustBeJSON fails for a text that was taken without being one JSON object.
func mustBeJSON(t *testing.T, text []byte, err error) {
	t.Helper()
	if err == nil && !json.Valid(text) {
		t.Fatalf("taken, but not JSON: %q", text)
	}
	if e, ok := err.(*DecodeError); err != nil && (!ok || e.Offset < 0 || e.Offset > len(text)) {
		t.Fatalf("error %v for %d bytes", err, len(text))
	}
}

// What is decoded does not change with its body, and is the same again after encoding and decoding.
func FuzzDecodeServiceInfo(f *testing.F) {
	seeds(f,
		string(read(f, "nacos-2.3.2/033-list-sdk-params.list")), string(read(f, "rnacos-0.8.8/037-list-group.list")),
		`{"name":"g@@s","dom":"s","hosts":[{"ip":"a","valid":false,"weight":"1.0E-4","metadata":{"k":1,"k":null}},{"ip":"a","weight":1}],"lastRefTime":"5"}`,
		`{"name":"g@@s","hosts":[{"ip":"a","metadata":{"k":"v"}},{"ip":"b","metadata":{"k":"v"}},{"ip":"c","metadata":{"k":"v","l":""}}]}`,
	)
	f.Fuzz(func(t *testing.T, text []byte) {
		body := bytes.Clone(text)
		info, _, err := DecodeServiceInfo(body)
		mustBeJSON(t, text, err)
		if err != nil {
			return
		}
		clear(body)
		for _, h := range info.Hosts {
			if h.IP == "" || h.Port < 0 || h.Port > math.MaxUint16 || h.Weight < 0 {
				t.Fatalf("bad host taken: %+v", h)
			}
		}
		if !utf8.Valid(text) {
			return // comes back with replacement characters
		}
		again, _, err := DecodeServiceInfo(AppendServiceInfo(nil, info))
		if err != nil || !reflect.DeepEqual(again, info) {
			t.Fatalf("got\n%+v, %v\nwant\n%+v", again, err, info)
		}
	})
}

// Match is true exactly for the body itself with other digits, and tells what decoding would.
func FuzzFingerprintMatch(f *testing.F) {
	const list = `{"name":"g@@s","hosts":[],"lastRefTime":1796080569073,"checksum":""}`
	f.Add([]byte(list), []byte(list), uint64(5))
	f.Add([]byte(list), []byte(`{"name":"g@@s","hosts":[],"lastRefTime":17,"checksum":""}`), uint64(math.MaxUint64))
	f.Add([]byte(`{"lastRefTime":"1","name":"g@@s","lastRefTime":"2"}`), []byte(`{"lastRefTime":"1","name":"g@@s","lastRefTime":"02"}`), uint64(0))
	f.Fuzz(func(t *testing.T, body, other []byte, at uint64) {
		info, fp, err := DecodeServiceInfo(body)
		if err != nil || fp == (Fingerprint{}) {
			if _, same := fp.Match(other); same {
				t.Fatal("the zero fingerprint matches")
			}
			return
		}
		if got, same := fp.Match(body); !same || got != info.LastRefTime {
			t.Fatalf("its own body: %d, %t, want %d", got, same, info.LastRefTime)
		}
		end := fp.start + len(strconv.FormatInt(info.LastRefTime, 10))
		want := int64(at & math.MaxInt64)
		later := append(strconv.AppendInt(bytes.Clone(body[:fp.start]), want, 10), body[end:]...)
		if got, same := fp.Match(later); !same || got != want {
			t.Fatalf("with time %d: %d, %t", want, got, same)
		}
		if decoded, again, err := DecodeServiceInfo(later); err != nil || again != fp || decoded.LastRefTime != want {
			t.Fatalf("with time %d: %v, or another fingerprint", want, err)
		}
		if _, same := fp.Match(other); same && !equalButForDigits(body, other, fp.start) {
			t.Fatalf("matches %q", other)
		}
		if i := int(at % uint64(len(body))); i < fp.start || i >= end {
			later = bytes.Clone(body)
			later[i]++
			if _, same := fp.Match(later); same {
				t.Fatalf("byte %d changed, and it matches", i)
			}
		}
	})
}

// equalButForDigits tells whether a and b are equal without the digits at start.
func equalButForDigits(a, b []byte, start int) bool {
	without := func(s []byte) string {
		return string(s[:start]) + "|" + strings.TrimLeft(string(s[start:]), "0123456789")
	}
	return len(a) > start && len(b) > start && without(a) == without(b)
}

func FuzzDecodeBeat(f *testing.F) {
	seeds(f, string(read(f, "nacos-2.3.2/059-beat-full.beatparam")), `{"ephemeral":false,"port":"1","metadata":{"b":"","a":true}}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		beat, err := DecodeBeat(text)
		mustBeJSON(t, text, err)
		if err != nil || !utf8.Valid(text) {
			return
		}
		if again, err := DecodeBeat(AppendBeat(nil, beat)); err != nil || !reflect.DeepEqual(again, beat) {
			t.Fatalf("got %+v, %v, want %+v", again, err, beat)
		}
	})
}

func FuzzDecodeBeatReply(f *testing.F) {
	seeds(f, string(read(f, "nacos-2.3.2/063-beat-light-unknown.beat")), string(read(f, "rnacos-0.8.8/059-beat-full.beat")))
	f.Fuzz(func(t *testing.T, text []byte) {
		reply, err := DecodeBeatReply(text)
		mustBeJSON(t, text, err)
		if err != nil {
			return
		}
		if again, err := DecodeBeatReply(AppendBeatReply(nil, reply)); err != nil || again != reply {
			t.Fatalf("got %+v, %v, want %+v", again, err, reply)
		}
	})
}

func FuzzDecodeServiceList(f *testing.F) {
	seeds(f, string(read(f, "nacos-2.3.2/106-svc-list.services")), string(read(f, "rnacos-0.8.8/110-svc-list-group.services")))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := DecodeServiceList(text)
		mustBeJSON(t, text, err)
		if err != nil || !utf8.Valid(text) {
			return
		}
		if again, err := DecodeServiceList(AppendServiceList(nil, list)); err != nil || !reflect.DeepEqual(again, list) {
			t.Fatalf("got %+v, %v, want %+v", again, err, list)
		}
	})
}

func FuzzDecodeServerStatus(f *testing.F) {
	seeds(f, string(read(f, "nacos-2.3.2/123-op-metrics-full.metrics")))
	f.Fuzz(func(t *testing.T, text []byte) {
		status, err := DecodeServerStatus(text)
		mustBeJSON(t, text, err)
		if (err == nil) != (status != "") {
			t.Fatalf("status %q, %v", status, err)
		}
	})
}

func FuzzDecodeOK(f *testing.F) {
	seeds(f, "ok\n")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := DecodeOK(text); (err == nil) != (string(bytes.TrimSpace(text)) == "ok") {
			t.Fatal(err)
		}
	})
}

func FuzzErrorMessage(f *testing.F) {
	seeds(f, string(read(f, "nacos-2.3.2/051-update-unknown-service.error")), "<style>a</style >b<script", "a&#0;&#x1f;&nbsp;", strings.Repeat("a", maxMessage-1)+" b")
	f.Fuzz(func(t *testing.T, text []byte) {
		message := ErrorMessage(text)
		if len(message) > maxMessage || !utf8.ValidString(message) || strings.TrimSpace(message) != message || strings.ContainsFunc(message, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("%q", message)
		}
	})
}

func FuzzParseMetadata(f *testing.F) {
	for _, text := range []string{"", "{}", `{"k":"v","a":1} x`, "a=1,b=2", "a=1=,,", ",a=1", "{not json", `{"a"=1`, "null=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetadata(text)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		again, err := ParseMetadata(string(m.AppendJSON(nil)))
		if err != nil || !again.Equal(m) {
			t.Fatalf("got %q, %v, want %q", again, err, m)
		}
		for i := 1; i < len(m); i++ {
			if m[i-1].Key >= m[i].Key {
				t.Fatalf("not in order: %q", m)
			}
		}
	})
}

// Strings and numbers are written so that another JSON library reads them back.
func FuzzAppend(f *testing.F) {
	f.Add("a\"\\\x00\x1f\u7532\U0001f600", 2.5)
	f.Add("\xff", 1e7)
	f.Add("", 0.00099)
	f.Fuzz(func(t *testing.T, s string, number float64) {
		var text string
		if err := json.Unmarshal(appendString(nil, s), &text); err != nil || text != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Fatalf("%q became %q, %v", s, text, err)
		}
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return
		}
		var f float64
		if err := json.Unmarshal(appendDouble(nil, number), &f); err != nil || f != number {
			t.Fatalf("%v became %s, %v, %v", number, appendDouble(nil, number), f, err)
		}
	})
}
