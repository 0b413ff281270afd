package rpc

import (
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// errClosed means that the editor no longer reads.
var errClosed = errors.New("connection is closed")

// errUnread means that the editor wants answers and does not read them.
var errUnread = errors.New("the editor does not read its answers")

// writer is the one goroutine that writes frames. Whoever sends waits until the
// frame is taken, so an editor that does not read slows the sessions down, by
// way of their terminals, instead of filling memory.
//
// The one goroutine that reads must not wait so: it would not see that the
// editor ends. What it has to say itself goes to a place of its own.
type writer struct {
	frames     chan *[]byte
	fromReader chan *[]byte  // what the reading goroutine has to say
	missed     atomic.Int64  // log lines that found no room
	written    atomic.Int64  // frames that the editor has taken
	started    atomic.Int64  // frames that were begun: one more than taken while the editor is waited for
	stop       chan struct{} // closed by close: write what is queued and end
	broken     chan struct{} // closed when nothing can be written any more
	abandoned  chan struct{} // closed by abandonStalled: nobody waits for the editor any more
	ended      sync.Once
}

// queueLength is how many frames may wait. With 64 KiB each at most, it is a
// bound on memory; more of them would only add to the distance between a
// keystroke's echo and the screen while another session floods.
const queueLength = 16

const (
	// readerQueueLength is how many frames of the reading goroutine may wait. They are
	// short: refusals and log lines.
	readerQueueLength = 1024
	// readerTimeout is how long the reading goroutine waits for room there, which
	// an editor that reads makes all the time.
	readerTimeout = 500 * time.Millisecond
	// maxPooled bounds the frames that are kept for later ones: a chunk of
	// output, which most are, and some more.
	maxPooled = 128 << 10
)

func newWriter(out io.Writer) *writer {
	w := &writer{
		frames: make(chan *[]byte, queueLength), fromReader: make(chan *[]byte, readerQueueLength),
		stop: make(chan struct{}), broken: make(chan struct{}), abandoned: make(chan struct{}),
	}
	go w.run(out)
	return w
}

func (w *writer) run(out io.Writer) {
	defer close(w.broken)
	for {
		select {
		case frame := <-w.frames:
			if !w.write(out, frame) {
				return
			}
		case frame := <-w.fromReader:
			if !w.write(out, frame) {
				return
			}
		case <-w.stop:
			for {
				select {
				case frame := <-w.frames:
					if !w.write(out, frame) {
						return
					}
				case frame := <-w.fromReader:
					if !w.write(out, frame) {
						return
					}
				default:
					return
				}
			}
		}
	}
}

func (w *writer) write(out io.Writer, frame *[]byte) bool {
	w.started.Add(1)
	_, err := out.Write(*frame)
	w.written.Add(1)
	if cap(*frame) <= maxPooled {
		framePool.Put(frame)
	}
	return err == nil
}

// close writes what is queued, for at most the given time: an editor that has
// died without closing its pipe must not hold us up.
func (w *writer) close(timeout time.Duration) {
	w.ended.Do(func() { close(w.stop) })
	select {
	case <-w.broken:
	case <-w.abandoned:
	case <-time.After(timeout):
	}
}

var framePool = sync.Pool{New: func() any { return new([]byte) }}

// send frames a body and queues it.
func (w *writer) send(body []byte) error { return w.queue(framed(body)) }

func framed(body []byte) *[]byte {
	frame := framePool.Get().(*[]byte)
	*frame = append(appendHeader((*frame)[:0], len(body)), body...)
	return frame
}

// answer is send for the reading goroutine. It is in order with what was sent
// before as long as the editor reads. Where it does not, and wants more than
// readerQueueLength such answers, the error is errUnread.
func (w *writer) answer(body []byte) error {
	frame := framed(body)
	select {
	case w.frames <- frame:
		return nil
	default:
	}
	select {
	case w.fromReader <- frame:
		return nil
	default:
	}
	timer := time.NewTimer(readerTimeout)
	defer timer.Stop()
	select {
	case w.fromReader <- frame:
		return nil
	case <-timer.C:
		return errUnread
	case <-w.broken:
		return errClosed
	case <-w.abandoned:
		return errClosed
	}
}

// logLine queues a log line, which make is told how many lines before it have
// found no room. It never waits. Half of the room is the answers'.
func (w *writer) logLine(make func(missed int) []byte) {
	missed := w.missed.Swap(0)
	if len(w.fromReader) < readerQueueLength/2 {
		select {
		case w.fromReader <- framed(make(int(missed))):
			return
		default:
		}
	}
	w.missed.Add(missed + 1)
}

func (w *writer) queue(frame *[]byte) error {
	select {
	case w.frames <- frame:
		return nil
	case <-w.broken:
		return errClosed
	case <-w.abandoned:
		return errClosed
	}
}

// abandonStalled frees everybody who waits for the editor, as soon as it has taken no
// frame for the stalled time, or at the latest after the most time.
// It returns what ends the watch, and must be called once at most.
func (w *writer) abandonStalled(stalled, most time.Duration) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		ticker := time.NewTicker(stalled / 10)
		defer ticker.Stop()
		last, since, end := int64(-1), time.Now(), time.Now().Add(most)
		for {
			if taken := w.written.Load(); taken != last || w.started.Load() == taken {
				last, since = taken, time.Now()
			}
			if time.Since(since) >= stalled || !time.Now().Before(end) {
				close(w.abandoned)
				return
			}
			select {
			case <-ticker.C:
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped) }
}

func appendHeader(frame []byte, length int) []byte {
	frame = append(frame, "Content-Length: "...)
	frame = strconv.AppendInt(frame, int64(length), 10)
	return append(frame, "\r\n\r\n"...)
}

// The frame of terminal/output is put together by hand. It is the one message
// whose number grows with the bytes a program prints; encoding/json takes twice
// the time and leaves garbage of its size.
const (
	outputHead = `{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"`
	outputData = `","data":"`
	outputTail = `"}}`
)

// sendOutput queues a terminal/output. The id must need no escaping in JSON; a
// UUID does not.
func (w *writer) sendOutput(sessionID string, data []byte) error {
	encoded := base64.StdEncoding.EncodedLen(len(data))
	frame := framePool.Get().(*[]byte)
	b := appendHeader((*frame)[:0], len(outputHead)+len(sessionID)+len(outputData)+encoded+len(outputTail))
	b = append(b, outputHead...)
	b = append(b, sessionID...)
	b = append(b, outputData...)
	b = base64.StdEncoding.AppendEncode(b, data)
	*frame = append(b, outputTail...)
	return w.queue(frame)
}
