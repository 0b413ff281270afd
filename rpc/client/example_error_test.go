package client_test

import (
	"context"
	"fmt"
	"io"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// Handle an error of the protocol.
func ExampleError() {
	c, sidecar := pretend(`"error":{"code":-32602,"message":"params.cwd: required: an absolute path"}`)
	defer sidecar.Close()
	_, err := client.Call(context.Background(), c, protocol.Spawn, protocol.SpawnParams{})
	fmt.Println(err)
	// Output: params.cwd: required: an absolute path (-32602)
}

// Show a session's output.
func ExampleOn() {
	c, sidecar := pretend(`"result":{}`)
	defer sidecar.Close()
	shown := make(chan struct{})
	client.On(c, protocol.Output, func(o protocol.OutputParams) {
		fmt.Printf("%s: %s\n", o.SessionID, o.Data)
		close(shown)
	})
	body := `{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"s","data":"aGVsbG8="}}`
	fmt.Fprintf(sidecar, "Content-Length: %d\r\n\r\n%s", len(body), body)
	<-shown
	// Output: s: hello
}

// pretend connects a client to a sidecar that gives the first request an answer,
// and writes what the caller writes.
func pretend(answer string) (*client.Client, io.WriteCloser) {
	fromSidecar, out := io.Pipe()
	in, toSidecar := io.Pipe()
	go func() {
		_, _ = in.Read(make([]byte, 64<<10))
		body := `{"jsonrpc":"2.0","id":1,` + answer + `}`
		fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}()
	return client.New(fromSidecar, toSidecar), out
}
