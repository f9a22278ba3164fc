package wire

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxMessage = 512     // bytes of a message
	maxPage    = 1 << 16 // bytes of an error page that are looked at for it
)

// ErrorMessage returns what a person should read of the body of an error reply, on one line: the field message of a
// JSON page, or its field error where that is missing or empty; the text of an HTML page; all of another text, such as
// "caused: ...;". HTML escapes, which Nacos puts into all of them, are undone, control characters and line ends become
// spaces, and what is over 512 bytes is cut at a character. It is "" for an empty body. It is meant for people: programs
// go by the status.
func ErrorMessage(body []byte) string {
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0:
		return ""
	case text[0] == '{':
		if message := pageMessage(text); message != "" {
			return readable(message)
		}
	case text[0] == '<':
		return readable(withoutTags(string(text[:min(len(text), maxPage)])))
	}
	return readable(string(text[:min(len(text), maxPage)]))
}

// ErrorCode returns the code of Nacos that the body of an error reply has beside the HTTP status: the number in the
// field code of a JSON page, or after "errCode: " in a text. It is 0 where there is none.
func ErrorCode(body []byte) int {
	text := bytes.TrimSpace(body)
	if len(text) > 0 && text[0] == '{' {
		code, _, _ := readPage(text)
		return code
	}
	_, rest, _ := bytes.Cut(text[:min(len(text), maxPage)], []byte("errCode: "))
	end := 0
	for end < len(rest) && end < 9 && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	code, _ := strconv.Atoi(string(rest[:end]))
	return code
}

// pageMessage returns the message of a JSON error page as far as it can be read.
func pageMessage(page []byte) string {
	_, message, reason := readPage(page)
	if len(message) == 0 {
		message = reason
	}
	return string(message[:min(len(message), maxPage)])
}

// readPage reads the fields of a JSON error page as far as it can be read.
func readPage(page []byte) (code int, message, reason []byte) {
	s := newScanner("error page", page)
	if !s.openObject("") {
		return 0, nil, nil
	}
	for first := true; ; first = false {
		key, ok := s.key(first)
		if !ok {
			return code, message, reason
		}
		switch string(key) {
		case "code":
			n, _ := s.integer("code")
			code = int(n)
		case "message":
			message = s.stringOrNothing()
		case "error":
			reason = s.stringOrNothing()
		default:
			s.skip(1)
		}
	}
}

// stringOrNothing reads any value and returns it if it is a string.
func (s *scanner) stringOrNothing() []byte {
	if s.peek() == '"' {
		return s.quoted()
	}
	s.skip(1)
	return nil
}

// withoutTags returns the text of an HTML page: tags become spaces, the content of style and script elements goes.
func withoutTags(page string) string {
	var text strings.Builder
	for {
		before, tag, ok := strings.Cut(page, "<")
		text.WriteString(before)
		text.WriteByte(' ')
		if !ok {
			return text.String()
		}
		var name string
		name, page, _ = strings.Cut(tag, ">")
		for _, element := range []string{"style", "script"} {
			if len(name) >= len(element) && strings.EqualFold(name[:len(element)], element) {
				_, page, _ = cutFold(page, "</"+element)
				_, page, _ = strings.Cut(page, ">")
			}
		}
	}
}

// cutFold is strings.Cut for a separator of ASCII in lower case that stands in any case in s.
func cutFold(s, sep string) (before, after string, found bool) {
	for i := 0; i+len(sep) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(sep)], sep) {
			return s[:i], s[i+len(sep):], true
		}
	}
	return s, "", false
}

// readable makes text a line for people.
func readable(text string) string {
	text = strings.ToValidUTF8(html.UnescapeString(text), "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimRight(text[:cut], " ")
}
