package rpc

import (
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// errClosed means that the editor no longer reads.
var errClosed = errors.New("connection is closed")

// errUnread means that the editor sends requests and does not read the answers.
var errUnread = errors.New("the editor does not read its answers")

// writer writes frames on one goroutine. A sender waits until its frame is
// queued, so an editor that does not read slows the sessions down, through
// their terminals, and does not fill memory. The goroutine that reads has a
// queue of its own, and waits at most readerTimeout for room there; see
// docs/design/flow-control.md.
type writer struct {
	frames     chan queued
	fromReader chan *[]byte  // frames of the reading goroutine
	missed     atomic.Int64  // log lines that did not fit
	written    atomic.Int64  // frames that the editor has taken
	started    atomic.Int64  // frames whose write has begun; one more than written during a write
	stop       chan struct{} // closed by close: write the queued frames and end
	broken     chan struct{} // closed when a write has failed or all are done
	abandoned  chan struct{} // closed by abandonStalled: no sender waits for the editor any more
	ended      sync.Once
}

// queueLength is how many frames may wait, which bounds memory: a frame has at
// most 64 KiB of output. A longer queue would delay a keystroke's echo while
// another session floods.
const queueLength = 16

// queued is a frame that waits. room, if it is not nil, gets back the place that
// the frame has of a session's.
type queued struct {
	frame *[]byte
	room  room
}

// room has the places of one session's output in the queue. While all are taken, the
// session waits, so that others find the queue nearly empty.
type room chan struct{}

// roomEach is how many frames of one session's output wait at most: one is written
// while the next one is made.
const roomEach = 2

func newRoom() room {
	r := make(room, roomEach)
	for range roomEach {
		r <- struct{}{}
	}
	return r
}

const (
	// readerQueueLength is how many frames of the reading goroutine may wait.
	// They are short: refusals and log lines.
	readerQueueLength = 1024
	// readerTimeout is how long the reading goroutine waits for room in its
	// queue, which an editor that reads makes all the time.
	readerTimeout = 500 * time.Millisecond
	// maxPooled bounds the buffers that are reused, in bytes. A chunk of output
	// fits.
	maxPooled = 128 << 10
)

func newWriter(out io.Writer) *writer {
	w := &writer{
		frames: make(chan queued, queueLength), fromReader: make(chan *[]byte, readerQueueLength),
		stop: make(chan struct{}), broken: make(chan struct{}), abandoned: make(chan struct{}),
	}
	go w.run(out)
	return w
}

func (w *writer) run(out io.Writer) {
	defer close(w.broken)
	for {
		select {
		case next := <-w.frames:
			if !w.write(out, next) {
				return
			}
		case frame := <-w.fromReader:
			if !w.write(out, queued{frame: frame}) {
				return
			}
		case <-w.stop:
			w.drain(out)
			return
		}
	}
}

// drain writes what is queued, and waits for no more.
func (w *writer) drain(out io.Writer) {
	for {
		select {
		case next := <-w.frames:
			if !w.write(out, next) {
				return
			}
		case frame := <-w.fromReader:
			if !w.write(out, queued{frame: frame}) {
				return
			}
		default:
			return
		}
	}
}

func (w *writer) write(out io.Writer, next queued) bool {
	w.started.Add(1)
	_, err := out.Write(*next.frame)
	w.written.Add(1)
	if next.room != nil {
		next.room <- struct{}{} // there is a place for each frame that has taken one
	}
	if cap(*next.frame) <= maxPooled {
		framePool.Put(next.frame)
	}
	return err == nil
}

// close writes the queued frames, and waits at most for the given time: an
// editor may have died without closing its pipe.
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
func (w *writer) send(body []byte) error { return w.queue(queued{frame: framed(body)}) }

func framed(body []byte) *[]byte {
	frame := framePool.Get().(*[]byte)
	*frame = append(appendHeader((*frame)[:0], len(body)), body...)
	return frame
}

// answer is send for the reading goroutine. It keeps the order of frames as
// long as the editor reads. If the editor does not read, and the reader's queue
// is full for readerTimeout, the error is errUnread.
func (w *writer) answer(body []byte) error {
	frame := framed(body)
	select {
	case w.frames <- queued{frame: frame}:
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

// logLine queues the log line that make returns. make gets the number of
// earlier lines that did not fit. It never waits. Half of the queue is reserved
// for answers.
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

func (w *writer) queue(next queued) error {
	select {
	case w.frames <- next:
		return nil
	case <-w.broken:
		return errClosed
	case <-w.abandoned:
		return errClosed
	}
}

// abandonStalled frees every sender once the editor has taken no frame for the
// stalled duration, or has let frames wait for the most duration in all. It looks
// from time to time: while the machine leaves this process no time, that is one
// look. The returned function ends that watch. It must be called once at most.
func (w *writer) abandonStalled(stalled, most time.Duration) (stop func()) {
	const looks = 10 // in the stalled duration
	stopped := make(chan struct{})
	go func() {
		ticker := time.NewTicker(stalled / looks)
		defer ticker.Stop()
		last, still, waited := int64(-1), 0, 0
		for {
			select {
			case <-ticker.C:
			case <-stopped:
				return
			}
			started := w.started.Load() // before written, or one that was taken at once would seem to wait
			taken := w.written.Load()
			if started > taken && taken == last {
				still, waited = still+1, waited+1
			} else {
				still = 0
			}
			last = taken
			if still > looks || waited > int(looks*most/stalled) {
				close(w.abandoned)
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

// The frame of terminal/output is built without encoding/json, which takes
// twice the time and leaves garbage of the message's size. Only this message's
// number grows with the bytes that a program prints.
const (
	outputHead = `{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"`
	outputData = `","data":"`
	outputTail = `"}}`
	stderrTail = `","stream":"` + protocol.StreamStderr + outputTail
)

// sendOutput queues a terminal/output when the session has room. The id must be a
// UUID, because it is not escaped. tail is outputTail or stderrTail.
func (w *writer) sendOutput(sessionID string, room room, data []byte, tail string) error {
	encoded := base64.StdEncoding.EncodedLen(len(data))
	frame := framePool.Get().(*[]byte)
	b := appendHeader((*frame)[:0], len(outputHead)+len(sessionID)+len(outputData)+encoded+len(tail))
	b = append(b, outputHead...)
	b = append(b, sessionID...)
	b = append(b, outputData...)
	b = base64.StdEncoding.AppendEncode(b, data)
	*frame = append(b, tail...)
	select {
	case <-room:
		return w.queue(queued{frame, room})
	case <-w.broken:
		return errClosed
	case <-w.abandoned:
		return errClosed
	}
}
