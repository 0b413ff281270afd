package spawn

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxChunk bounds the bytes of one call of Sink.Output.
	maxChunk = 64 << 10
	// busyWindow is how soon after the last chunk a session counts as busy. The
	// first bytes after a pause are sent at once, so that a keystroke's echo
	// never waits. A busy session's output is gathered into chunks, which makes
	// twenty times fewer messages.
	busyWindow = 2 * time.Millisecond
	// gatherTime is how long a chunk is gathered at most, counted from the
	// previous chunk.
	gatherTime = 4 * time.Millisecond
	// drainPause is how long the terminal must be silent to count as read to its
	// end, once every process of the session was killed. It only matters if a
	// process that left the session holds the terminal open.
	drainPause = 200 * time.Millisecond
)

// chunks are buffers for busy sessions, so that hundreds of idle ones need
// none.
var chunks = sync.Pool{New: func() any { return new([maxChunk]byte) }}

// outlet is a terminal or a pipe that a session prints into.
type outlet struct {
	*Session
	file *os.File
	sent int64 // bytes, counted if there is a cap
}

func (s *Session) outlet(file *os.File) *outlet { return &outlet{Session: s, file: file} }

// move moves the bytes to a function of the sink, and to one that looks for
// refusals, until no process has the terminal open any more (EIO) and everything is
// read.
func (s *outlet) move(send, scan func([]byte)) {
	buf := make([]byte, 4<<10) // one read of a terminal returns no more
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
			if within := s.within(data); len(within) > 0 {
				s.gate.pass(len(within))
				send(within)
			}
			last = time.Now()
			scan(data)
		}
		if chunk != nil {
			chunks.Put(chunk)
		}
		if err != nil {
			return
		}
	}
}

// within returns the first bytes that the cap lets through, and counts the others.
func (s *outlet) within(data []byte) []byte {
	if s.most == 0 {
		return data
	}
	fits := min(int64(len(data)), s.most-s.sent)
	s.sent += fits
	s.dropped.Add(int64(len(data)) - fits)
	return data[:fits]
}

// read reads once. While the session is alive it waits for as long as it takes;
// at the end it waits only for drainPause.
//
// awaitEnd sets ending and then a deadline. A read that began earlier is cut
// short by that deadline. One that begins later sees ending and sets its own
// deadline, also if gather has removed the first one in between.
func (s *outlet) read(buf []byte) (int, error) {
	for {
		ending := s.ending.Load()
		if until := s.drainUntil.Load(); ending && until != nil && time.Now().After(*until) {
			return 0, os.ErrDeadlineExceeded
		}
		if ending {
			_ = s.file.SetReadDeadline(time.Now().Add(s.pause))
		}
		n, err := s.file.Read(buf)
		if n == 0 && ending && errors.Is(err, os.ErrDeadlineExceeded) {
			n = s.readNow(buf)
		}
		if n > 0 {
			return n, nil
		}
		if ending || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// readNow reads what is there. On a busy machine a deadline may pass before a
// read has begun, and that fails although there are bytes.
func (s *outlet) readNow(buf []byte) (n int) {
	_ = control(s.file, func(fd int) (err error) {
		n, err = unix.Read(fd, buf)
		return err
	})
	return max(n, 0)
}

// gather reads into buf after its first n bytes until it is full or the
// deadline passes. It returns the length of all bytes in buf.
func (s *outlet) gather(buf []byte, n int, deadline time.Time) (int, error) {
	_ = s.file.SetReadDeadline(deadline)
	defer func() { _ = s.file.SetReadDeadline(time.Time{}) }()
	for n < len(buf) {
		more, err := s.file.Read(buf[n:])
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
