package harness

import (
	"bytes"
	"regexp"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Buffer gathers bytes and lets others wait for them. The zero value is ready.
type Buffer struct {
	mu      sync.Mutex // guards the fields below
	data    bytes.Buffer
	changed chan struct{} // closed at the next write; nil if nothing waits
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return b.data.Write(p)
}

// String is everything so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// Len is the number of bytes so far.
func (b *Buffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Len()
}

// Await waits until everything so far matches the pattern, and returns the
// groups of the first match.
func (b *Buffer) Await(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	end := deadline.New(Timeout)
	for {
		b.mu.Lock()
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		groups, changed := re.FindStringSubmatch(b.data.String()), b.changed
		b.mu.Unlock()
		if groups != nil {
			return groups
		}
		if end.Passed() || !end.Wait(changed) {
			t.Fatalf("waited in vain for %q in:\n%s", pattern, b.String())
		}
	}
}
