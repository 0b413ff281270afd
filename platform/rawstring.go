package platform

import "encoding/json"

// RawString is a string whose JSON form keeps every byte, as base64. Paths and
// arguments are bytes to the kernel and need not be the UTF-8 that a JSON
// string holds: a directory with a Latin-1 name must arrive unchanged.
type RawString string

// MarshalJSON encodes the bytes as base64.
func (s RawString) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(s)) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *RawString) UnmarshalJSON(data []byte) error {
	var raw []byte
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*s = RawString(raw)
	return nil
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
