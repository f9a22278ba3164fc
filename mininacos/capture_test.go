package mininacos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// deviation is where mininacos knowingly answers otherwise than the capture, and why.
type deviation struct {
	reason      string
	status      int    // 0: as captured
	contentType string // "": as captured
	body        string // "": as captured; in its normal form
}

const madeByPost = "three of the services captured were made by POST /service, which mininacos has not; and the order is that of creation"

var deviations = map[string]deviation{
	"053-patch": {reason: "PATCH is not served; the replay applies it beside the wire for what comes after",
		status: 501, contentType: typeJSON, body: `{"timestamp":"T","status":501,"error":"Not Implemented","message":"no such api:PATCH:/nacos/v1/ns/instance","path":"/nacos/v1/ns/instance"}`},
	"106-svc-list":          {reason: madeByPost, body: `{"count":4,"doms":["cap.svc","cap.frombeat","cap.beat","cap.persist"]}`},
	"107-svc-list-sdk":      {reason: madeByPost, body: `{"count":4,"doms":["cap.svc","cap.frombeat"]}`},
	"108-svc-list-page2":    {reason: madeByPost, body: `{"count":4,"doms":["cap.beat","cap.persist"]}`},
	"109-svc-list-page-far": {reason: madeByPost, body: `{"count":4,"doms":[]}`},
	"111-svc-list-selector": {reason: madeByPost, body: `{"count":4,"doms":["cap.svc","cap.frombeat","cap.beat","cap.persist"]}`},
	"114-svc-list-page-bad": {reason: madeByPost, body: `{"count":4,"doms":["cap.svc","cap.frombeat","cap.beat","cap.persist"]}`},
	"115-svc-list-page-0":   {reason: madeByPost, body: `{"count":4,"doms":[]}`},
	"123-op-metrics-full": {reason: "the real server counts services late, counts an ip:port whose registration it refused as a client, and measures its machine",
		body: `{"status":"UP","serviceCount":6,"instanceCount":13,"subscribeCount":0,"responsibleInstanceCount":13,"clientCount":10,"connectionBasedClientCount":0,"ephemeralIpPortClientCount":10,"persistentIpPortClientCount":0,"responsibleClientCount":10,"cpu":0.0,"load":0.0,"mem":0.0}`},
}

// TestS1_CapturesReplayed makes every captured request in order and wants the captured status, content type and body, byte for
// byte but for times, the order of hosts and of metadata keys (a hash's order there), and the deviations above.
func TestS1_CapturesReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/nacos-2.3.2/*.txt")
	require.NoError(t, err)
	require.Greater(t, len(files), 90)
	slices.Sort(files)
	seen := make(map[string]bool)
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			x := readCapture(t, file)
			want := answer{x.status, x.contentType, normal(t, x.body)}
			if d, ok := deviations[name]; ok {
				seen[name] = true
				want = d.apply(want)
			}
			resp, err := c.http.Do(x.request(t, c.srv.Addr()))
			require.NoError(t, err, name)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err, name)
			resp.Body.Close()
			got := answer{resp.StatusCode, resp.Header.Get("Content-Type"), normal(t, string(body))}
			if got != want {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
			}
			if name == "053-patch" {
				i := NewInstance("10.9.8.3", 8080)
				i.Weight, i.Metadata = 3, map[string]string{"p": "q"}
				require.NoError(t, c.srv.Update("", "", "cap.svc", i))
			}
		}
	})
	require.Len(t, seen, len(deviations), "a deviation whose capture is not replayed")
}

func (d deviation) apply(a answer) answer {
	if d.status != 0 {
		a.status = d.status
	}
	if d.contentType != "" {
		a.contentType = d.contentType
	}
	if d.body != "" {
		a.body = d.body
	}
	return a
}

// capture is one captured exchange.
type capture struct {
	method, target string
	header         http.Header
	form           string
	status         int
	contentType    string
	body           string
}

func readCapture(t *testing.T, file string) capture {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	x := capture{header: make(http.Header)}
	form := false
	rest := string(data)
	for {
		line, after, ok := strings.Cut(rest, "\n")
		if !ok || line == "" {
			x.body = after
			return x
		}
		rest = after
		switch text := strings.TrimPrefix(line, "> "); {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "< HTTP/1.1 "):
			_, err := fmt.Sscanf(line, "< HTTP/1.1 %d", &x.status)
			require.NoError(t, err, file)
		case strings.HasPrefix(line, "< "):
			if name, value, _ := strings.Cut(line[2:], ": "); name == "Content-Type" {
				x.contentType = value
			}
		case x.method == "":
			x.method, x.target, _ = strings.Cut(strings.TrimSuffix(text, " HTTP/1.1"), " ")
		case text == "" || line == ">":
			form = true
		case form:
			x.form = text
		default:
			name, value, _ := strings.Cut(text, ": ")
			x.header.Set(name, value)
		}
	}
}

func (x capture) request(t *testing.T, addr string) *http.Request {
	t.Helper()
	var body io.Reader
	if x.form != "" {
		body = strings.NewReader(x.form)
	}
	req, err := http.NewRequest(x.method, "http://"+addr+x.target, body)
	require.NoError(t, err)
	req.Header = x.header
	return req
}

var times = regexp.MustCompile(`"timestamp":"[^"]*"|"lastRefTime":\d+`)

// normal is a body without what differs from run to run.
func normal(t *testing.T, body string) string {
	t.Helper()
	body = strings.TrimRight(body, "\r\n")
	body = times.ReplaceAllStringFunc(body, func(s string) string {
		if strings.HasPrefix(s, `"timestamp"`) {
			return `"timestamp":"T"`
		}
		return `"lastRefTime":0`
	})
	if !strings.HasPrefix(body, "{") || !json.Valid([]byte(body)) {
		return body
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var b bytes.Buffer
	writeSorted(t, &b, dec, "")
	return b.String()
}

// writeSorted copies one JSON value as it is, but hosts and metadata in order.
func writeSorted(t *testing.T, b *bytes.Buffer, dec *json.Decoder, key string) {
	t.Helper()
	token, err := dec.Token()
	require.NoError(t, err)
	delim, ok := token.(json.Delim)
	if !ok {
		text, err := json.Marshal(token)
		require.NoError(t, err)
		b.Write(text)
		return
	}
	var parts []string
	for dec.More() {
		var part bytes.Buffer
		sub := key
		if delim == '{' {
			name, err := dec.Token()
			require.NoError(t, err)
			fmt.Fprintf(&part, "%q:", name)
			sub = name.(string)
		}
		writeSorted(t, &part, dec, sub)
		parts = append(parts, part.String())
	}
	if key == "hosts" && delim == '[' || key == "metadata" {
		slices.Sort(parts)
	}
	end, err := dec.Token()
	require.NoError(t, err)
	b.WriteString(delim.String() + strings.Join(parts, ",") + end.(json.Delim).String())
}
