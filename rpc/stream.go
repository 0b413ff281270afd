package rpc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// stream is the framing of the Language Server Protocol over a pair of pipes.
type stream struct {
	in     *bufio.Reader
	out    *writer
	closer io.Closer
}

func newStream(in io.ReadCloser, out io.Writer) *stream {
	return &stream{in: bufio.NewReaderSize(in, 64<<10), out: newWriter(out), closer: in}
}

// errBroken is a frame without a usable length, so that the next one cannot be
// found.
var errBroken = errors.New("broken frame")

// maxHeader bounds a header block in bytes. A usual one has about 20.
const maxHeader = 8 << 10

// Close ends reading. writer.close ends writing.
func (s *stream) Close() error { return s.closer.Close() }

// readFrame reads a frame and returns its body.
func (s *stream) readFrame() ([]byte, error) {
	length, err := s.readHeader()
	if err != nil {
		return nil, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(s.in, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body, nil
}

// readHeader reads up to the empty line and returns the length of the body.
func (s *stream) readHeader() (int, error) {
	length, size := -1, 0
	for {
		line, err := s.readLine(maxHeader - size)
		if err != nil {
			if errors.Is(err, io.EOF) && (size > 0 || line != "") {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		size += len(line)
		line = strings.TrimRight(line, "\r\n")
		if line == "" && length >= 0 {
			return length, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return 0, fmt.Errorf("%w: expected a header field, found %.40q", errBroken, line)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue // Content-Type, and fields of later versions
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 63)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%w: Content-Length %.40q is not a number", errBroken, strings.TrimSpace(value))
		case n > protocol.MaxContentLength:
			return 0, fmt.Errorf("%w: Content-Length %d is over %d", errBroken, n, protocol.MaxContentLength)
		case length >= 0 && int(n) != length:
			return 0, fmt.Errorf("%w: two different Content-Lengths", errBroken)
		}
		length = int(n)
	}
}

// readLine reads up to and including a newline, and at most limit bytes.
func (s *stream) readLine(limit int) (string, error) {
	var line strings.Builder
	for line.Len() < limit {
		b, err := s.in.ReadByte()
		if err != nil {
			return line.String(), err
		}
		line.WriteByte(b)
		if b == '\n' {
			return line.String(), nil
		}
	}
	return "", fmt.Errorf("%w: the header is longer than %d bytes", errBroken, maxHeader)
}
