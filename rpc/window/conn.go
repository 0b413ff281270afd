//go:build unix

package window

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxMessage bounds the bytes of a message.
	maxMessage = 256 << 10
	// sendTimeout bounds the wait for a peer that does not read.
	sendTimeout = 2 * time.Second
)

// errTooLong is the reason why a message is not sent.
var errTooLong = errors.New("the message is too long")

// conn sends and receives messages. One goroutine receives; several may send.
type conn struct {
	net   *net.UnixConn
	lines *bufio.Scanner

	mu sync.Mutex // held while a message is sent
}

func newConn(c *net.UnixConn) *conn {
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxMessage)
	return &conn{net: c, lines: lines}
}

// send sends a message. After another error than errTooLong the connection is
// closed: half a message may have been sent.
func (c *conn) send(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(line) >= maxMessage {
		return errTooLong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.net.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := c.net.Write(append(line, '\n')); err != nil {
		c.net.Close()
		return fmt.Errorf("send to the other end: %w", err)
	}
	return nil
}

// receive waits for a message.
func (c *conn) receive(into any) error {
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
