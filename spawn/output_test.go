//go:build unix

package spawn

import (
	"errors"
	"os"
	"testing"
	"time"
)

// On a busy machine the deadline of the last read may pass before the read has
// begun. The bytes that are there are read all the same.
func TestRead_FindsBytesAfterItsDeadline(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	if _, err := writer.WriteString("last"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	_ = reader.SetReadDeadline(time.Now().Add(-time.Second))
	if n, err := reader.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("control: read %d bytes, %v", n, err)
	}
	s := (&Session{pause: -time.Second}).outlet(reader)
	s.ending.Store(true)
	if n, err := s.read(buf); string(buf[:n]) != "last" || err != nil {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if n, err := s.read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without bytes: read %d, %v", n, err)
	}
}
