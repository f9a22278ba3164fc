package wire

import "strconv"

// Beat is the JSON in the parameter beat of a full heartbeat (ParamBeat).
type Beat struct {
	IP        string
	Port      int
	Weight    float64
	Service   string // group@@service
	Cluster   string
	Metadata  Metadata
	Scheduled bool
	Stopped   bool
	Period    int64 // ms between beats
	Ephemeral bool  // true if not sent
}

// AppendBeat appends b as JSON as the Java client 1.4 writes it and returns the extended slice. Ephemeral is written
// only when it is false, for servers take true for granted.
func AppendBeat(dst []byte, b *Beat) []byte {
	dst = append(dst, `{"port":`...)
	dst = strconv.AppendInt(dst, int64(b.Port), 10)
	dst = append(dst, `,"ip":`...)
	dst = appendString(dst, b.IP)
	dst = append(dst, `,"weight":`...)
	dst = appendDouble(dst, b.Weight)
	dst = append(dst, `,"serviceName":`...)
	dst = appendString(dst, b.Service)
	dst = append(dst, `,"cluster":`...)
	dst = appendString(dst, b.Cluster)
	dst = append(dst, `,"metadata":`...)
	dst = b.Metadata.AppendJSON(dst)
	dst = append(dst, `,"scheduled":`...)
	dst = strconv.AppendBool(dst, b.Scheduled)
	dst = append(dst, `,"period":`...)
	dst = strconv.AppendInt(dst, b.Period, 10)
	dst = append(dst, `,"stopped":`...)
	dst = strconv.AppendBool(dst, b.Stopped)
	if !b.Ephemeral {
		dst = append(dst, `,"ephemeral":false`...)
	}
	return append(dst, '}')
}

// DecodeBeat decodes what a server receives. As there (RsInfo) every field may be absent; it is zero then, Ephemeral
// true. Whether ip and port are any good is the server's to judge.
func DecodeBeat(text []byte) (*Beat, error) {
	s := newScanner("beat", text)
	b := &Beat{Ephemeral: true}
	s.begin()
	if s.openObject("") {
		for first := true; ; first = false {
			key, ok := s.key(first)
			if !ok {
				break
			}
			s.beatField(b, string(key))
		}
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return b, nil
}

func (s *scanner) beatField(b *Beat, key string) {
	switch key {
	case "ip":
		b.IP = s.string(key)
	case "port":
		at := s.pos
		port, _ := s.integer(key)
		if int64(int32(port)) != port {
			s.fail(KindType, key, at)
		}
		b.Port = int(port)
	case "weight":
		b.Weight, _ = s.float(key)
	case "serviceName":
		b.Service = s.string(key)
	case "cluster":
		b.Cluster = s.string(key)
	case "metadata":
		b.Metadata = s.metadata(key)
	case "scheduled":
		b.Scheduled, _ = s.boolean(key)
	case "stopped":
		b.Stopped, _ = s.boolean(key)
	case "period":
		b.Period, _ = s.integer(key)
	case "ephemeral":
		if v, ok := s.boolean(key); ok {
			b.Ephemeral = v
		}
	default:
		s.skip(1)
	}
}
