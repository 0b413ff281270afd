package client

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// codec reads frames as jsonrpc2.VSCodeObjectCodec does, except those of
// terminal/output in the form in which a sidecar writes them. Decoding these as
// JSON takes several passes over every byte that a program prints.
type codec struct {
	jsonrpc2.VSCodeObjectCodec
	// output takes a terminal/output, on the goroutine that reads.
	output func(protocol.OutputParams)
	body   *[]byte // of the last frame, for the next one
}

// maxDirect is more than any terminal/output has.
const maxDirect = 1 << 20

// ReadObject reads the next message that is not a terminal/output.
func (c codec) ReadObject(stream *bufio.Reader, v any) error {
	for {
		length, err := readHeader(stream)
		if err != nil {
			return err
		}
		if length > maxDirect {
			return json.NewDecoder(io.LimitReader(stream, length)).Decode(v)
		}
		if int64(cap(*c.body)) < length {
			*c.body = make([]byte, length)
		}
		body := (*c.body)[:length]
		if _, err := io.ReadFull(stream, body); err != nil {
			return err
		}
		params, is := outputOf(body)
		if !is {
			return json.Unmarshal(body, v)
		}
		c.output(params)
	}
}

// readHeader reads a header, and returns the length of the body.
func readHeader(stream *bufio.Reader) (length int64, err error) {
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			return 0, err
		}
		line, ends := strings.CutSuffix(line, "\r\n")
		switch value, is := strings.CutPrefix(line, "Content-Length: "); {
		case !ends:
			return 0, errors.New("read header: a line does not end with CR LF")
		case is:
			if length, err = strconv.ParseInt(value, 10, 32); err != nil || length < 0 {
				return 0, fmt.Errorf("read header: invalid Content-Length %.20q", value)
			}
		case line == "" && length == 0:
			return 0, errors.New("read header: no Content-Length")
		case line == "":
			return length, nil
		}
	}
}

// The parts of a terminal/output as a sidecar writes it.
var (
	outputHead = []byte(`{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"`)
	outputData = []byte(`","data":"`)
	outputTail = []byte(`"}}`)
)

// outputOf reads a terminal/output in exactly that form. It returns false for
// everything else.
func outputOf(body []byte) (params protocol.OutputParams, is bool) {
	rest, is := bytes.CutPrefix(body, outputHead)
	if !is {
		return params, false
	}
	id, rest, is := bytes.Cut(rest, outputData)
	if !is || bytes.ContainsAny(id, `"\`) {
		return params, false
	}
	text, is := bytes.CutSuffix(rest, outputTail)
	if !is || bytes.ContainsAny(text, "\r\n") { // base64 ignores line ends, JSON forbids them
		return params, false
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	return protocol.OutputParams{SessionID: string(id), Data: data[:n]}, err == nil
}
