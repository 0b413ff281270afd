package tests

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Each benchmark measures its baseline in the same run and reports a ratio,
// because absolute figures depend on the machine and the moment.

// BenchmarkSpawn measures the time from the request to the first byte of
// output, over a bare fork and exec on a PTY. A joined tool has a sandbox that an
// earlier one has made.
func BenchmarkSpawn(b *testing.B) {
	for _, variant := range []struct{ name, settings, group string }{
		{"unsandboxed", harness.Off(), ""},
		{"sandboxed", harness.Defaults(nil), ""},
		{"joined", harness.Defaults(nil), "agent"},
	} {
		b.Run(variant.name, func(b *testing.B) {
			e := harness.Start(b, harness.NewWorld(b), harness.Options{Settings: variant.settings})
			if variant.group != "" && !e.Hello.Capabilities.Groups {
				harness.Skip(b, "groups", "sessions can share a sandbox on Linux only")
			}
			firstByte := func() time.Duration {
				begun := time.Now()
				session := e.Spawn(protocol.SpawnParams{
					Kind: protocol.Tool, Command: "/bin/echo", Args: []string{"x"}, Group: variant.group,
				})
				session.Await("x")
				elapsed := time.Since(begun)
				session.Close(0)
				return elapsed
			}
			firstByte() // makes the sandbox of a group
			var bare, ours time.Duration
			for b.Loop() {
				bare += bareFirstByte(b)
				ours += firstByte()
			}
			b.ReportMetric(float64(ours)/float64(bare), "×bare")
			b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/first-byte")
		})
	}
}

// BenchmarkSpawnOverAnother compares the same time of two kinds of sandbox, by
// turns: what protected paths, the network's absence and namespaces add.
func BenchmarkSpawnOverAnother(b *testing.B) {
	repository := func(w *harness.World) {
		if out, err := exec.Command("git", "init", "-q", w.Project).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	none := harness.Sandbox{"protected_paths": []string{"!*"}}
	for _, test := range []struct {
		name       string
		more, less string
		without    bool // namespaces, for less
	}{
		{name: "protected paths over none", more: harness.Defaults(nil), less: harness.Defaults(none)},
		{
			name: "network off over on", more: harness.Defaults(harness.Sandbox{"allow_network": false}),
			less: harness.Defaults(nil),
		},
		{name: "namespaces over none", more: harness.Defaults(none), less: harness.Defaults(none), without: true},
	} {
		b.Run(test.name, func(b *testing.B) {
			start := func(settings string, without bool) *harness.Editor {
				w := harness.NewWorld(b)
				repository(w)
				options := harness.Options{Settings: settings}
				if without {
					options.Wrap = harness.WithoutNamespaces(b)
				}
				return harness.Start(b, w, options)
			}
			firstByte := func(e *harness.Editor) time.Duration {
				begun := time.Now()
				session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "/bin/echo", Args: []string{"x"}})
				session.Await("x")
				elapsed := time.Since(begun)
				session.Close(0)
				return elapsed
			}
			more, less := start(test.more, false), start(test.less, test.without)
			firstByte(more) // finds out about namespaces
			firstByte(less)
			var with, over time.Duration
			for b.Loop() {
				with += firstByte(more)
				over += firstByte(less)
			}
			b.ReportMetric(float64(with)/float64(over), "×")
			b.ReportMetric(float64((with-over).Microseconds())/float64(b.N), "µs-added")
		})
	}
}

func bareFirstByte(b *testing.B) time.Duration {
	begun := time.Now()
	command := exec.Command("/bin/echo", "x")
	master, err := pty.Start(command)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := master.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	elapsed := time.Since(begun)
	_ = command.Wait()
	master.Close()
	return elapsed
}

// BenchmarkOutput measures bytes per second from a program to the client, over
// a bare read of a PTY.
func BenchmarkOutput(b *testing.B) {
	const size = 16 << 20
	line := "head -c 16777216 /dev/zero | tr '\\0' x"
	e := harness.Start(b, harness.NewWorld(b), harness.Options{})
	var bare, ours time.Duration
	for b.Loop() {
		begun := time.Now()
		command := exec.Command("/bin/sh", "-c", line)
		master, err := pty.Start(command)
		if err != nil {
			b.Fatal(err)
		}
		n, _ := io.Copy(io.Discard, master) // ends with EIO
		bare += time.Since(begun)
		_ = command.Wait()
		master.Close()
		begun = time.Now()
		session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
		session.Exit()
		ours += time.Since(begun)
		if got := bytes.Count(session.Raw(), []byte("x")); n != size || got != size {
			b.Fatalf("read %d bytes bare and %d through the sidecar, expected %d", n, got, size)
		}
	}
	b.ReportMetric(float64(bare)/float64(ours), "×bare-throughput")
	b.ReportMetric(size*float64(b.N)/ours.Seconds()/1e6, "MB/s")
}

// BenchmarkConnect measures two calls over the same without a sandbox:
// connecting to the session's own server, which the sidecar does for it before
// Linux 7.1, and a call that only passes the filter.
func BenchmarkConnect(b *testing.B) {
	measure := func(settings string) map[string]float64 {
		w := harness.NewWorld(b)
		victim, socket := filepath.Join(w.Project, "victim"), filepath.Join(w.Project, "s")
		harness.Victim(b, "tests/sockets/victim", victim)
		output, status := harness.Start(b, w, harness.Options{Settings: settings}).Tool(victim + " clock " + socket)
		if status != 0 {
			b.Fatal(output)
		}
		times := map[string]float64{}
		for line := range strings.Lines(output) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			nanoseconds, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatalf("%v in %s", err, output)
			}
			times[name] = nanoseconds
		}
		return times
	}
	bare, ours := map[string]float64{}, map[string]float64{}
	for b.Loop() {
		for name, time := range measure(harness.Off()) {
			bare[name] += time
		}
		for name, time := range measure(harness.Defaults(nil)) {
			ours[name] += time
		}
	}
	for _, name := range []string{"unix", "tcp", "getppid"} {
		b.ReportMetric(ours[name]/bare[name], "×bare-"+name)
		b.ReportMetric(ours[name]/float64(b.N)/1e3, "µs/"+name)
	}
}
