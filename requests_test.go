package nacos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
	"github.com/nacos-naming/nacos/internal/wire"
	"github.com/nacos-naming/nacos/mininacos"
)

// everyAPI calls each API once, directly, and returns the errors by its name.
func everyAPI(ctx context.Context, p *namingProxy, group, service string, in Instance) map[string]error {
	errs := map[string]error{
		"register":   p.register(ctx, group, service, in, 0),
		"update":     p.update(ctx, group, service, in, 0),
		"deregister": p.deregister(ctx, group, service, in),
	}
	_, errs["beat"] = p.beat(ctx, group, service, in, false, 5*time.Second)
	_, errs["light beat"] = p.beat(ctx, group, service, in, true, 5*time.Second)
	_, errs["list"] = p.list(ctx, serviceKey{group: group, name: service, clusters: in.Cluster}, wire.Fingerprint{})
	_, errs["services"] = p.services(ctx, group, 1, 10)
	_, errs["status"] = p.status(ctx)
	return errs
}

// P13: whatever stands in a name, the server gets that and no other parameter.
func TestEveryParameterIsEncoded(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for _, name := range []string{"a b", "a%41", "a&port=1", "a=b", "a+b", "a/b/../c", "a?b#c", "\u4e2d\u6587\U0001F600", `a"b\c`, "a;b", "a:b", "<a>", "'"} {
			ns := w.client(WithNamespace("ns"+name), WithAppName(name))
			in := NewInstance("10.9.0.1", 8080)
			in.Cluster = name
			in.Metadata = NewMetadata(map[string]string{name: name})
			w.server().ResetRequests()
			everyAPI(w.ctx, ns.proxy, "g"+name, name, in)
			log := w.server().RequestLog()
			require.Len(t, log, 8, name)
			for _, r := range log {
				assert.Equal(t, "ns"+name, r.Param("namespaceId"))
				for param, values := range r.Params {
					require.Len(t, values, 1, "%s %s", r.API, param)
					switch param {
					case "serviceName":
						assert.Equal(t, "g"+name+"@@"+name, values[0], r.API)
					case "groupName":
						assert.Equal(t, "g"+name, values[0], r.API)
					case "clusterName", "clusters", "app":
						assert.Equal(t, name, values[0], "%s %s", r.API, param)
					case "metadata":
						m, err := wire.ParseMetadata(values[0])
						require.NoError(t, err)
						assert.True(t, m.Equal(in.Metadata.pairs), "%q", values[0])
					case "beat":
						beat, err := wire.DecodeBeat([]byte(values[0]))
						require.NoError(t, err)
						assert.Equal(t, "g"+name+"@@"+name, beat.Service)
						assert.Equal(t, name, beat.Cluster)
					case "port":
						assert.Equal(t, "8080", values[0], r.API)
					}
				}
			}
		}
	})
}

