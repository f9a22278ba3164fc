package wire

import "strconv"

// Kinds of a DecodeError.
const (
	KindEmpty        = "empty"         // nothing but white space
	KindTruncated    = "truncated"     // the input ends inside of the value
	KindSyntax       = "syntax"        // not JSON
	KindType         = "type"          // JSON, but a value of another type or out of the range of its field
	KindHTML         = "html"          // an HTML or XML page
	KindTrailing     = "trailing"      // something follows the value
	KindMissingField = "missing field" // a field is absent without which the value means nothing
	KindBadHost      = "bad host"      // a host without ip, or whose port or weight cannot be one
	KindTooDeep      = "too deep"      // nested deeper than any reply of a server
	KindUnexpected   = "unexpected"    // another text than the one that means success
)

// DecodeError is returned by every decoder for input that is not what it decodes. It holds nothing of the input: replies
// to a login and error pages may quote secrets.
type DecodeError struct {
	What   string // what was decoded, for example "instance list"
	Kind   string // one of the Kind constants
	Field  string // JSON name of the field at fault, "" if it is none in particular
	Offset int    // bytes of input before the fault
}

// Error says what was decoded, the kind, the field and the offset.
func (e *DecodeError) Error() string {
	field := ""
	if e.Field != "" {
		field = " (" + e.Field + ")"
	}
	return "decode " + e.What + ": " + e.Kind + field + " at byte " + strconv.Itoa(e.Offset)
}
