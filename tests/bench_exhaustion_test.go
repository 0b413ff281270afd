//go:build linux

package tests

import (
	"fmt"
	"net"
	"slices"
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

// BenchmarkExhaustion measures what fifty sessions feel of one that takes what it
// can get: the time of a line's echo, and of a connection to an allowed host, over
// that beside a session that only computes.
func BenchmarkExhaustion(b *testing.B) {
	harness.Require(b, "network_hosts")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(b, err)
	defer listener.Close()
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
	for name, flood := range floods {
		b.Run(name, func(b *testing.B) {
			e := harness.Start(b, harness.NewWorld(b), harness.Options{Settings: harness.Defaults(harness.Sandbox{
				"allow_network": false, "allowed_hosts": []string{"localhost:" + port},
			})})
			others := make([]*harness.Session, 50)
			for i := range others {
				others[i] = e.Spawn(protocol.SpawnParams{Command: "/bin/bash", Args: []string{"-c", `
stty -echo; echo ready; while read -r what number; do
  [ $what = echo ] || { exec 3<>/dev/tcp/host.sandbox.internal/` + port + `; read -r got <&3; exec 3<&-; }
  echo "done $number;"
done`}})
			}
			for _, session := range others {
				session.Await("ready")
			}
			number := 0
			measure := func(what string) time.Duration {
				var list []time.Duration
				for _, session := range others {
					number++
					begun := time.Now()
					session.Type(fmt.Sprintf("%s %d\n", what, number))
					session.Await(fmt.Sprintf("done %d;", number))
					list = append(list, time.Since(begun))
				}
				slices.Sort(list)
				return list[len(list)/2]
			}
			beside := func(program string) (echo, connect time.Duration) {
				text := "import os, socket, time\nkept, n, port = [], 0, " + port + "\nprint('started', flush=True)\n"
				session := e.Spawn(protocol.SpawnParams{
					Command: "/usr/bin/python3", Args: []string{"-c", text + program},
				})
				session.Await("started")
				defer session.Close(0)
				return measure("echo"), measure("connect")
			}
			var echo, connect, idleEcho, idleConnect time.Duration
			for b.Loop() {
				one, two := beside("while True: pass")
				idleEcho, idleConnect = idleEcho+one, idleConnect+two
				one, two = beside(flood)
				echo, connect = echo+one, connect+two
			}
			b.ReportMetric(float64(echo)/float64(idleEcho), "×echo")
			b.ReportMetric(float64(connect)/float64(idleConnect), "×connect")
			b.ReportMetric(float64(echo.Microseconds())/float64(b.N), "µs/echo")
			b.ReportMetric(float64(connect.Microseconds())/float64(b.N), "µs/connect")
		})
	}
}
