package libsystem

import (
	"encoding/binary"
	"testing"
)

// answer lays out the kernel's answer: a length, an offset, the text's length,
// the text.
func answer(offset int32, length uint32, text string) []byte {
	data := binary.LittleEndian.AppendUint32(nil, uint32(12+len(text)))
	data = binary.LittleEndian.AppendUint32(data, uint32(offset))
	data = binary.LittleEndian.AppendUint32(data, length)
	return append(data, text...)
}

func TestFullPath(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer []byte
		want   string
		ok     bool
	}{
		"a path":                {answer(8, 7, "/Users\x00\x00"), "/Users", true},
		"the root":              {answer(8, 2, "/\x00"), "/", true},
		"text behind a gap":     {answer(12, 3, "\x00\x00\x00\x00/a\x00"), "/a", true},
		"no text":               {answer(8, 1, "\x00"), "", false},
		"longer than it is":     {answer(8, 70, "/Users\x00"), "", false},
		"offset beyond the end": {answer(1<<30, 7, "/Users\x00"), "", false},
		"offset before itself":  {answer(-4, 7, "/Users\x00"), "", false},
		"length that wraps":     {answer(8, 1<<32-1, "/Users\x00"), "", false},
		"not a path":            {answer(8, 6, "Users\x00"), "Users", false},
		"cut off":               {answer(8, 7, "")[:10], "", false},
	} {
		if got, ok := fullPath(test.answer); got != test.want || ok != test.ok {
			t.Errorf("%s: %q, %t; want %q, %t", name, got, ok, test.want, test.ok)
		}
	}
}
