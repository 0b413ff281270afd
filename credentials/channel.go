package credentials

import (
	"encoding/binary"
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

// Message is what sidecar and program say to each other: first an Order and what is
// Given for it, then connections, their ends and events. One field is set.
type Message struct {
	Order *Order `json:"order,omitempty"`
	Given *Given `json:"given,omitempty"`
	// Connection comes with two descriptors: the client's connection and the host's.
	Connection *Connection `json:"connection,omitempty"`
	// Ended is the number of a connection.
	Ended uint64 `json:"ended,omitempty"`
	Event *Event `json:"event,omitempty"`
}

// Connection is one of a session to a host of a credential.
type Connection struct {
	Number uint64 `json:"number"`
	Name   string `json:"name"`
	Port   uint16 `json:"port"`
}

const (
	// maxMessage bounds a message in bytes: a thousand secrets of the largest size.
	maxMessage = 32 << 20
	// sendTime is how long the other side may be busy.
	sendTime = 10 * time.Second
	// perConnection is how many descriptors come with a Connection.
	perConnection = 2
)

// Channel carries messages over a Unix socket. Send may be called from several
// goroutines, Receive from one.
type Channel struct {
	conn *net.UnixConn
	mu   sync.Mutex // guards writing
}

// NewChannel takes over a connection.
func NewChannel(conn *net.UnixConn) *Channel { return &Channel{conn: conn} }

// FromFile takes over a socket.
func FromFile(file *os.File) (*Channel, error) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("take over a socket: %w", err)
	}
	socket, is := conn.(*net.UnixConn)
	if !is {
		conn.Close()
		return nil, errors.New("take over a socket: not a Unix socket")
	}
	return NewChannel(socket), nil
}

// Close ends the channel.
func (c *Channel) Close() error { return c.conn.Close() }

// Send sends a message with copies of descriptors. After an error the channel is of
// no use.
func (c *Channel) Send(m Message, descriptors ...int) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("write a message: larger than %d MiB", maxMessage>>20)
	}
	framed := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data)))
	framed = append(framed, data...)
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(sendTime))
	// The descriptors come with the first bytes, whatever the kernel takes at once.
	n, _, err := c.conn.WriteMsgUnix(framed, rights, nil)
	if err == nil && n < len(framed) {
		_, err = c.conn.Write(framed[n:])
	}
	if err != nil {
		return fmt.Errorf("send a message: %w", err)
	}
	return nil
}

// Receive waits for a message. The caller closes the files. The error is io.EOF if
// the other side has ended.
func (c *Channel) Receive() (m Message, files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var length [4]byte
	rights := make([]byte, unix.CmsgSpace(perConnection*4)) // descriptors of 4 bytes
	n, received, _, _, err := c.conn.ReadMsgUnix(length[:], rights)
	if err != nil || n == 0 {
		return m, nil, errors.Join(err, onlyIf(n == 0 && err == nil, io.EOF))
	}
	files, err = filesOf(rights[:received])
	if err == nil {
		_, err = io.ReadFull(c.conn, length[n:])
	}
	size := binary.BigEndian.Uint32(length[:])
	switch {
	case err != nil:
		return m, files, fmt.Errorf("receive a message: %w", err)
	case size > maxMessage:
		return m, files, fmt.Errorf("receive a message: larger than %d MiB", maxMessage>>20)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(c.conn, data); err != nil {
		return m, files, fmt.Errorf("receive a message: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, files, fmt.Errorf("read a message: %w", err)
	}
	if want := m.descriptors(); len(files) != want {
		return m, files, fmt.Errorf("read a message: %d descriptors, want %d", len(files), want)
	}
	return m, files, nil
}

func (m Message) descriptors() int {
	if m.Connection != nil {
		return perConnection
	}
	return 0
}

func onlyIf(condition bool, err error) error {
	if condition {
		return err
	}
	return nil
}

// filesOf takes over the descriptors of a message.
func filesOf(rights []byte) (files []*os.File, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range descriptors {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
