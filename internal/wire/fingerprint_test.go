package wire

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func fingerprintOf(t testing.TB, body string) Fingerprint {
	t.Helper()
	_, fp, err := DecodeServiceInfo([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return fp
}

// Rule H7: a body that is the last one but for its time is recognized.
func TestH7_FingerprintMatchesOtherTimes(t *testing.T) {
	leakcheck.Check(t)
	const before, after = `{"name":"g@@s","hosts":[{"ip":"a"}],"lastRefTime":`, `,"checksum":""}`
	fp := fingerprintOf(t, before+"1796080569073"+after)
	for _, at := range []int64{1796080569073, 1796080569074, 9, 0, 1<<63 - 1} {
		if got, same := fp.Match([]byte(before + strconv.FormatInt(at, 10) + after)); !same || got != at {
			t.Errorf("%d: got %d, %t", at, got, same)
		}
	}
	for name, body := range map[string]string{
		"nothing":                     "",
		"no digits":                   before + after,
		"a zero in front":             before + "01796080569073" + after,
		"a time beyond int64":         before + "9223372036854775808" + after,
		"twenty digits":               before + "10000000000000000000" + after,
		"a negative time":             before + "-1796080569073" + after,
		"a fraction":                  before + "1796080569073.5" + after,
		"an exponent":                 before + "17e3" + after,
		"null":                        before + "null" + after,
		"in quotes":                   before + `"1796080569073"` + after,
		"cut before the digits":       before,
		"cut behind the digits":       before + "1796080569073",
		"the end cut off":             before + "1796080569073" + after[:len(after)-1],
		"something behind":            before + "1796080569073" + after + "\n",
		"another host, as long":       `{"name":"g@@s","hosts":[{"ip":"b"}],"lastRefTime":` + "1796080569073" + after,
		"another checksum":            before + "1796080569073" + `,"checksum":"1"}`,
		"another checksum, less time": before + "179608056907" + `,"checksum":"1"}`,
	} {
		if at, same := fp.Match([]byte(body)); same || at != 0 {
			t.Errorf("%s: matches: %d", name, at)
		}
	}
}

func TestH7_FingerprintChangesWithEveryByte(t *testing.T) {
	leakcheck.Check(t)
	body := read(t, "nacos-2.3.2/032-list-basic.list")
	fp := fingerprintOf(t, string(body))
	start := bytes.Index(body, []byte(`"lastRefTime":`)) + len(`"lastRefTime":`)
	for i := range body {
		if i >= start && isDigit(body[i]) && i < start+13 {
			continue
		}
		changed := bytes.Clone(body)
		changed[i] ^= 1
		if _, same := fp.Match(changed); same {
			t.Fatalf("byte %d changed, and it matches", i)
		}
	}
}

func TestFingerprintIsZeroWithoutTime(t *testing.T) {
	leakcheck.Check(t)
	for _, body := range []string{
		`{"name":"g@@s","hosts":[]}`,
		`{"name":"g@@s","lastRefTime":null}`,
		`{"name":"g@@s","lastRefTime":-5}`,
		`{"name":"g@@s","lastRefTime":1e3}`,
	} {
		fp := fingerprintOf(t, body)
		if fp != (Fingerprint{}) {
			t.Errorf("%s: has a fingerprint", body)
		}
		if _, same := fp.Match([]byte(body)); same {
			t.Errorf("%s: the zero fingerprint matches", body)
		}
	}
	if _, same := (Fingerprint{}).Match(nil); same {
		t.Error("the zero fingerprint matches nothing")
	}
}

// The key may also stand in metadata, be in a string or come twice: the digits are those that were decoded.
func TestFingerprintTakesTheRightTime(t *testing.T) {
	leakcheck.Check(t)
	const tricky = `{"name":"g@@s","lastRefTime":1,"hosts":[{"ip":"a","metadata":{"lastRefTime":2}}],"lastRefTime":"3","x":{"lastRefTime":4}}`
	fp := fingerprintOf(t, tricky)
	for i, c := range tricky {
		if !isDigit(byte(c)) {
			continue
		}
		other := []byte(tricky)
		other[i] = '9'
		at, same := fp.Match(other)
		if want := c == '3'; same != want {
			t.Errorf("digit %c changed: match %t, want %t", c, same, want)
		}
		if same && at != 9 {
			t.Errorf("time %d, want 9", at)
		}
	}
}