// P13: what servers do allow comes back as it was.
func TestMetadataComesBackAsItWas(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client()
		pairs := map[string]string{"a b": "c&d=e", "%41": "+", "\u4e2d": "\U0001F600\n\t\x01", `"\`: "{},:", "/": "", "url": "http://x/?a=b&c=d#e"}
		in := NewInstance("10.9.0.1", 8080)
		in.Metadata = NewMetadata(pairs)
		w.register(ns, "orders", in)
		list, err := ns.GetAllInstances(w.ctx, "orders")
		require.NoError(t, err)
		require.Len(t, list, 1)
		for k, v := range pairs {
			assert.Equal(t, v, list[0].Metadata.Get(k), "%q", k)
		}
	})
}

// P14: the headers by which servers know a client, on every request.
func TestHeaders(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		everyAPI(w.ctx, w.client(WithAppName("shop")).proxy, "g", "orders", NewInstance("10.9.0.1", 8080))
		ids := make(map[string]bool)
		log := w.server().RequestLog()
		for _, r := range log {
			assert.Regexp(t, regexp.MustCompile(`^Nacos-Go-Client:v\d+\.\d+\.\d+$`), r.UserAgent())
			assert.Equal(t, r.UserAgent(), r.Header.Get("Client-Version"))
			assert.Equal(t, "Naming", r.Header.Get("Request-Module"))
			assert.Regexp(t, regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), r.Header.Get("RequestId"))
			ids[r.Header.Get("RequestId")] = true
			if r.API == mininacos.APIList {
				assert.Equal(t, "shop", r.Param("app"))
			}
			if r.Param("beat") != "" {
				assert.Equal(t, "application/x-www-form-urlencoded;charset=UTF-8", r.Header.Get("Content-Type"))
			}
		}
		assert.Len(t, ids, len(log))
	})
}

// P13: an answer of another shape is an error that tells kind and place, for every API; the client goes on.
func TestAnswersOfOtherShapes(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ns := w.client(WithMaxTries(1), WithRequestTimeout(time.Second))
		in := NewInstance("10.9.0.1", 8080)
		deep := strings.Repeat("[", 100_000)
		for _, body := range []string{
			"", " \r\n", "<html><body>Welcome</body></html>", "{", `{"a":1}`, `{"hosts":[{"ip":`, `{"hosts":[{"ip":"1.1.1.1","port":99999}]}`,
			`{"name":"g@@orders"}`, `{"name":"g@@other","hosts":[]}`, `{"hosts":[]}`, `{"count":"x","doms":1}`, `{"code":"x"}`, `{"status":[7]}`,
			"[]", "null", "true", "0", `"ok`, "OK", "ok ok", "\x00\xff\xfe", deep, `{"hosts":` + deep, `{"metadata":{"a":` + deep,
		} {
			remove := w.server().Intercept(always(mininacos.Fault{Status: 200, Body: body}))
			short := fmt.Sprintf("%.40q", body)
			for api, err := range everyAPI(w.ctx, ns.proxy, "g", "orders", in) {
				var wrong *wire.DecodeError
				if !assert.ErrorAs(t, err, &wrong, "%s: %s", api, short) {
					continue
				}
				assert.NotEmpty(t, wrong.Kind)
				assert.True(t, wrong.Offset >= 0 && wrong.Offset <= len(body), "%s: %s: %v", api, short, err)
				assert.Contains(t, err.Error(), wrong.Error())
				assert.Equal(t, 200, w.failure(err).Status)
				assert.Less(t, len(err.Error()), 300)
			}
			remove()
		}
		assert.False(t, ns.Stats().Servers[0].Failing, "a server that answers is none that is down")
		for api, err := range everyAPI(w.ctx, ns.proxy, "g", "orders", in) {
			assert.NoError(t, err, api)
		}
	})
}

// answering makes a server at 10.2.0.1:8848 that sends these bytes to each request and cuts the connection.
func (w *world) answering(answer string) (close func()) {
	w.Helper()
	l, err := w.net.Host("10.2.0.1").Listen("tcp", ":8848")
	require.NoError(w, err)
	ended := make(chan struct{})
	go func() {
		defer func() { ended <- struct{}{} }()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(conn, answer)
			}
			conn.Close()
		}
	}()
	return func() { l.Close(); <-ended }
}

