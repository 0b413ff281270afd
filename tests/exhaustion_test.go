//go:build linux

package tests

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// floods are what one session does to the others of its sidecar, without end.
var floods = map[string]string{
	"connections": `while True:
    try: kept.append(socket.create_connection(("host.sandbox.internal", port), 5))
    except OSError: kept.clear()`,
	"names": `while True:
    try: socket.gethostbyname("x%d.example.org" % n)
    except OSError: pass
    n += 1`,
	"processes": `while True:
    try:
        if os.fork() == 0: time.sleep(0.2); os._exit(0)
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except OSError: time.sleep(0.01)`,
	"refusals": `while True:
    try: open("/var/lib/no-such-directory/%d" % n, "w")
    except OSError: pass
    n += 1`,
	"output": `while True: os.write(1, b"x" * 65536)`,
}

// computes only takes a processor, as any program may.
const computes = "while True: pass"

// crowd is one session beside fifty others of the same sidecar.
type crowd struct {
	e      *harness.Editor
	port   string // of a server that answers at once
	others []*harness.Session
	number int
}

func newCrowd(t testing.TB) *crowd {
	t.Helper()
	harness.Require(t, "network_hosts")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				fmt.Fprintln(conn, "served")
				_, _ = conn.Read(make([]byte, 1)) // until the other side closes
				conn.Close()
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	c := &crowd{port: port, others: make([]*harness.Session, 50)}
	c.e = harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"localhost:" + port},
	})})
	for i := range c.others {
		c.others[i] = c.e.Spawn(protocol.SpawnParams{Command: "/bin/bash", Args: []string{"-c", `
stty -echo; echo ready; while read -r what number; do
  [ $what = echo ] || { exec 3<>/dev/tcp/host.sandbox.internal/` + port + ` && read -r got <&3 || echo failed; exec 3<&-; }
  echo "done $number;"
done`}})
	}
	for _, session := range c.others {
		session.Await("ready")
	}
	return c
}

// measure is the median over the others: of a line's echo, or of a connection to
// an allowed host.
func (c *crowd) measure(what string) time.Duration {
	var list []time.Duration
	for _, session := range c.others {
		c.number++
		begun := time.Now()
		session.Type(fmt.Sprintf("%s %d\n", what, c.number))
		session.Await(fmt.Sprintf("done %d;", c.number))
		list = append(list, time.Since(begun))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// beside measures while one more session runs a program in Python.
func (c *crowd) beside(program string) (echo, connect time.Duration) {
	text := "import os, socket, time\nkept, n, port = [], 0, " + c.port + "\nprint('started', flush=True)\n"
	session := c.e.Spawn(protocol.SpawnParams{Command: "/usr/bin/python3", Args: []string{"-c", text + program}})
	session.Await("started")
	defer session.Close(0)
	return c.measure("echo"), c.measure("connect")
}

// Whatever one session takes, each of the others gets its echo and its connection.
func TestExhaustion_LeavesTheOthersTheirs(t *testing.T) {
	c := newCrowd(t)
	idleEcho, idleConnect := c.beside(computes)
	before := make([]int, len(c.others)) // how much each has printed
	for name, flood := range floods {
		echo, connect := c.beside(flood)
		t.Logf("%s: an echo takes %v instead of %v, a connection %v instead of %v", name, echo, idleEcho, connect,
			idleConnect)
		for i, session := range c.others {
			output := session.Output()
			if strings.Contains(output[before[i]:], "failed") {
				harness.Breach(t, "%s: a connection was not made: %s", name, output[before[i]:])
			}
			before[i] = len(output)
		}
	}
}

// BenchmarkExhaustion measures how much longer both take than beside a session
// that only computes: at most twice as long is wanted.
func BenchmarkExhaustion(b *testing.B) {
	for name, flood := range floods {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(b)
			var echo, connect, idleEcho, idleConnect time.Duration
			for b.Loop() {
				one, two := c.beside(computes)
				idleEcho, idleConnect = idleEcho+one, idleConnect+two
				one, two = c.beside(flood)
				echo, connect = echo+one, connect+two
			}
			b.ReportMetric(float64(echo)/float64(idleEcho), "×echo")
			b.ReportMetric(float64(connect)/float64(idleConnect), "×connect")
			b.ReportMetric(float64(echo.Microseconds())/float64(b.N), "µs/echo")
			b.ReportMetric(float64(connect.Microseconds())/float64(b.N), "µs/connect")
		})
	}
}
