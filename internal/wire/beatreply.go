package wire

import "strconv"

// BeatReply is the reply to a heartbeat.
type BeatReply struct {
	ClientBeatInterval int64 // ms until the next beat; 0 if not sent
	Code               int   // CodeOK, CodeResourceNotFound; 0 if not sent, by servers before 1.2: it means OK
	LightBeatEnabled   bool  // the next beat may go without ParamBeat
}

// AppendBeatReply appends r as JSON as Nacos 2.3.2 writes it and returns the extended slice. An interval or a code of 0
// is left out.
func AppendBeatReply(dst []byte, r BeatReply) []byte {
	dst = append(dst, '{')
	if r.ClientBeatInterval != 0 {
		dst = append(dst, `"clientBeatInterval":`...)
		dst = append(strconv.AppendInt(dst, r.ClientBeatInterval, 10), ',')
	}
	if r.Code != 0 {
		dst = append(dst, `"code":`...)
		dst = append(strconv.AppendInt(dst, int64(r.Code), 10), ',')
	}
	dst = append(dst, `"lightBeatEnabled":`...)
	return append(strconv.AppendBool(dst, r.LightBeatEnabled), '}')
}

// DecodeBeatReply decodes the reply to a heartbeat. Servers of different ages leave out different fields; one without
// any of them is another JSON and an error.
func DecodeBeatReply(body []byte) (BeatReply, error) {
	s := newScanner("beat reply", body)
	var r BeatReply
	known := false
	s.begin()
	at := s.pos
	if s.openObject("") {
		for first := true; ; first = false {
			key, ok := s.key(first)
			if !ok {
				break
			}
			known = s.beatReplyField(&r, string(key)) || known
		}
	}
	if !known {
		s.fail(KindMissingField, "code", at)
	}
	if err := s.end(); err != nil {
		return BeatReply{}, err
	}
	return r, nil
}

// beatReplyField tells whether there was a value of a known field.
func (s *scanner) beatReplyField(r *BeatReply, key string) (ok bool) {
	switch key {
	case "clientBeatInterval":
		r.ClientBeatInterval, ok = s.integer(key)
	case "code":
		var code int64
		at := s.pos
		if code, ok = s.integer(key); int64(int32(code)) != code {
			s.fail(KindType, key, at)
		}
		r.Code = int(code)
	case "lightBeatEnabled":
		r.LightBeatEnabled, ok = s.boolean(key)
	default:
		s.skip(1)
	}
	return ok
}
