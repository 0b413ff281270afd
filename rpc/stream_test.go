package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

func TestReadFrame(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, input string
		want        []string // bodies
		end         error
	}{
		{"nothing at all is an orderly end", "", nil, io.EOF},
		{"one frame", "Content-Length: 2\r\n\r\n{}", []string{"{}"}, io.EOF},
		{"two frames", "Content-Length: 2\r\n\r\n{}Content-Length: 4\r\n\r\nnull", []string{"{}", "null"}, io.EOF},
		{"an empty body", "Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", []string{"", "1"}, io.EOF},
		{"names in any case, blanks around", "cOnTeNt-lEnGtH :  2 \r\n\r\n{}", []string{"{}"}, io.EOF},
		{
			"other fields before and after", "Content-Type: a; b=c\r\nContent-Length: 2\r\nX-New: 1\r\n\r\n{}",
			[]string{"{}"},
			io.EOF,
		},
		{"bare newlines", "Content-Length: 2\n\n{}", []string{"{}"}, io.EOF},
		{"the same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", []string{"{}"}, io.EOF},
		{
			"a body that holds a header", "Content-Length: 21\r\n\r\nContent-Length: 2\r\n\r\n",
			[]string{"Content-Length: 2\r\n\r\n"},
			io.EOF,
		},
		{"two different lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", nil, errBroken},
		{"no length", "Content-Type: a\r\n\r\n{}", nil, errBroken},
		{"no field at all", "\r\n\r\n{}", nil, errBroken},
		{"no colon", "Content-Length 2\r\n\r\n{}", nil, errBroken},
		{"no number", "Content-Length: two\r\n\r\n{}", nil, errBroken},
		{"a negative number", "Content-Length: -2\r\n\r\n{}", nil, errBroken},
		{"a signed number", "Content-Length: +2\r\n\r\n{}", nil, errBroken},
		{"a hexadecimal number", "Content-Length: 0x2\r\n\r\n{}", nil, errBroken},
		{"an empty number", "Content-Length:\r\n\r\n{}", nil, errBroken},
		{"a number beyond 64 bits", "Content-Length: 99999999999999999999\r\n\r\n{}", nil, errBroken},
		{"one byte over the limit", fmt.Sprintf("Content-Length: %d\r\n\r\n", protocol.MaxContentLength+
			1), nil, errBroken},
		{"an endless line", strings.Repeat("x", 10*maxHeader), nil, errBroken},
		{"an endless header", strings.Repeat("X: y\r\n", maxHeader), nil, errBroken},
		{"an end in the header", "Content-Le", nil, io.ErrUnexpectedEOF},
		{"an end after a field", "Content-Length: 2\r\n", nil, io.ErrUnexpectedEOF},
		{"an end before the body", "Content-Length: 2\r\n\r\n", nil, io.ErrUnexpectedEOF},
		{"an end in the body", "Content-Length: 2\r\n\r\n{", nil, io.ErrUnexpectedEOF},
		{"an end in the second frame", "Content-Length: 2\r\n\r\n{}Content", []string{"{}"}, io.ErrUnexpectedEOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// A pipe may deliver any number of bytes: the result must not depend
			// on where reads are cut.
			for _, reader := range []io.Reader{
				strings.NewReader(test.input),
				iotest.OneByteReader(strings.NewReader(test.input)),
			} {
				s := &stream{in: bufio.NewReader(reader)}
				var got []string
				body, err := s.readFrame()
				for ; err == nil; body, err = s.readFrame() {
					got = append(got, string(body))
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) || len(got) != len(test.want) || !errors.Is(err, test.end) {
					t.Errorf("readFrame of %.60q: got %q, %v; want %q, %v", test.input, got, err, test.want, test.end)
				}
			}
		})
	}
}

func TestReadFrame_AtTheLimit(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte(" "), protocol.MaxContentLength)
	s := &stream{in: bufio.NewReader(io.MultiReader(bytes.NewReader(appendHeader(nil, len(body))),
		bytes.NewReader(body)))}
	if got, err := s.readFrame(); err != nil || len(got) != len(body) {
		t.Errorf("readFrame: got %d bytes, %v", len(got), err)
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	taken int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.taken += n
	return n, err
}

func TestReadFrame_ReadsNothingOfABodyThatIsTooLong(t *testing.T) {
	t.Parallel()
	in := &countingReader{Reader: io.MultiReader(strings.NewReader("Content-Length: 4294967296\r\n\r\n"),
		neverEnding{})}
	const buffer = 64 << 10
	s := &stream{in: bufio.NewReaderSize(in, buffer)}
	if _, err := s.readFrame(); !errors.Is(err, errBroken) {
		t.Errorf("readFrame: got %v, want %v", err, errBroken)
	}
	if in.taken > 2*buffer {
		t.Errorf("took %d bytes of a frame that it refused", in.taken)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

// Reading never panics, and returns only frames that were announced and are
// within the limit.
func FuzzReadFrame(f *testing.F) {
	for _, seed := range []string{
		"Content-Length: 2\r\n\r\n{}", "content-length:2\n\n{}Content-Length: 0\r\n\r\n",
		"Content-Length: 33554433\r\n\r\n",
		"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "\r\n", ":\r\n\r\n", "Content-Length: 3\r\n\r\n\xff\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s := &stream{in: bufio.NewReader(bytes.NewReader(input))}
		total := 0
		for {
			body, err := s.readFrame()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errBroken) {
					t.Fatalf("an unexpected error: %v", err)
				}
				return
			}
			if total += len(body); len(body) > protocol.MaxContentLength || total > len(input) {
				t.Fatalf("a body of %d bytes out of %d", len(body), len(input))
			}
			// A body that is written again reads the same, also with the codec
			// of clients.
			var out bytes.Buffer
			out.Write(append(appendHeader(nil, len(body)), body...))
			again := &stream{in: bufio.NewReader(bytes.NewReader(out.Bytes()))}
			if same, err := again.readFrame(); err != nil || !bytes.Equal(same, body) {
				t.Fatalf("written again: %q, %v", same, err)
			}
			if json.Valid(body) {
				var raw json.RawMessage
				if err := (jsonrpc2.VSCodeObjectCodec{}).ReadObject(bufio.NewReader(&out), &raw); err != nil ||
					!json.Valid(raw) {
					t.Fatalf("jsonrpc2 reads %q: %v", raw, err)
				}
			}
		}
	})
}

// written collects the bytes that a stream's writer writes.
type written struct {
	bytes.Buffer
}

func (*written) Close() error { return nil }

func TestSendOutput_EqualsTheEncodingOfPackageJSON(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 2, 3, 4, 100, 4095, 4096, 64 << 10} {
		data := make([]byte, size)
		random.Read(data)
		const id = "0b0e7c5e-5c1f-4d8a-9b57-000000000001"
		var out written
		s := newStream(&written{}, &out)
		if err := s.out.sendOutput(id, newRoom(), data, outputTail); err != nil {
			t.Fatal(err)
		}
		s.out.close(time.Minute)
		var got, want any
		if err := (jsonrpc2.VSCodeObjectCodec{}).ReadObject(bufio.NewReader(&out.Buffer), &got); err != nil {
			t.Fatalf("%d bytes: jsonrpc2 cannot read the frame: %v", size, err)
		}
		params := protocol.OutputParams{SessionID: id, Data: data}
		message, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "method": protocol.Output.Method, "params": params,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(message, &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d bytes: got %.200v, want %.200v", size, got, want)
		}
	}
}