// P13: nothing that a server sends instead of a proper answer does harm, or fills a log.
func TestAnswersThatAreNoHTTP(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
		for _, c := range []struct {
			answer string
			status int // of the error; -1: none
		}{
			{ok, -1},
			{"HTTP/1.0 200 OK\r\n\r\nok", -1},
			{"HTTP/1.1 100 Continue\r\n\r\n" + ok, -1},
			{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok, -1},
			{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", -1},
			{"", 0},
			{"HTTP/1.1 0\r\n\r\n", 0},
			{"HTTP/1.1 000 \r\nContent-Length: 2\r\n\r\nok", 0},
			{"HTTP/1.1 -10 x\r\n\r\n", 0},
			{"HTTP/1.1 200", 0},
			{"HTTP/9.9 200 OK\r\n\r\nok", -1},
			{"HTTP/1.1 200 OK\r\nno header\r\n\r\n", 0},
			{"SSH-2.0-OpenSSH_9\r\n", 0},
			{"\x16\x03\x01\x00", 0},
			{strings.Repeat("x", 1<<20), 0},
			{strings.Repeat("x", 20<<10) + "\r\n\r\n", 0}, // which net/http quotes
			{"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20), 0},
			{strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50) + ok, -2},
			{"HTTP/1.1 101 Switching Protocols\r\n\r\nok", 101},
			{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", 200},
			{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok", 0},
			{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", 200},
			{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200},
			{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", 200},
			{"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\ncaused: ", 500},
			{"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", 999},
		} {
			end := w.answering(c.answer)
			ns := w.client(WithServers("10.2.0.1"), WithMaxTries(1), WithRequestTimeout(time.Second))
			err := ns.proxy.register(w.ctx, "g", "orders", NewInstance("10.9.0.1", 8080), 0)
			short := fmt.Sprintf("%.80q: %v", c.answer, err)
			switch c.status {
			case -1:
				assert.NoError(t, err, short)
			case -2: // net/http decides
			default:
				failure := w.failure(err)
				assert.Equal(t, c.status, failure.Status, short)
				assert.Equal(t, c.status == 0, ns.Stats().Servers[0].Failing, short)
				assert.True(t, mayHaveActed(err), short)
				assert.True(t, failure.Retryable, short)
				assert.Less(t, len(err.Error()), 500, short)
				assert.NotContains(t, err.Error(), "serviceName")
			}
			require.NoError(t, ns.Close())
			end()
		}
	})
}

// P13: half an answer, and bytes of no protocol, as a server in trouble sends them.
func TestAnswersCutOff(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		provider := w.client()
		w.register(provider, "orders", NewInstance("10.9.0.1", 8080))
		for _, f := range []mininacos.Fault{{CutBody: true}, {Garbage: true}, {DropReply: true}} {
			remove := w.server().Intercept(always(f))
			for range 5 { // from whichever server on, the other one helps
				list, err := w.client().GetAllInstances(w.ctx, "orders", NoSubscribe())
				require.NoError(t, err)
				assert.Len(t, list, 1)
			}
			remove()
		}
		w.cluster.Intercept(always(mininacos.Fault{CutBody: true}))
		err := w.poll(w.client())
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Contains(t, err.Error(), "status 200: body cannot be read beyond ")
	})
}

// P15: redirects are not followed; the error names the host, not the rest of the address.
func TestRedirectsAreNotFollowed(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		for location, want := range map[string]string{
			"http://" + w.servers[1].Addr() + "/nacos?token=secret": "redirect to " + w.servers[1].Addr() + " not followed",
			"https://user:secret@login.example/path/secret":         "redirect to login.example not followed",
			"//login.example/secret":                                "redirect to login.example not followed",
			"/secret":                                               "redirect to 10.2.0.1:8848 not followed",
			"http://[secret":                                        "redirect to a malformed address not followed",
			"":                                                      "status 307",
		} {
			end := w.answering("HTTP/1.1 307 X\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n")
			w.askedEach()
			err := w.poll(w.client(WithServers("10.2.0.1"), WithMaxTries(1)))
			assert.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "secret")
			assert.Equal(t, []int{0, 0}, w.askedEach())
			end()
			moment()
		}
	})
}

// zeros is a body without end.
type zeros struct{ read int }

func (z *zeros) Read(p []byte) (int, error) { clear(p); z.read += len(p); return len(p), nil }
func (z *zeros) Close() error               { return nil }

// P13: a body without end is given up at 64 MiB.
func TestBodyIsLimited(t *testing.T) {
	leakcheck.Check(t)
	body := new(zeros)
	p := aloneProxy(t, func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200, Body: body}, nil })
	require.EqualValues(t, 64<<20, p.maxBody)
	p.maxBody = 1 << 20 // the same in less time
	_, err := p.status(context.Background())
	assert.ErrorContains(t, err, "body is larger than 1048576 bytes")
	assert.LessOrEqual(t, body.read, 1<<20+1)
}

