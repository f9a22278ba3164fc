package wire

import "bytes"

// DecodeServerStatus decodes the reply to PathMetrics and returns its status: UP, DOWN, STARTING, PAUSED, WRITE_ONLY,
// READ_ONLY or what else a server says.
func DecodeServerStatus(body []byte) (string, error) {
	s := newScanner("server status", body)
	status := ""
	s.begin()
	at := s.pos
	if s.openObject("") {
		for first := true; ; first = false {
			key, ok := s.key(first)
			if !ok {
				break
			}
			if string(key) == "status" {
				status = s.string("status")
			} else {
				s.skip(1)
			}
		}
	}
	if status == "" {
		s.fail(KindMissingField, "status", at)
	}
	if err := s.end(); err != nil {
		return "", err
	}
	return status, nil
}

// DecodeOK returns nil if body is the text ok, by which servers acknowledge register, update and deregister. White space
// around it does not count.
func DecodeOK(body []byte) error {
	text := bytes.TrimSpace(body)
	kind := KindUnexpected
	switch {
	case string(text) == "ok":
		return nil
	case len(text) == 0:
		kind = KindEmpty
	case text[0] == '<':
		kind = KindHTML
	}
	return &DecodeError{What: "acknowledgement", Kind: kind, Offset: bytes.Index(body, text)}
}
