package wire

import "strconv"

// ServiceList is a page of service names, the reply to PathServiceList.
type ServiceList struct {
	Count int      // services in all pages
	Names []string // of this page; bare names, but with group when all groups were asked for
}

// AppendServiceList appends l as JSON as Nacos 2.3.2 writes it and returns the extended slice.
func AppendServiceList(dst []byte, l ServiceList) []byte {
	dst = append(dst, `{"count":`...)
	dst = strconv.AppendInt(dst, int64(l.Count), 10)
	dst = append(dst, `,"doms":[`...)
	for i, name := range l.Names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, name)
	}
	return append(dst, "]}"...)
}

// DecodeServiceList decodes a page of service names; both fields must be there.
func DecodeServiceList(body []byte) (ServiceList, error) {
	s := newScanner("service list", body)
	var l ServiceList
	var hasCount, hasNames bool
	s.begin()
	at := s.pos
	if s.openObject("") {
		for first := true; ; first = false {
			key, ok := s.key(first)
			if !ok {
				break
			}
			switch string(key) {
			case "count":
				l.Count, hasCount = s.count("count")
			case "doms":
				l.Names, hasNames = s.names("doms")
			default:
				s.skip(1)
			}
		}
	}
	if !hasCount {
		s.fail(KindMissingField, "count", at)
	}
	if !hasNames {
		s.fail(KindMissingField, "doms", at)
	}
	if err := s.end(); err != nil {
		return ServiceList{}, err
	}
	return l, nil
}

// count reads how many of something there are: a Java int that is not negative.
func (s *scanner) count(field string) (int, bool) {
	at := s.pos
	v, ok := s.integer(field)
	if v < 0 || int64(int32(v)) != v {
		s.fail(KindType, field, at)
	}
	return int(v), ok
}

// names reads an array of strings, without those that are null.
func (s *scanner) names(field string) (names []string, ok bool) {
	if !s.openArray(field) {
		return nil, false
	}
	for first := true; s.more(first, ']'); first = false {
		if text, ok := s.text(field); ok {
			names = append(names, string(text))
		}
	}
	return names, s.err == nil
}
