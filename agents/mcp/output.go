//go:build unix

package mcp

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// usualOutput is how many bytes are kept of an output, half of them of its
	// beginning and half of its end.
	usualOutput = 64 << 10
	// mostOutput bounds what a call may ask for.
	mostOutput = 1 << 20
)

// output keeps the beginning and the end of what a command prints.
type output struct {
	half int // bytes of each; set before the first write

	mu    sync.Mutex
	first []byte
	last  []byte // the newest bytes, up to twice as many as are shown
	total int64
}

// shown is an output as it is returned.
type shown struct {
	text      string
	truncated bool // something is missing
	replaced  int  // bytes that are no UTF-8
}

// Write never fails.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, half := len(data), o.half
	o.total += int64(n)
	fits := min(half-len(o.first), n)
	o.first = append(o.first, data[:fits]...)
	o.last = append(o.last, data[fits:]...)
	if len(o.last) > 2*half {
		o.last = append(o.last[:0], o.last[len(o.last)-half:]...)
	}
	return n, nil
}

// take returns what is kept, and forgets it.
func (o *output) take() shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.join()
	o.first, o.last, o.total = nil, nil, 0
	return all
}

func (o *output) join() shown {
	last := o.last[max(0, len(o.last)-o.half):]
	missing := o.total - int64(len(o.first)+len(last))
	if missing == 0 {
		whole := slices.Concat(o.first, last)
		return shown{text: clean(whole), replaced: invalid(whole)}
	}
	// A character may be cut at either end.
	return shown{
		text:      fmt.Sprintf("%s\n[%d B left out]\n%s", clean(o.first), missing, clean(last)),
		truncated: true, replaced: invalid(o.first) + invalid(last),
	}
}

// invalid counts the bytes that are no UTF-8.
func invalid(data []byte) (count int) {
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			count++
		}
		data = data[size:]
	}
	return count
}

// clean makes text of an output. Bytes that are no UTF-8 are replaced. Control
// characters are escaped: they would act on the terminal of whoever shows the text.
func clean(data []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(data), "\ufffd"), "\r\n", "\n")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r':
			b.WriteByte('\n')
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
