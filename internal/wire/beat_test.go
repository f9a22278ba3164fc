package wire

import (
	"reflect"
	"testing"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

// The beat of the Java client 1.4 (BeatInfo): names, order and numbers.
func TestAppendBeat(t *testing.T) {
	leakcheck.Check(t)
	b := Beat{IP: "1.2.3.4", Port: 8848, Weight: 1, Service: "DEFAULT_GROUP@@s", Cluster: "DEFAULT", Period: 5000, Ephemeral: true}
	const want = `{"port":8848,"ip":"1.2.3.4","weight":1.0,"serviceName":"DEFAULT_GROUP@@s","cluster":"DEFAULT","metadata":{},"scheduled":false,"period":5000,"stopped":false}`
	if got := string(AppendBeat(nil, &b)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b = Beat{IP: `"`, Weight: 2.5, Metadata: Metadata{{"k", "v"}}, Scheduled: true, Stopped: true}
	const persistent = `{"port":0,"ip":"\"","weight":2.5,"serviceName":"","cluster":"","metadata":{"k":"v"},"scheduled":true,"period":0,"stopped":true,"ephemeral":false}`
	if got := string(AppendBeat(nil, &b)); got != persistent {
		t.Errorf("got\n%s\nwant\n%s", got, persistent)
	}
}

// Beats of other clients leave out fields, quote numbers or add what old servers read (RsInfo).
func TestDecodeBeatFields(t *testing.T) {
	leakcheck.Check(t)
	for body, want := range map[string]Beat{
		`{}`: {Ephemeral: true},
		`{"ip":null,"port":null,"weight":null,"metadata":null,"ephemeral":null,"period":null}`: {Ephemeral: true},
		`{"ephemeral":false,"scheduled":true,"stopped":"true"}`:                                {Scheduled: true, Stopped: true},
		`{"ip":"a","port":"80","weight":"1","period":5000.0,"ak":"x","cpu":0.5,"rt":[]}`:       {IP: "a", Port: 80, Weight: 1, Period: 5000, Ephemeral: true},
		`{"port":-1,"weight":-2}`: {Port: -1, Weight: -2, Ephemeral: true},
		`{"metadata":{"b":1,"a":null},"serviceName":"s","cluster":"c"}`: {Metadata: Metadata{{"a", ""}, {"b", "1"}}, Service: "s", Cluster: "c", Ephemeral: true},
	} {
		if got, err := DecodeBeat([]byte(body)); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", body, got, err, want)
		}
	}
}

// Servers of different ages leave out different fields of the reply (rule B5: no code means OK).
func TestB5_BeatReplyFields(t *testing.T) {
	leakcheck.Check(t)
	for body, want := range map[string]BeatReply{
		`{"clientBeatInterval":5000}`:                                  {ClientBeatInterval: 5000},
		`{"code":20404}`:                                               {Code: CodeResourceNotFound},
		`{"lightBeatEnabled":false,"x":{}}`:                            {},
		`{"clientBeatInterval":null,"code":"10200"}`:                   {Code: CodeOK},
		`{"clientBeatInterval":9007199254740993,"code":null,"a":null}`: {ClientBeatInterval: 9007199254740993},
	} {
		if got, err := DecodeBeatReply([]byte(body)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", body, got, err, want)
		}
	}
	if got := string(AppendBeatReply(nil, BeatReply{})); got != `{"lightBeatEnabled":false}` {
		t.Errorf("an empty reply is written as %s", got)
	}
}
