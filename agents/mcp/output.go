//go:build unix

package mcp

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// half is how many bytes are kept of the beginning of an output, and of its end.
const half = 32 << 10

// output keeps the beginning and the end of what a command prints.
type output struct {
	mu    sync.Mutex
	first []byte
	last  []byte // the newest bytes, up to twice as many as are shown
	total int64
}

// Write never fails.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(data)
	o.total += int64(n)
	fits := min(half-len(o.first), n)
	o.first = append(o.first, data[:fits]...)
	o.last = append(o.last, data[fits:]...)
	if len(o.last) > 2*half {
		o.last = append(o.last[:0], o.last[len(o.last)-half:]...)
	}
	return n, nil
}

// text is what is kept, and whether something is missing. Bytes that are no
// UTF-8 are replaced.
func (o *output) text() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.join()
}

// take is text, and forgets it.
func (o *output) take() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, truncated = o.join()
	o.first, o.last, o.total = nil, nil, 0
	return text, truncated
}

func (o *output) join() (string, bool) {
	last := o.last[max(0, len(o.last)-half):]
	missing := o.total - int64(len(o.first)+len(last))
	if missing == 0 {
		return clean(append(append([]byte{}, o.first...), last...)), false
	}
	return fmt.Sprintf("%s\n[%d B left out]\n%s", clean(o.first), missing, clean(last)), true
}

// clean makes text of an output. Control characters are escaped: they would act
// on the terminal of whoever shows the text.
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
