package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func TestErrorMessageOfCaptures(t *testing.T) {
	leakcheck.Check(t)
	for name, want := range map[string]string{
		"nacos-2.3.2/007-inst-register-missing-serviceName.error":  "caused: Param 'serviceName' is required.;",
		"nacos-2.3.2/009-inst-register-serviceName-no-name.error":  "Service name filter error,caused: Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName';",
		"nacos-2.3.2/018-inst-register-port-abc.error":             "Param 'port' is illegal, the value should be between 0 and 65535.",
		"nacos-2.3.2/030-path-unknown.error":                       "no such api:GET:/nacos/v1/ns/nothing",
		"nacos-2.3.2/051-update-unknown-service.error":             "caused: service not found, namespace: public, service: Service{namespace='public', group='DEFAULT_GROUP', name='no.such.service', ephemeral=true, revision=0};",
		"nacos-2.3.2/151-v2-inst-register-missing-service.error":   "parameter missing",
		"nacos-2.3.2/auth-10-no-token-register.error":              "user not found!",
		"rnacos-0.8.8/007-inst-register-missing-serviceName.error": "serviceName is invalid!",
		"rnacos-0.8.8/070-beat-bad-json.error":                     "key must be a string at line 1 column 2",
		"rnacos-0.8.8/auth-10-no-token-register.error":             "unknown user!",
	} {
		if got := ErrorMessage(read(t, name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	got := ErrorMessage(read(t, "nacos-2.3.2/070-beat-bad-json.error"))
	if !strings.HasPrefix(got, "Server failed, caused: errCode: 101,") || strings.Contains(got, "\n") || len(got) > maxMessage {
		t.Errorf("capture 070: got %q", got)
	}
}

func TestErrorMessage(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct{ name, body, want string }{
		{"nothing", "", ""},
		{"white space", " \r\n", ""},
		{"a proxy's page", "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title>\n<STYLE type=\"text/css\">h1 {color:red;}</STYLE ><script>if (a<b) x()</script></head><body><h1>502 Bad&nbsp;Gateway</h1><hr/>nginx</body></html>", "502 Bad Gateway 502 Bad Gateway nginx"},
		{"a page cut in a tag", "<html><p>down<a hre", "down"},
		{"a style without end", "<style>h1", ""},
		{"escapes come after tags", "<p>a &lt;b&gt; c</p>", "a <b> c"},
		{"text with a bracket", "caused: a <b> c;", "caused: a <b> c;"},
		{"control characters", "a\x00b\x1b[31m\u0085c\td\x7f", "a b [31m c d"},
		{"bytes that are no UTF-8", "a\xffb", "a\ufffdb"},
		{"escaped control characters", "a&#27;b&#10;c", "a b c"},
		{"JSON without message", `{"status":500,"error":"Internal Server Error"}`, "Internal Server Error"},
		{"JSON with an empty message", `{"message":"","error":"Forbidden"}`, "Forbidden"},
		{"JSON with a message that is none", `{"message":{"a":1},"error":"Forbidden"}`, "Forbidden"},
		{"JSON cut off behind the message", `{"message":"token invalid!","trace":"at `, "token invalid!"},
		{"other JSON", `{"code":1}`, `{"code":1}`},
		{"no JSON", "{nope", "{nope"},
		{"a list", `["a"]`, `["a"]`},
	} {
		if got := ErrorMessage([]byte(c.body)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestErrorMessageIsShort(t *testing.T) {
	leakcheck.Check(t)
	// 170 characters of three bytes fit behind the first, the next would be cut apart.
	if got := ErrorMessage([]byte("a" + strings.Repeat("\u7532", 1000))); got != "a"+strings.Repeat("\u7532", 170) {
		t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
	}
	if got := ErrorMessage([]byte(strings.Repeat("a", maxMessage-1) + " b")); got != strings.Repeat("a", maxMessage-1) {
		t.Errorf("a cut behind a space gives %q", got)
	}
	if got := ErrorMessage([]byte(`{"message":"` + strings.Repeat("a", 1<<20) + `"}`)); got != strings.Repeat("a", maxMessage) {
		t.Errorf("%d bytes of a long message", len(got))
	}
}

func TestErrorCode(t *testing.T) {
	leakcheck.Check(t)
	for body, want := range map[string]int{
		"": 0,
		"caused: Param 'serviceName' is required.;":                 0,
		"caused: errCode: 400, errMsg: no ;":                        400,
		"errCode: ":                                                 0,
		"errCode: 99999999999999999999":                             999999999,
		`{"code":21003,"message":"resource not found","data":null}`: 21003,
		`{"status":403,"error":"Forbidden"}`:                        0,
		`{"code":"20404"}`:                                          20404,
		`{"code":{},"message":"x"}`:                                 0,
		`{"code":1`:                                                 1,
	} {
		if got := ErrorCode([]byte(body)); got != want {
			t.Errorf("%q: got %d, want %d", body, got, want)
		}
	}
}
