// Package wire is the v1 naming protocol of Nacos in bytes, in both directions: paths and parameter names, the JSON of
// instance lists, beats and service lists, and what replies of other shapes say. The client uses one half of it and
// mininacos the other, so that both agree on one reading of the captures in testdata.
//
// # Decoding
//
// It is the only user of json-iterator. A small scanner walks objects and arrays and finds the values, json-iterator's
// Iterator decodes numbers and escaped strings. The Iterator does not walk by itself for four reasons: it does not tell
// where it stands, which the fingerprint, the offsets of errors and the sharing of equal metadata need; it allocates
// every key; ReadObject stops silently at an empty key; and its Skip takes quadratic time for a long number with a large
// exponent.
//
// Every decoder answers malformed input with a [*DecodeError], never with a panic, and in time and memory proportional
// to the input. No string of a decoded value aliases the input.
//
// Numbers and booleans are taken from JSON strings too ("8080", "true") and the text of numbers and booleans for
// strings, as Jackson does on the server; null counts as absent; of duplicate keys the last one wins; unknown fields are
// skipped, whatever they hold.
//
// # Encoding
//
// The Append functions write what Nacos 2.3.2 writes, byte for byte: order of fields, escapes, numbers as Java prints
// them. Only the order of keys in metadata differs: a server keeps that of the registration, this package sorts.
package wire
