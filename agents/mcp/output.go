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

// take returns what is kept, and forgets it. While more may come, it keeps the
// beginning of a character whose end has not come.
func (o *output) take(more bool) shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	var begun []byte
	if newest := slices.Concat(o.first, o.last); more {
		begun = newest[len(newest)-unfinished(newest):]
	}
	all := o.join(len(begun))
	o.first, o.last, o.total = begun, nil, int64(len(begun))
	return all
}

// join is all that is kept but for some bytes at the end.
func (o *output) join(without int) shown {
	whole := slices.Concat(o.first, o.last)
	whole, total := whole[:len(whole)-without], o.total-int64(without)
	if int64(len(whole)) == total && len(whole) <= 2*o.half {
		return shown{text: clean(whole), replaced: invalid(whole)}
	}
	// A character that the cut divides is left out.
	first, last := whole[:len(o.first)], whole[len(o.first):]
	last = last[max(0, len(last)-o.half):]
	first = first[:len(first)-unfinished(first)]
	for n := 0; n < utf8.UTFMax-1 && len(last) > 0 && !utf8.RuneStart(last[0]); n++ {
		last = last[1:]
	}
	return shown{
		text: fmt.Sprintf("%s\n[%d B left out]\n%s", clean(first), total-int64(len(first)+len(last)),
			clean(last)),
		truncated: true, replaced: invalid(first) + invalid(last),
	}
}

// unfinished counts the bytes at the end that begin a character.
func unfinished(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if begun := data[len(data)-n:]; utf8.RuneStart(begun[0]) {
			if utf8.FullRune(begun) {
				return 0
			}
			return n
		}
	}
	return 0
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
