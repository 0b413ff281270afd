//go:build unix

package usersocket

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sendTimeout bounds the wait for a peer that does not read, unless WaitToSend says
// otherwise.
const sendTimeout = 2 * time.Second

// ErrTooLong is the reason why a message is not sent.
var ErrTooLong = errors.New("the message is too long")

// errFiles means that a peer has sent more files than are taken.
var errFiles = errors.New("read message: too many files came with it")

// Conn sends and receives messages. One goroutine receives; several may send.
type Conn struct {
	net   *net.UnixConn
	lines *bufio.Scanner
	most  int

	mostFiles int
	patience  time.Duration // how long Send waits

	filesMu sync.Mutex
	files   []*os.File // came and were not taken; guarded by filesMu

	mu sync.Mutex // held while a message is sent
}

// NewConn makes a connection whose messages have fewer bytes than most. It takes
// no files.
func NewConn(c *net.UnixConn, most int) *Conn {
	conn := &Conn{net: c, most: most, patience: sendTimeout}
	conn.lines = bufio.NewScanner((*reader)(conn))
	conn.lines.Buffer(nil, most)
	return conn
}

// TakeFiles has the connection take that many files, until Files was called. Call
// it before Receive.
func (c *Conn) TakeFiles(most int) { c.mostFiles = most }

// WaitToSend has Send wait so long for a peer that does not read. Call it before
// Send.
func (c *Conn) WaitToSend(atMost time.Duration) { c.patience = atMost }

// Files returns the files that have come with messages since the last call. The
// caller closes them.
func (c *Conn) Files() []*os.File {
	c.filesMu.Lock()
	defer c.filesMu.Unlock()
	files := c.files
	c.files = nil
	return files
}

// Send sends a message, with files beside it, which nobody may close meanwhile.
// After another error than ErrTooLong the connection is closed: half a message may
// have been sent.
func (c *Conn) Send(message any, files ...*os.File) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(line) >= c.most {
		return ErrTooLong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.write(append(line, '\n'), files); err != nil {
		c.net.Close()
		return fmt.Errorf("send to the other end: %w", err)
	}
	return nil
}

func (c *Conn) write(line []byte, files []*os.File) error {
	if err := c.net.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return err
	}
	if len(files) > 0 {
		var fds []int
		for _, file := range files {
			raw, err := file.SyscallConn() // Fd would put it into blocking mode
			if err == nil {
				err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
			}
			if err != nil {
				return err
			}
		}
		n, _, err := c.net.WriteMsgUnix(line, unix.UnixRights(fds...), nil)
		if err != nil {
			return err
		}
		if line = line[n:]; len(line) == 0 {
			return nil // to write nothing fails once the other end has answered and closed
		}
	}
	_, err := c.net.Write(line)
	return err
}

// Receive waits for a message.
func (c *Conn) Receive(into any) error {
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	decoder := json.NewDecoder(bytes.NewReader(c.lines.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	if decoder.More() {
		return errors.New("read message: more than one in a line")
	}
	return nil
}

// ReceiveBefore bounds the wait of Receive; the zero time bounds nothing.
func (c *Conn) ReceiveBefore(end time.Time) error { return c.net.SetReadDeadline(end) }

// Close ends the connection, and closes the files that nobody has taken.
func (c *Conn) Close() {
	c.net.Close()
	closeAll(c.Files())
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

// reader reads what comes, and keeps the files.
type reader Conn

// Read is for a bufio.Scanner.
func (r *reader) Read(b []byte) (int, error) {
	if r.mostFiles == 0 {
		return r.net.Read(b) // the kernel drops files
	}
	control := make([]byte, unix.CmsgSpace(4*r.mostFiles))
	n, controlled, flags, _, err := r.net.ReadMsgUnix(b, control)
	if err == nil && n == 0 && len(b) > 0 {
		err = io.EOF
	}
	r.filesMu.Lock()
	defer r.filesMu.Unlock()
	messages, parseErr := unix.ParseSocketControlMessage(control[:controlled])
	for i := range messages {
		fds, rightsErr := unix.ParseUnixRights(&messages[i])
		parseErr = errors.Join(parseErr, rightsErr)
		for _, fd := range fds {
			unix.CloseOnExec(fd) // Linux has done so before anybody could fork
			r.files = append(r.files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	if err == nil {
		err = parseErr
	}
	if err == nil && (flags&unix.MSG_CTRUNC != 0 || len(r.files) > r.mostFiles) {
		err = errFiles
	}
	if err != nil {
		return 0, err // a message that came with this is none
	}
	return n, nil
}
