package handshake

import "encoding/base64"

// RawString is a string whose JSON form keeps every byte, as base64. Paths and
// arguments are bytes to the kernel and need not be the UTF-8 that a JSON
// string holds: a directory with a Latin-1 name must arrive unchanged.
type RawString string

// MarshalText encodes the bytes as base64. encoding/json would read the output
// of a MarshalJSON once more.
func (s RawString) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(s)), nil
}

// UnmarshalText reads what MarshalText writes.
func (s *RawString) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	*s = RawString(raw)
	return err
}

// RawStrings converts a list of strings; the result is not nil.
func RawStrings(list []string) []RawString { return convert[RawString](list) }

// PlainStrings is the inverse of RawStrings; the result is not nil.
func PlainStrings(list []RawString) []string { return convert[string](list) }

func convert[To, From ~string](list []From) []To {
	out := make([]To, len(list))
	for i, s := range list {
		out[i] = To(s)
	}
	return out
}
