package client_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Output arrives in whatever form it is written, in its order among the other
// notifications. What is no output does not.
func TestOutput_OfAnyForm(t *testing.T) {
	t.Parallel()
	c, sidecar := connect(t)
	got := make(chan string, 20)
	client.On(c, protocol.Output, func(p protocol.OutputParams) { got <- fmt.Sprintf("%s %q", p.SessionID, p.Data) })
	client.On(c, protocol.Exited, func(p protocol.ExitedParams) { got <- p.SessionID + " exited" })
	const form = `{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"%s","data":"%s"}}`
	long := strings.Repeat("x", 2<<20) // longer than what is read directly
	for _, body := range []string{
		fmt.Sprintf(form, "a", "aGk="),
		`{"jsonrpc": "2.0", "params": {"data": "aGk=", "sessionId": "b"}, "method": "terminal/output"}`,
		fmt.Sprintf(form, `\u0063`, "aGk="),
		fmt.Sprintf(form, `d","data":"eA==","sessionId":"e`, "aGk="), // the last of equal keys counts
		fmt.Sprintf(form, "f", `aG\u006b=`),
		fmt.Sprintf(form, "refused", "*"),
		fmt.Sprintf(form, "empty", ""),
		`{"jsonrpc":"2.0","method":"terminal/exited","params":{"sessionId":"g"}}`,
		fmt.Sprintf(form, "long", base64.StdEncoding.EncodeToString([]byte(long))),
		fmt.Sprintf(form, "end", "aGk="),
	} {
		fmt.Fprintf(sidecar.out, "Content-Type: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for _, want := range []string{
		`a "hi"`, `b "hi"`, `c "hi"`, `e "hi"`, `f "hi"`, `empty ""`, "g exited",
		fmt.Sprintf("long %q", long), `end "hi"`,
	} {
		select {
		case text := <-got:
			if text != want {
				t.Errorf("got %.100s, want %.100s", text, want)
			}
		case <-deadline.After(30 * time.Second):
			t.Fatalf("no %.100s", want)
		}
	}
}

// A header that is none ends the connection.
func TestHeader_Invalid(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		"\r\n", "Content-Length: 2\n\n{}", "Content-Length: x\r\n\r\n", "Content-Length: -1\r\n\r\n",
	} {
		c, sidecar := connect(t)
		fmt.Fprint(sidecar.out, header)
		select {
		case <-c.Gone():
		case <-deadline.After(30 * time.Second):
			t.Errorf("%q: the connection goes on", header)
		}
	}
}