// aloneProxy makes a proxy with one server and a RoundTripper, without a client around it.
func aloneProxy(t *testing.T, rt transportFunc) *namingProxy {
	t.Helper()
	cfg, err := newConfig([]Option{WithServers("nacos"), WithRoundTripper(rt), WithMaxTries(1)})
	require.NoError(t, err)
	servers, err := newServerList(cfg.servers, cfg.contextPath, newRandom(nil))
	require.NoError(t, err)
	return newNamingProxy(&cfg, servers, newRandom(nil), cfg.logger)
}

// Bodies are read into buffers that are used again: what was decoded must not change with them.
func TestResultsDoNotShareTheBuffer(t *testing.T) {
	leakcheck.Check(t)
	var body string
	status := 200
	p := aloneProxy(t, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	ctx, key := context.Background(), serviceKey{group: "g", name: "orders"}
	body = `{"name":"g@@orders","clusters":"c1","hosts":[{"ip":"10.0.0.1","port":1,"clusterName":"c1","instanceId":"i1","metadata":{"k1":"v1"}}],"lastRefTime":1,"checksum":"s"}`
	list, err := p.list(ctx, key, wire.Fingerprint{})
	require.NoError(t, err)
	before := fmt.Sprintf("%+v", *list.info)
	body = `{"count":1,"doms":["orders"]}`
	services, err := p.services(ctx, "g", 1, 10)
	require.NoError(t, err)
	body = `{"status":"STARTING"}`
	state, err := p.status(ctx)
	require.NoError(t, err)
	status, body = 400, `{"message":"token is wrong"}`
	_, refused := p.status(ctx)

	status, body = 200, string(bytes.Repeat([]byte("#"), 4096))
	for range 100 { // whichever buffers there are
		_, _ = p.status(ctx)
	}
	assert.Equal(t, before, fmt.Sprintf("%+v", *list.info))
	assert.Equal(t, []string{"orders"}, services.Names)
	assert.Equal(t, "STARTING", state)
	var failure *APIError
	require.True(t, errors.As(refused, &failure))
	assert.Equal(t, "token is wrong", failure.Message)
}

// P13: a request that is sent again has its whole body again.
func TestBodyOfARetryIsWhole(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		var beats []string
		w.cluster.Intercept(func(r *mininacos.Request) mininacos.Fault {
			beats = append(beats, r.Param("beat"))
			return mininacos.Fault{Status: 503}
		})
		_, err := w.client().proxy.beat(w.ctx, "g", "orders", NewInstance("10.9.0.1", 8080), false, 5*time.Second)
		require.Error(t, err)
		require.Len(t, beats, 3)
		assert.Contains(t, beats[0], `"ip":"10.9.0.1"`)
		assert.Equal(t, []string{beats[0], beats[0]}, beats[1:])
	})
}

// P8: the context path, also one of a server's own, stands in front of every path.
func TestContextPath(t *testing.T) {
	leakcheck.Check(t)
	for _, c := range []struct{ server, path, want string }{
		{"nacos", "/nacos", "http://nacos:8848/nacos"},
		{"nacos", "", "http://nacos:8848"},
		{"nacos", "a/b/", "http://nacos:8848/a/b"},
		{"https://nacos/own", "/nacos", "https://nacos:443/own"},
		{"http://nacos/with%20blank", "/nacos", "http://nacos:80/with%20blank"},
	} {
		var got url.URL
		rt := transportFunc(func(r *http.Request) (*http.Response, error) { got = *r.URL; return nil, io.EOF })
		ns, err := NewNamingService(WithServers(c.server), WithContextPath(c.path), WithRoundTripper(rt), WithMaxTries(1))
		require.NoError(t, err)
		_, err = ns.GetServerStatus(context.Background())
		require.ErrorIs(t, err, io.EOF)
		got.RawQuery = ""
		assert.Equal(t, c.want+wire.PathMetrics, got.String())
		require.NoError(t, ns.Close())
	}
}
