package wire

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// appendString appends s as a JSON string as Jackson writes it: quotes, backslashes and control characters escaped (hex
// digits in upper case), all else as it is, also HTML and characters beyond ASCII. Bytes that are not UTF-8 become
// U+FFFD, for the result must be JSON.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[done:i]...), "\uFFFD"...)
				done = i + 1
			}
			i += size
			continue
		}
		dst = append(append(dst, s[done:i]...), '\\')
		switch c {
		case '"', '\\':
			dst = append(dst, c)
		case '\b':
			dst = append(dst, 'b')
		case '\t':
			dst = append(dst, 't')
		case '\n':
			dst = append(dst, 'n')
		case '\f':
			dst = append(dst, 'f')
		case '\r':
			dst = append(dst, 'r')
		default:
			dst = append(dst, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

// appendDouble appends f as Java's Double.toString prints it (1.0, 2.5, 1.0E-4, 1.0E7): plain from 1e-3 up to 1e7, with
// an exponent outside, always with a digit after the point. Jackson puts quotes around what is not finite.
func appendDouble(dst []byte, f float64) []byte {
	var digits [32]byte
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	case abs == 0, abs >= 1e-3 && abs < 1e7:
		return appendPoint(dst, strconv.AppendFloat(digits[:0], f, 'f', -1, 64))
	}
	mantissa, exponent, _ := bytes.Cut(strconv.AppendFloat(digits[:0], f, 'e', -1, 64), []byte{'e'})
	dst = append(appendPoint(dst, mantissa), 'E')
	if exponent[0] == '-' {
		dst = append(dst, '-')
	}
	// Go writes a sign and at least two digits.
	return append(dst, bytes.TrimLeft(exponent, "+-0")...)
}

// appendPoint appends a decimal number, with ".0" if it has no point.
func appendPoint(dst, number []byte) []byte {
	dst = append(dst, number...)
	if bytes.IndexByte(number, '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}
