package wire

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func mustDecode(t testing.TB, body string) *ServiceInfo {
	t.Helper()
	info, _, err := DecodeServiceInfo([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestDecodeListFields(t *testing.T) {
	leakcheck.Check(t)
	const name = `"name":"g@@s"`
	for _, c := range []struct {
		name, body string
		want       ServiceInfo
	}{
		// Rule H5: without hosts it is an error push, which is told apart from an empty list.
		{"1.x error push", `{` + name + `,"lastRefTime":5,"cacheMillis":10000}`, ServiceInfo{Name: "g@@s", LastRefTime: 5, CacheMillis: 10000, Valid: true}},
		{"null hosts", `{` + name + `,"hosts":null}`, ServiceInfo{Name: "g@@s", Valid: true}},
		{"unknown service on 1.x", `{` + name + `,"clusters":"","cacheMillis":10000,"hosts":[]}`, ServiceInfo{Name: "g@@s", CacheMillis: 10000, HasHosts: true, Valid: true}},
		{"hosts that are counted but empty", `{"hosts":[],"x":{"ip":1,"a":"` + strings.Repeat("b", 100) + `"},` + name + `}`, ServiceInfo{Name: "g@@s", HasHosts: true, Valid: true}},
		{"all nulls", `{` + name + `,"groupName":null,"clusters":null,"cacheMillis":null,"lastRefTime":null,"checksum":null,"allIPs":null,"reachProtectionThreshold":null,"valid":null}`,
			ServiceInfo{Name: "g@@s", Valid: true}},
		{"3.x spelling, not valid", `{` + name + `,"allIps":true,"valid":false,"reachProtectionThreshold":true}`, ServiceInfo{Name: "g@@s", AllIPs: true, ReachProtectionThreshold: true}},
		{"a time in a string", `{` + name + `,"lastRefTime":"1439141794430"}`, ServiceInfo{Name: "g@@s", LastRefTime: 1439141794430, Valid: true}},
		{"a time beyond 2^53", `{` + name + `,"lastRefTime":9007199254740993}`, ServiceInfo{Name: "g@@s", LastRefTime: 9007199254740993, Valid: true}},
		{"the largest time", `{` + name + `,"lastRefTime":9223372036854775807}`, ServiceInfo{Name: "g@@s", LastRefTime: 1<<63 - 1, Valid: true}},
		{"the least time", `{` + name + `,"lastRefTime":-9223372036854775808}`, ServiceInfo{Name: "g@@s", LastRefTime: -1 << 63, Valid: true}},
		{"numbers with exponent and zero fraction", `{` + name + `,"lastRefTime":1.5e3,"cacheMillis":3000.0}`, ServiceInfo{Name: "g@@s", LastRefTime: 1500, CacheMillis: 3000, Valid: true}},
		{"the last of duplicates", `{"name":"a","name":"g@@s","hosts":[{"ip":"a"}],"hosts":[]}`, ServiceInfo{Name: "g@@s", HasHosts: true, Valid: true}},
		{"an empty key and unknown fields", `{"":1,` + name + `,"a":[{"b":[true,false,null,"\u0041",-1.5E+3]},{}],"c":{"":""}}`, ServiceInfo{Name: "g@@s", Valid: true}},
		{"escaped keys and values", `{"n\u0061me":"g@@\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t"}`, ServiceInfo{Name: "g@@\u00e9\U0001f600\"\\/\b\f\n\r\t", Valid: true}},
		{"half of a surrogate pair", `{"name":"a\ud800"}`, ServiceInfo{Name: "a\ufffd", Valid: true}},
		{"white space everywhere", " {\n\"name\" :\t\"g@@s\" ,\r\"hosts\" : [ ] } ", ServiceInfo{Name: "g@@s", HasHosts: true, Valid: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mustDecode(t, c.body); !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got\n%+v\nwant\n%+v", *got, c.want)
			}
		})
	}
}

func TestDecodeHostFields(t *testing.T) {
	leakcheck.Check(t)
	base := func(change func(*Host)) Host {
		h := Host{IP: "a", Weight: 1, Healthy: true, Enabled: true, Ephemeral: true, Cluster: "DEFAULT"}
		if change != nil {
			change(&h)
		}
		return h
	}
	for _, c := range []struct {
		name, fields string
		want         Host
	}{
		{"ip alone takes the defaults", ``, base(nil)},
		{"nulls take the defaults", `,"instanceId":null,"port":null,"weight":null,"healthy":null,"valid":null,"enabled":null,"ephemeral":null,"clusterName":null,"serviceName":null,"metadata":null,"instanceHeartBeatInterval":null,"instanceIdGenerator":null`, base(nil)},
		{"valid as 1.x sends it", `,"valid":false`, base(func(h *Host) { h.Healthy = false })},
		{"healthy before valid", `,"healthy":true,"valid":false`, base(nil)},
		{"healthy after valid", `,"valid":false,"healthy":true`, base(nil)},
		{"a null healthy leaves it to valid", `,"valid":false,"healthy":null`, base(func(h *Host) { h.Healthy = false })},
		{"flags that are false", `,"healthy":false,"enabled":false,"ephemeral":"false"`, base(func(h *Host) { h.Healthy, h.Enabled, h.Ephemeral = false, false, false })},
		{"an empty cluster", `,"clusterName":""`, base(func(h *Host) { h.Cluster = "" })},
		{"the highest port", `,"port":65535`, base(func(h *Host) { h.Port = 65535 })},
		{"numbers in strings", `,"port":"80","weight":"2.5","ipDeleteTimeout":"7"`, base(func(h *Host) { h.Port, h.Weight, h.DeleteTimeout = 80, 2.5, 7 })},
		{"weight zero", `,"weight":0.0`, base(func(h *Host) { h.Weight = 0 })},
		{"weight in scientific notation", `,"weight":1.0E-4`, base(func(h *Host) { h.Weight = 1e-4 })},
		{"a weight of many digits", `,"weight":12345678901234567.8`, base(func(h *Host) { h.Weight = 12345678901234567.8 })},
		{"metadata of other types", `,"metadata":{"s":"","n":null,"b":true,"d":1.50,"e":-1e3}`,
			base(func(h *Host) {
				h.Metadata = Metadata{{"b", "true"}, {"d", "1.50"}, {"e", "-1e3"}, {"n", ""}, {"s", ""}}
			})},
		{"metadata with duplicates and an empty key", `,"metadata":{"k":"1","":"2","k":"3"}`, base(func(h *Host) { h.Metadata = Metadata{{"", "2"}, {"k", "3"}} })},
		{"escaped metadata", `,"metadata":{"\u006b":"\"v\""}`, base(func(h *Host) { h.Metadata = Metadata{{"k", `"v"`}} })},
		{"an id of another ip", `,"instanceId":"b#80"`, base(func(h *Host) { h.InstanceID = "b#80" })},
		{"an id in another format", `,"instanceId":"a"`, base(func(h *Host) { h.InstanceID = "a" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := mustDecode(t, `{"name":"g@@s","hosts":[{"ip":"a"`+c.fields+`}]}`)
			if len(info.Hosts) != 1 || !reflect.DeepEqual(info.Hosts[0], c.want) {
				t.Errorf("got\n%+v\nwant\n%+v", info.Hosts, c.want)
			}
		})
	}
}

// The weight of the host before is recognized by its text, which must not be the beginning of another one.
func TestWeightAfterSimilarWeight(t *testing.T) {
	leakcheck.Check(t)
	info := mustDecode(t, `{"name":"g@@s","hosts":[{"ip":"a","weight":1},{"ip":"b","weight":1.5},{"ip":"c","weight":1.55},{"ip":"d","weight":1.55 },{"ip":"e","weight":1e1},{"ip":"f","weight":"1e1"},{"ip":"g","weight":1e1}]}`)
	want := []float64{1, 1.5, 1.55, 1.55, 10, 10, 10}
	if len(info.Hosts) != len(want) {
		t.Fatalf("%d hosts", len(info.Hosts))
	}
	for i, h := range info.Hosts {
		if h.Weight != want[i] {
			t.Errorf("host %d: weight %v, want %v", i, h.Weight, want[i])
		}
	}
}

func sameMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// Equal texts of one list are kept once; an ip that begins its id is a part of it.
func TestHostsShareMemory(t *testing.T) {
	leakcheck.Check(t)
	host := func(ip, meta string) string {
		return `{"ip":"` + ip + `","instanceId":"` + ip + `#80#DEFAULT","clusterName":"c1","serviceName":"g@@s","instanceIdGenerator":"simple","metadata":` + meta + `}`
	}
	info := mustDecode(t, `{"name":"g@@s","hosts":[`+strings.Join([]string{
		host("10.0.0.1", `{"k":"v"}`), host("10.0.0.2", `{"k":"w"}`), host("10.0.0.3", `{"k":"v"}`), host("10.0.0.4", `{"k":"v"}`),
	}, ",")+`]}`)
	first := info.Hosts[0]
	for i, h := range info.Hosts {
		if !sameMemory(h.Cluster, first.Cluster) || !sameMemory(h.Service, first.Service) || !sameMemory(h.IDGenerator, first.IDGenerator) {
			t.Errorf("host %d has names of its own", i)
		}
		if !sameMemory(h.IP, h.InstanceID) {
			t.Errorf("host %d: ip and id are two strings", i)
		}
		if shared := &h.Metadata[0] == &first.Metadata[0]; shared != (i != 1) {
			t.Errorf("host %d: metadata shared: %t", i, shared)
		}
	}
}

// More names than the interner keeps at hand are still found.
func TestInternerKeepsAll(t *testing.T) {
	leakcheck.Check(t)
	var in interner
	var made []string
	for _, name := range strings.Fields("a b c d e f g h") {
		made = append(made, in.of([]byte(name)))
	}
	for i, name := range strings.Fields("a b c d e f g h") {
		if got := in.of([]byte(name)); got != name || !sameMemory(got, made[i]) {
			t.Errorf("%s: got another %q", name, got)
		}
	}
}

// No string of a decoded list changes when the buffer it was decoded from is used again.
func TestDecodedListKeepsNothingOfTheBody(t *testing.T) {
	leakcheck.Check(t)
	body := read(t, "nacos-2.3.2/032-list-basic.list")
	info, _, err := DecodeServiceInfo(body)
	if err != nil {
		t.Fatal(err)
	}
	want := referenceInfo(t, body)
	clear(body)
	if !reflect.DeepEqual(info, want) {
		t.Errorf("the list changed with its body: %+v", info)
	}
}

// Long numbers take linear time: this test would run for minutes with a quadratic one.
func TestLongNumbers(t *testing.T) {
	leakcheck.Check(t)
	digits := strings.Repeat("7", 4<<20)
	for _, c := range []struct{ body, kind string }{
		{`{"name":"g@@s","x":` + digits + `e999999999}`, ""},
		{`{"name":"g@@s","x":-0.` + digits + `E-999999999}`, ""},
		{`{"name":"g@@s","cacheMillis":` + digits + `}`, KindType},
		{`{"name":"g@@s","hosts":[{"ip":"a","weight":0.` + digits + `}]}`, ""},
		{`{"name":"g@@s","hosts":[{"ip":"a","weight":` + digits + `e999999999}]}`, KindBadHost},
	} {
		_, _, err := DecodeServiceInfo([]byte(c.body))
		if c.kind == "" && err != nil || c.kind != "" && kindOf(err) != c.kind {
			t.Errorf("%.40s...: got %v, want %q", c.body, err, c.kind)
		}
	}
}

// Memory is bounded by the size of the body, also for one whose first host makes very many expected.
func TestHostsAreNotMadeFromPromises(t *testing.T) {
	leakcheck.Check(t)
	body := []byte(`{"name":"g@@s","hosts":[{"ip":"a"},"` + strings.Repeat("x", 4<<20))
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := DecodeServiceInfo(body); kindOf(err) != KindTruncated {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if most := int64(3 * len(body)); got > most {
		t.Errorf("%d bytes allocated for a body of %d, want at most %d", got, len(body), most)
	}
}

// A list keeps no room for hosts that did not come.
func TestHostsHaveTheirSize(t *testing.T) {
	leakcheck.Check(t)
	long := `{"ip":"a","metadata":{"k":"` + strings.Repeat("x", 2000) + `"}}`
	for name, hosts := range map[string]string{
		"a short one first": `{"ip":"a"}` + strings.Repeat(","+long, 100),
		"a long one first":  long + strings.Repeat(`,{"ip":"a"}`, 100),
	} {
		info := mustDecode(t, `{"name":"g@@s","hosts":[`+hosts+`]}`)
		if n := len(info.Hosts); n != 101 || cap(info.Hosts) > n+n/4 {
			t.Errorf("%s: %d hosts, room for %d", name, n, cap(info.Hosts))
		}
	}
}

// A real 2.3.2 takes a weight of NaN and lists it so; that must not cost the other hosts.
func TestH12_WeightThatIsNoNumberSparesTheOtherHosts(t *testing.T) {
	leakcheck.Check(t)
	info := mustDecode(t, `{"name":"g@@s","hosts":[{"ip":"a","weight":"NaN"},{"ip":"b","weight":"Infinity"},{"ip":"c","weight":2.0}]}`)
	if len(info.Hosts) != 3 || !math.IsNaN(info.Hosts[0].Weight) || !math.IsInf(info.Hosts[1].Weight, 1) || info.Hosts[2].Weight != 2 {
		t.Errorf("got %+v", info.Hosts)
	}
}
