package spawn

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	// maxChunk bounds one call of Sink.Output. Larger gains nothing: reads of a
	// terminal return at most 4 KiB anyway.
	maxChunk = 64 << 10
	// busyWindow is how soon after the last chunk a session counts as busy. The
	// first bytes after a pause go out at once, so a keystroke's echo never
	// waits; while output floods, chunks are gathered, which makes twenty times
	// fewer messages for the editor.
	busyWindow = 2 * time.Millisecond
	// gatherTime is how long a chunk is gathered at most, counted from the last
	// one.
	gatherTime = 4 * time.Millisecond
	// drainPause is how long the terminal must be silent, after everything in
	// the session was killed, to count as read to its end. It only matters
	// where a process that left the session holds the terminal open.
	drainPause = 200 * time.Millisecond
)

// chunks are for sessions that are busy: hundreds of idle ones need not have
// one each.
var chunks = sync.Pool{New: func() any { return new([maxChunk]byte) }}

// readOutput moves the terminal's bytes into the sink until the terminal is
// closed on the other side (EIO) and everything is read.
func (s *Session) readOutput(sink Sink) {
	buf := make([]byte, 4<<10) // what one read returns at most
	var last time.Time
	for {
		n, err := s.read(buf)
		data := buf[:n]
		var chunk *[maxChunk]byte
		if n > 0 && err == nil && time.Since(last) < busyWindow {
			chunk = chunks.Get().(*[maxChunk]byte)
			n, err = s.gather(chunk[:], copy(chunk[:], data), last.Add(gatherTime))
			data = chunk[:n]
		}
		if n > 0 {
			s.gate.pass(n)
			sink.Output(data)
			last = time.Now()
		}
		if chunk != nil {
			chunks.Put(chunk)
		}
		if err != nil {
			return
		}
	}
}

// read reads once. While the session is alive it waits as long as it takes; at
// the end, only drainPause.
//
// awaitEnd sets ending first and then a deadline. So a read that was begun
// before is cut short by that deadline, and one that is begun after sees ending
// and sets its own; whichever deadline gather takes back in between is replaced
// here.
func (s *Session) read(buf []byte) (int, error) {
	for {
		ending := s.ending.Load()
		if ending {
			_ = s.master.SetReadDeadline(time.Now().Add(drainPause))
		}
		n, err := s.master.Read(buf)
		if n > 0 || ending || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// gather fills buf up from n bytes until it is full or the deadline passes.
func (s *Session) gather(buf []byte, n int, deadline time.Time) (int, error) {
	_ = s.master.SetReadDeadline(deadline)
	defer func() { _ = s.master.SetReadDeadline(time.Time{}) }()
	for n < len(buf) {
		more, err := s.master.Read(buf[n:])
		n += more
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
