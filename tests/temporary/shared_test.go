//go:build linux

package temporary

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

const openMemory = `python3 -c 'import sys, time
from multiprocessing import shared_memory
m = shared_memory.SharedMemory(sys.argv[1], create=sys.argv[2] == "make", size=8)
if sys.argv[2] == "make":
  print("made", flush=True)
  while m.buf[0] != 7: time.sleep(0.01)
  print("changed")
else: m.buf[0] = 7
' `

// Two sessions of a project share memory (shm_open(3)), as a terminal and a tool
// do. A session of another project and a program outside do not find it.
func TestTemporaryFiles_MemoryOfTwoSessions(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	harness.RequirePrograms(t, "python3")
	w, name := harness.NewWorld(t), fmt.Sprintf("sidecar-memory-%d", os.Getpid())
	e := start(t, w, nil)
	first := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Command: "/bin/sh", Args: []string{"-c", openMemory + name + " make"},
	})
	first.Await("made")
	other := filepath.Join(filepath.Dir(w.Project), "other")
	harness.MakeDir(t, other)
	s, status := e.Run(protocol.SpawnParams{Command: openMemory + name + " find", Cwd: other, ProjectDir: other})
	if status == 0 || !strings.Contains(s.Output(), "No such file or directory") {
		t.Errorf("another project: status %d: %s", status, s.Output())
	}
	if _, err := os.Stat("/dev/shm/" + name); err == nil {
		t.Error("a program outside finds it")
	}
	must(t, e, openMemory+name+" find 2>/dev/null")
	first.Await("changed")
}

// desktop is a server outside that people grant, with a real client if there is
// one.
type desktop struct {
	name    string
	program string // of the client
	// variable, with SOCKET for the socket's path, arrives in the session only
	// if the socket is granted.
	variable, value string
	start           func(t *testing.T, socket string)
	line, hears     string
}

const firstBytes = `python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b"hello"); print(s.recv(64))' `

var desktops = []desktop{
	{
		"X11", "python3", "DISPLAY", ":DISPLAY", greet,
		firstBytes + `"/tmp/.X11-unix/X${DISPLAY#:}"`, "hello, too",
	},
	{"Wayland", "python3", "WAYLAND_DISPLAY", "SOCKET", greet, firstBytes + `"$WAYLAND_DISPLAY"`, "hello, too"},
	{
		"D-Bus", "dbus-send", "DBUS_SESSION_BUS_ADDRESS", "unix:path=SOCKET",
		func(t *testing.T, socket string) {
			config := filepath.Join(t.TempDir(), "bus.conf")
			harness.Write(t, config, `<busconfig><type>session</type><listen>unix:path=`+socket+`</listen>
<policy context="default"><allow send_destination="*"/><allow own="*"/><allow receive_sender="*"/></policy></busconfig>`)
			bus := exec.Command("dbus-daemon", "--config-file="+config, "--nofork", "--nopidfile")
			harness.Must(t, bus.Start())
			t.Cleanup(func() {
				_ = bus.Process.Kill()
				_ = bus.Wait()
			})
			harness.Eventually(t, "the bus listens", func() bool { _, err := os.Stat(socket); return err == nil })
		},
		"dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames",
		"org.freedesktop.DBus",
	},
	{
		"docker", "curl", "DOCKER_HOST", "unix://SOCKET",
		func(t *testing.T, socket string) {
			listener := listenAt(t, socket)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "API version 1.44")
			})}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = server.Serve(listener)
			}()
			t.Cleanup(func() {
				_ = server.Close()
				<-done
			})
		},
		`curl -sS --unix-socket "${DOCKER_HOST#unix://}" http://docker/version`, "API version",
	},
}

func listenAt(t *testing.T, socket string) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	harness.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// greet answers the first bytes of each client.
func greet(t *testing.T, socket string) {
	t.Helper()
	listener := listenAt(t, socket)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64))
			_, _ = io.WriteString(conn, "hello, too")
			_ = conn.Close()
		}
	}()
}

// Servers outside whose sockets lie in /tmp are reached if they are granted, and
// otherwise not: neither by their path nor by the variable that names it.
func TestTemporaryFiles_GrantedServers(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files", "unix_sockets")
	for i, d := range desktops {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			harness.RequirePrograms(t, d.program)
			socket := filepath.Join(harness.ShortDir(t), "socket")
			display := fmt.Sprint(10_000 + os.Getpid()%10_000 + i)
			if d.name == "X11" {
				// The X server's own directory is made at the start of the machine.
				if os.Mkdir("/tmp/.X11-unix", 0o700) == nil {
					harness.Must(t, os.Chmod("/tmp/.X11-unix", 0o777|os.ModeSticky))
					t.Cleanup(func() { _ = os.Remove("/tmp/.X11-unix") }) // if it is empty
				}
				socket = "/tmp/.X11-unix/X" + display
			}
			d.start(t, socket)
			value := strings.NewReplacer("SOCKET", socket, "DISPLAY", display).Replace(d.value)
			try := func(settings string) (string, int) {
				e := harness.Start(t, harness.NewWorld(t), harness.Options{
					Settings: settings, Env: []string{d.variable + "=" + value},
				})
				return e.Tool(d.line)
			}
			variables := []string{"PATH", "HOME", "TMPDIR", "LANG", d.variable}
			if output, status := try(harness.Off()); status != 0 || !strings.Contains(output, d.hears) {
				t.Fatalf("control: without a sandbox: status %d: %s", status, output)
			}
			output, status := try(harness.Defaults(harness.Sandbox{
				"allowed_env_vars": variables, "allowed_unix_sockets": []string{socket},
			}))
			if status != 0 || !strings.Contains(output, d.hears) {
				t.Errorf("granted: status %d: %s", status, output)
			}
			output, status = try(harness.Defaults(harness.Sandbox{"allowed_env_vars": variables}))
			if status == 0 || strings.Contains(output, d.hears) {
				t.Errorf("not granted: status %d: %s", status, output)
			}
		})
	}
}
