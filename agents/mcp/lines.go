//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The library ends the connection at a line that is no message, and with it all
// commands that the agent has started. So such a line is answered here.

// readable passes on the lines of an agent that are messages, until in ends. Others
// are answered by an error without an id. Closing it closes in.
func readable(in io.ReadCloser, out io.Writer) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		lines := bufio.NewReader(in)
		for {
			line, err := readLine(lines)
			if errors.Is(err, errTooLong) {
				err = refuse(out, jsonrpc.CodeInvalidRequest, err)
			} else if err == nil {
				err = pass(w, out, line)
			}
			if err != nil {
				w.CloseWithError(err) // io.EOF at the end
				return
			}
		}
	}()
	return &readableLines{r, in}
}

type readableLines struct {
	*io.PipeReader
	in io.Closer
}

func (l *readableLines) Close() error { return errors.Join(l.PipeReader.Close(), l.in.Close()) }

// pass passes on a line. Each message of a batch has a line of its own, as the
// library refuses batches from one version of the protocol on.
func pass(to, out io.Writer, line []byte) error {
	line = bytes.TrimSpace(line)
	messages := []json.RawMessage{line}
	switch {
	case len(line) == 0:
		return nil
	case !json.Valid(line):
		return refuse(out, jsonrpc.CodeParseError, errors.New("the line is no JSON"))
	case line[0] == '[':
		if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
			return refuse(out, jsonrpc.CodeInvalidRequest, errors.New("the batch is empty"))
		}
	}
	for _, message := range messages {
		if _, err := jsonrpc.DecodeMessage(message); err != nil {
			if err := refuse(out, jsonrpc.CodeInvalidRequest, err); err != nil {
				return err
			}
			continue
		}
		if _, err := to.Write(append(message, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// refuse answers what is no message.
func refuse(out io.Writer, code int64, why error) error {
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why.Error()},
	})
	if err == nil {
		_, err = out.Write(append(text, '\n'))
	}
	return err
}

var errTooLong = fmt.Errorf("the line has more than %d bytes", maxLine)

// readLine reads a line whole. The rest of one that is too long is left out.
func readLine(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0: // the last line
			return line, nil
		case err != nil:
			return nil, err
		case len(line) > maxLine:
			return nil, errTooLong
		default:
			return line, nil
		}
	}
}

// wholeWrites keeps messages from mixing. Each is one write.
type wholeWrites struct {
	mu sync.Mutex
	io.WriteCloser
}

func (w *wholeWrites) Write(message []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(message)
}
