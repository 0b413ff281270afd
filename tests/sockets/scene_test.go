//go:build linux

package sockets

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a harness.Scene with the victim of tests/sockets, and a directory
// with a short name below the temporary one, where sessions may write by default.
type scene struct {
	*harness.Scene
	temp string
}

func newScene(t testing.TB, machine harness.Machine) *scene {
	t.Helper()
	s := &scene{harness.NewScene(t, "tests/sockets/victim"), harness.ShortDir(t)}
	s.Wrap = machine.Wrap
	return s
}

// at names something in the directory that sessions may write.
func (s *scene) at(name string) string { return filepath.Join(s.temp, name) }

// start starts an editor with the default settings and the given ones beside;
// nil: without a sandbox. Sessions share the temporary directory with the test
// unless the settings say otherwise.
func (s *scene) start(settings harness.Sandbox, env ...string) *harness.Editor {
	s.T.Helper()
	text := harness.Off()
	if settings != nil {
		shared := harness.Sandbox{"temporary_files": "shared"}
		maps.Copy(shared, settings)
		text = harness.Defaults(shared)
	}
	return s.Start(text, env...)
}

// defaults are the settings of a sandbox with nothing else, private of one with
// a temporary directory of its own, and offline of one without network.
func defaults() harness.Sandbox { return harness.Sandbox{} }
func private() harness.Sandbox  { return harness.Sandbox{"temporary_files": "private"} }
func offline() harness.Sandbox  { return harness.Sandbox{"allow_network": false} }

// outsideServer is a server that no session may reach. It greets with
// "outside".
type outsideServer struct{ contacts atomic.Int32 }

// listen starts one; "@" begins an abstract name.
func listen(t testing.TB, address string) *outsideServer {
	t.Helper()
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	o := &outsideServer{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.contacts.Add(1)
			_, _ = conn.Write([]byte("outside"))
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return o
}

// receive starts a server for datagrams.
func receive(t testing.TB, address string) *outsideServer {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	o := &outsideServer{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := conn.Read(make([]byte, 64)); err != nil {
				return
			}
			o.contacts.Add(1)
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return o
}

// need skips a test that uses a program which is missing, as harness.Skip does.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		// Sessions may execute there.
		if _, err := os.Stat(filepath.Join("/usr/bin", program)); err != nil {
			harness.Skip(t, program, "it is not installed")
		}
	}
}

// fill puts values for words into a line.
func fill(line string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(line) }

func contains(output, part string) bool { return strings.Contains(output, part) }
