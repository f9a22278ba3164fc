package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// golden calls f with each captured body of one ending, as a subtest named for server and capture.
func golden(t *testing.T, server, ending string, f func(t *testing.T, body []byte)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", server, "*."+ending))
	if err != nil || len(names) == 0 {
		t.Fatalf("no captures %s of %s: %v", ending, server, err)
	}
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name), func(t *testing.T) { f(t, body) })
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func kindOf(err error) string {
	if e, ok := err.(*DecodeError); ok {
		return e.Kind
	}
	return "no *DecodeError"
}

// referenceHost and referenceList are decoded by encoding/json, as a second reading of the captures.
type referenceHost struct {
	InstanceID  string            `json:"instanceId"`
	IP          string            `json:"ip"`
	Port        int               `json:"port"`
	Weight      float64           `json:"weight"`
	Healthy     bool              `json:"healthy"`
	Enabled     bool              `json:"enabled"`
	Ephemeral   bool              `json:"ephemeral"`
	Cluster     string            `json:"clusterName"`
	Service     string            `json:"serviceName"`
	Metadata    map[string]string `json:"metadata"`
	Interval    int64             `json:"instanceHeartBeatInterval"`
	Timeout     int64             `json:"instanceHeartBeatTimeOut"`
	Delete      int64             `json:"ipDeleteTimeout"`
	IDGenerator string            `json:"instanceIdGenerator"`
}

type referenceList struct {
	Name        string          `json:"name"`
	Group       string          `json:"groupName"`
	Clusters    string          `json:"clusters"`
	CacheMillis int64           `json:"cacheMillis"`
	Hosts       []referenceHost `json:"hosts"`
	LastRefTime int64           `json:"lastRefTime"`
	Checksum    string          `json:"checksum"`
	AllIPs      bool            `json:"allIPs"`
	Protection  bool            `json:"reachProtectionThreshold"`
	Valid       *bool           `json:"valid"`
}

func (r *referenceList) info() *ServiceInfo {
	info := &ServiceInfo{
		Name: r.Name, Group: r.Group, Clusters: r.Clusters, CacheMillis: r.CacheMillis,
		HasHosts: r.Hosts != nil, LastRefTime: r.LastRefTime, Checksum: r.Checksum,
		AllIPs: r.AllIPs, ReachProtectionThreshold: r.Protection, Valid: r.Valid == nil || *r.Valid,
	}
	for _, h := range r.Hosts {
		info.Hosts = append(info.Hosts, Host{
			InstanceID: h.InstanceID, IP: h.IP, Port: h.Port, Weight: h.Weight,
			Healthy: h.Healthy, Enabled: h.Enabled, Ephemeral: h.Ephemeral,
			Cluster: h.Cluster, Service: h.Service, Metadata: NewMetadata(h.Metadata),
			BeatInterval: h.Interval, BeatTimeout: h.Timeout, DeleteTimeout: h.Delete, IDGenerator: h.IDGenerator,
		})
	}
	return info
}

func referenceInfo(t *testing.T, body []byte) *ServiceInfo {
	t.Helper()
	var r referenceList
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r.info()
}

