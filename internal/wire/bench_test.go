package wire

import (
	"bytes"
	"fmt"
	"testing"

	jsoniter "github.com/json-iterator/go"
)

// thousandHosts is a list as Nacos 2.3.2 writes it. With own metadata no two hosts have the same.
func thousandHosts(own bool) []byte {
	info := ServiceInfo{Name: "DEFAULT_GROUP@@orders", Group: "DEFAULT_GROUP", CacheMillis: 10000, HasHosts: true, LastRefTime: 1796080569073, Valid: true}
	for i := range 1000 {
		ip := fmt.Sprintf("10.%d.%d.%d", i%7, i/250, i%250)
		meta := map[string]string{"zone": "z" + string(rune('a'+i%3)), "version": "1.4.2"}
		if own {
			meta["id"] = fmt.Sprintf("orders-%d", i)
		}
		info.Hosts = append(info.Hosts, Host{
			InstanceID: ip + "#8080#DEFAULT#DEFAULT_GROUP@@orders", IP: ip, Port: 8080, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
			Cluster: "DEFAULT", Service: "DEFAULT_GROUP@@orders", Metadata: NewMetadata(meta),
			BeatInterval: 5000, BeatTimeout: 15000, DeleteTimeout: 30000, IDGenerator: "simple",
		})
	}
	return AppendServiceInfo(nil, &info)
}

// Decoding 1,000 hosts, beside json-iterator into a struct with all fields: ours should take at most 0.65 of its time.
func BenchmarkDecode1000Hosts(b *testing.B) {
	for _, kind := range []struct {
		name string
		own  bool
	}{{"few-metadata", false}, {"own-metadata", true}} {
		body := thousandHosts(kind.own)
		b.Run(kind.name+"/wire", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := DecodeServiceInfo(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind.name+"/jsoniter", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var list referenceList
				if err := jsoniter.ConfigCompatibleWithStandardLibrary.Unmarshal(body, &list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// An unchanged list of 1,000 hosts.
func BenchmarkMatch1000Hosts(b *testing.B) {
	body := thousandHosts(false)
	_, fp, err := DecodeServiceInfo(body)
	if err != nil {
		b.Fatal(err)
	}
	body = bytes.Replace(body, []byte("1796080569073"), []byte("1796080579073"), 1)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, same := fp.Match(body); !same {
			b.Fatal("no match")
		}
	}
}

func BenchmarkAppend1000Hosts(b *testing.B) {
	body := thousandHosts(false)
	info, _, err := DecodeServiceInfo(body)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 0, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendServiceInfo(dst[:0], info)
	}
}

func BenchmarkDecodeBeatReply(b *testing.B) {
	body := []byte(`{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeBeatReply(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendBeat(b *testing.B) {
	beat := Beat{
		IP: "10.0.0.1", Port: 8080, Weight: 1, Service: "DEFAULT_GROUP@@orders", Cluster: "DEFAULT",
		Metadata: NewMetadata(map[string]string{"zone": "a", "version": "1.4.2"}), Period: 5000, Ephemeral: true,
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendBeat(dst[:0], &beat)
	}
}
