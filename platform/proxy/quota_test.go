package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// One connection too many is answered so, and another session has its own.
func TestProxy_ASessionHasAQuotaOfConnections(t *testing.T) {
	t.Parallel()
	host, err := net.Listen("tcp4", "127.0.0.1:0")
	harness.Must(t, err)
	defer host.Close()
	go func() {
		for {
			conn, err := host.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	port := host.Addr().(*net.TCPAddr).Port
	target := fmt.Sprintf("%s:%d", hosts.HostName, port)
	pattern, err := hosts.ParseAllowed(fmt.Sprintf("localhost:%d", port))
	harness.Must(t, err)
	server, err := Listen()
	harness.Must(t, err)
	defer server.Close()
	var crowded atomic.Int64
	admit := func() (token string) {
		token = NewToken()
		t.Cleanup(server.Admit(token, Client{
			Rules: hosts.New([]hosts.Pattern{pattern}, nil), Connections: 2,
			Crowded: func(most int, _ bool) { crowded.Store(int64(most)) },
			Refused: func(string, string) {}, Connected: func(string) {},
		}))
		return token
	}
	connect := func(token string) (int, net.Conn) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server.Port()))
		harness.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		request, err := http.NewRequest(http.MethodConnect, "http://"+target, nil)
		harness.Must(t, err)
		request.SetBasicAuth("x", token)
		_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: %s\r\n\r\n", target, target,
			request.Header.Get("Authorization"))
		harness.Must(t, err)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		var status int
		line, err := bufio.NewReader(conn).ReadString('\n')
		harness.Must(t, err)
		_, err = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
		harness.Must(t, err)
		return status, conn
	}
	first, second := admit(), admit()
	one, conn := connect(first)
	two, _ := connect(first)
	three, _ := connect(first)
	other, _ := connect(second)
	const served, full = http.StatusOK, http.StatusServiceUnavailable
	if one != served || two != served || three != full || other != served {
		t.Errorf("%d, %d, %d; another session: %d", one, two, three, other)
	}
	if most := crowded.Load(); most != 2 {
		t.Errorf("told %d", most)
	}
	conn.Close()
	harness.Eventually(t, "the place is free again", func() bool {
		status, _ := connect(first)
		return status == http.StatusOK
	})
}