// Every list that a real server sent is read as encoding/json reads it, but for those with a host that r-nacos ought to
// have refused, which are bad as a whole (rule H5).
func TestH5_DecodeCapturedLists(t *testing.T) {
	leakcheck.Check(t)
	decoded, bad := 0, 0
	golden(t, "*", "list", func(t *testing.T, body []byte) {
		info, fp, err := DecodeServiceInfo(body)
		if bytes.Contains(body, []byte(`"port":70000`)) || bytes.Contains(body, []byte(`"weight":-1.0`)) {
			if kindOf(err) != KindBadHost || info != nil || fp != (Fingerprint{}) {
				t.Fatalf("got %+v, %v, want a bad host", info, err)
			}
			bad++
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := referenceInfo(t, body); !reflect.DeepEqual(info, want) {
			t.Fatalf("got\n%+v\nwant\n%+v", info, want)
		}
		if at, same := fp.Match(body); !same || at != info.LastRefTime {
			t.Fatalf("the fingerprint does not match its own body: %d, %t", at, same)
		}
		decoded++
	})
	if decoded < 35 || bad != 9 {
		t.Errorf("%d decoded, %d bad: captures are missing", decoded, bad)
	}
}

var metadataJSON = regexp.MustCompile(`"metadata":(\{[^{}]*\})`)

// sortedMetadata sorts the keys of the metadata of a list; nothing else changes.
func sortedMetadata(t *testing.T, body []byte) string {
	t.Helper()
	return metadataJSON.ReplaceAllStringFunc(string(body), func(field string) string {
		var m map[string]string
		if err := json.Unmarshal([]byte(strings.TrimPrefix(field, `"metadata":`)), &m); err != nil {
			t.Fatal(err)
		}
		return `"metadata":` + string(NewMetadata(m).AppendJSON(nil))
	})
}

// Decoding what Nacos 2.3.2 sent and encoding it again gives the same bytes, but for the order of metadata keys.
func TestAppendServiceInfoGivesCapturedBytes(t *testing.T) {
	leakcheck.Check(t)
	golden(t, "nacos-2.3.2", "list", func(t *testing.T, body []byte) {
		info, _, err := DecodeServiceInfo(body)
		if err != nil {
			t.Fatal(err)
		}
		prefix := "kept "
		got := string(AppendServiceInfo([]byte(prefix), info))
		if want := prefix + sortedMetadata(t, body); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestDecodeCapturedBeatReplies(t *testing.T) {
	leakcheck.Check(t)
	golden(t, "*", "beat", func(t *testing.T, body []byte) {
		var want struct {
			ClientBeatInterval int64
			Code               int
			LightBeatEnabled   bool
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeBeatReply(body)
		if err != nil || got != BeatReply(want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		if strings.Contains(t.Name(), "/nacos-2.3.2/") && string(AppendBeatReply(nil, got)) != string(body) {
			t.Errorf("encoded: %s, want %s", AppendBeatReply(nil, got), body)
		}
	})
}

func TestDecodeCapturedBeats(t *testing.T) {
	leakcheck.Check(t)
	golden(t, "nacos-2.3.2", "beatparam", func(t *testing.T, body []byte) {
		var ref struct {
			ServiceName, IP, Cluster string
			Port                     int
			Weight                   float64
			Metadata                 map[string]string
			Scheduled, Stopped       bool
			Period                   int64
		}
		if err := json.Unmarshal(body, &ref); err != nil {
			t.Fatal(err)
		}
		want := &Beat{
			IP: ref.IP, Port: ref.Port, Weight: ref.Weight, Service: ref.ServiceName, Cluster: ref.Cluster,
			Metadata: NewMetadata(ref.Metadata), Scheduled: ref.Scheduled, Stopped: ref.Stopped, Period: ref.Period, Ephemeral: true,
		}
		if got, err := DecodeBeat(body); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestDecodeCapturedServiceLists(t *testing.T) {
	leakcheck.Check(t)
	golden(t, "*", "services", func(t *testing.T, body []byte) {
		var want struct {
			Count int
			Doms  []string
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeServiceList(body)
		if err != nil || got.Count != want.Count || len(got.Names) != len(want.Doms) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		for i := range want.Doms {
			if got.Names[i] != want.Doms[i] {
				t.Errorf("name %d: got %q, want %q", i, got.Names[i], want.Doms[i])
			}
		}
		if encoded := AppendServiceList(nil, got); string(encoded) != string(body) {
			t.Errorf("encoded: %s, want %s", encoded, body)
		}
	})
}

func TestDecodeCapturedMetrics(t *testing.T) {
	leakcheck.Check(t)
	golden(t, "*", "metrics", func(t *testing.T, body []byte) {
		if status, err := DecodeServerStatus(body); err != nil || status != "UP" {
			t.Fatalf("got %q, %v", status, err)
		}
	})
}

// Replies cut off anywhere are recognized as such, at the place where they end.
func TestP13_EveryPrefixIsTruncated(t *testing.T) {
	leakcheck.Check(t)
	decoders := map[string]func([]byte) error{
		"list":      func(b []byte) error { _, _, err := DecodeServiceInfo(b); return err },
		"beat":      func(b []byte) error { _, err := DecodeBeatReply(b); return err },
		"beatparam": func(b []byte) error { _, err := DecodeBeat(b); return err },
		"services":  func(b []byte) error { _, err := DecodeServiceList(b); return err },
		"metrics":   func(b []byte) error { _, err := DecodeServerStatus(b); return err },
	}
	for _, name := range []string{
		"nacos-2.3.2/032-list-basic.list", "rnacos-0.8.8/037-list-group.list", "nacos-2.3.2/062-beat-light.beat",
		"nacos-2.3.2/059-beat-full.beatparam", "rnacos-0.8.8/106-svc-list.services", "nacos-2.3.2/123-op-metrics-full.metrics",
	} {
		body := read(t, name)
		decode := decoders[strings.TrimPrefix(filepath.Ext(name), ".")]
		if kindOf(decode(nil)) != KindEmpty {
			t.Errorf("%s: nothing at all is not %s", name, KindEmpty)
		}
		for n := 1; n < len(body); n++ {
			e, ok := decode(body[:n]).(*DecodeError)
			if !ok || e.Kind != KindTruncated || e.Offset != n {
				t.Fatalf("%s: %d bytes: got %v, want %s at byte %d", name, n, e, KindTruncated, n)
			}
		}
		if err := decode(append(body, " \r\n"...)); err != nil {
			t.Errorf("%s: white space behind it: %v", name, err)
		}
	}
}
