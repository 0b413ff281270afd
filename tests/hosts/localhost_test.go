//go:build linux

package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// here is a user with the network on, at a shell.
type here struct {
	*harness.World
	env []string
}

func newHere(t *testing.T, keys harness.Sandbox) *here {
	t.Helper()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "python3")
	h := &here{World: harness.NewWorldOutsideDefaults(t)}
	h.env = append(harness.Environ(h.World), "TERM=xterm", "PATH="+harness.SearchPath)
	keys["toolchains"] = []string{"python", "node"}
	if keys["localhost"] == nil {
		keys["localhost"] = "own"
	}
	harness.Write(t, h.UserSettings(), harness.Defaults(keys))
	return h
}

// command is one that a sidecar of its own runs in a project.
func (h *here) command(t *testing.T, project string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(harness.Binary(t), append([]string{"exec", "--"}, args...)...)
	command.Dir, command.Env = project, h.env
	return command
}

func (h *here) run(t *testing.T, project string, args ...string) (output string, err error) {
	t.Helper()
	text, err := h.command(t, project, args...).CombinedOutput()
	return string(text), err
}

// serve starts a command that prints the port where it listens, and returns that.
func (h *here) serve(t *testing.T, project string, args ...string) int {
	t.Helper()
	command := h.command(t, project, args...)
	out, err := command.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if port, err := strconv.Atoi(strings.TrimSpace(lines.Text())); err == nil {
			return port
		}
	}
	t.Fatalf("%q: does not say where it listens", args)
	return 0
}

// outsider is a service of the machine, outside of all sessions, that notes what
// it is sent.
type outsider struct {
	port int
	mu   sync.Mutex // guards heard
	all  []string
}

func newOutsider(t *testing.T) *outsider {
	t.Helper()
	listener, err := net.Listen("tcp", ":0") // IPv6, too
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	o := &outsider{port: listener.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go o.hear(conn)
		}
	}()
	return o
}

func (o *outsider) hear(conn net.Conn) {
	defer conn.Close()
	line, _ := bufio.NewReader(conn).ReadString('\n')
	if line == "" {
		return
	}
	o.mu.Lock()
	o.all = append(o.all, strings.TrimSpace(line))
	o.mu.Unlock()
	_, _ = io.WriteString(conn, "heard\n")
}

func (o *outsider) heard() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// forms connects in many ways, each of which sends its own name.
const forms = `
import ctypes, errno, os, select, socket, struct, sys, threading
port, address = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
FAST, DEFER, NO_COOKIE = 0x20000000, 30, 34
def say(s, name):
    s.settimeout(5)
    s.sendall((name + "\n").encode())
    s.recv(10)
def tcp(family, to, *more):
    def act(name):
        with socket.socket(family, socket.SOCK_STREAM, *more) as s:
            s.settimeout(5); s.connect((to, port)); say(s, name)
    return act
def blocking(name):
    with socket.socket() as s:
        s.connect(("127.0.0.1", port)); say(s, name)
def short6(name):
    with socket.socket(socket.AF_INET6) as s:
        raw = struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", port, 0) + socket.inet_pton(socket.AF_INET6, "::1")
        if libc.connect(s.fileno(), raw, 24): raise OSError(ctypes.get_errno(), "connect")
        say(s, name)
def sendto(name):
    with socket.socket() as s:
        s.sendto((name + "\n").encode(), FAST, ("127.0.0.1", port)); s.recv(10)
def sendmsg(name):
    with socket.socket() as s:
        s.sendmsg([(name + "\n").encode()], [], FAST, ("127.0.0.1", port)); s.recv(10)
def sendmmsg(name):
    text = (name + "\n").encode()
    to = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton("127.0.0.1"))
    buffer, where = ctypes.create_string_buffer(text), ctypes.create_string_buffer(to)
    piece = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(buffer), len(text)))
    header = ctypes.create_string_buffer(
        struct.pack("QIIQQQQI4xI4x", ctypes.addressof(where), 16, 0, ctypes.addressof(piece), 1, 0, 0, 0, 0))
    with socket.socket() as s:
        if libc.sendmmsg(s.fileno(), header, 1, FAST) != 1: raise OSError(ctypes.get_errno(), "sendmmsg")
        s.recv(10)
def deferred(name):
    with socket.socket() as s:
        s.setsockopt(socket.IPPROTO_TCP, NO_COOKIE, 1)
        s.setsockopt(socket.IPPROTO_TCP, DEFER, 1)
        s.connect(("127.0.0.1", port)); say(s, name)
def race(name):
    own = socket.create_server(("127.0.0.1", 0), backlog=1000)
    here = struct.pack("!H", own.getsockname()[1])
    there = struct.pack("!H", port)
    raw = ctypes.create_string_buffer(struct.pack("=H", socket.AF_INET) + here + socket.inet_aton("127.0.0.1") + bytes(8))
    ended = False
    def flip():
        while not ended:
            raw[2:4] = there; raw[2:4] = here
    threading.Thread(target=flip, daemon=True).start()
    last = OSError(errno.EACCES, "never")
    for _ in range(300):
        with socket.socket() as s:
            if libc.connect(s.fileno(), raw, 16):
                if ctypes.get_errno() != errno.ECONNREFUSED: # half of one port, half of the other
                    last = OSError(ctypes.get_errno(), "connect")
            elif s.getpeername()[1] == port:
                say(s, name); ended = True; return
    ended = True
    raise last
ways = {
    "v4": tcp(socket.AF_INET, "127.0.0.1"), "v4 other": tcp(socket.AF_INET, "127.8.7.6"),
    "v4 any": tcp(socket.AF_INET, "0.0.0.0"), "own address": tcp(socket.AF_INET, address), "blocking": blocking,
    "v6": tcp(socket.AF_INET6, "::1"), "v6 any": tcp(socket.AF_INET6, "::"), "v6 short": short6,
    "mapped": tcp(socket.AF_INET6, "::ffff:127.0.0.1"), "mapped any": tcp(socket.AF_INET6, "::ffff:0.0.0.0"),
    "mapped own": tcp(socket.AF_INET6, "::ffff:" + address),
    "sendto": sendto, "sendmsg": sendmsg, "sendmmsg": sendmmsg, "deferred": deferred, "race": race,
    "mptcp": tcp(socket.AF_INET, "127.0.0.1", 262),
}
for name in sys.argv[3:] or ways:
    try:
        ways[name](name); print(name + ": done")
    except OSError as e:
        print(name + ": " + errno.errorcode.get(e.errno, str(e)))
`

// ownAddress is an address of this machine's that is not of its loopback
// interface.
func ownAddress(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	harness.Must(t, err)
	for _, a := range list {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			return prefix.Addr().String()
		}
	}
	return "127.0.0.2" // a machine without a network
}

// A session reaches no service of a program outside at the machine's own
// addresses, in whatever form it names them and by whatever call.
func TestLocalhost_NobodyElsesServices(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"own", "none", "all"} {
		o, h := newOutsider(t), newHere(t, harness.Sandbox{"localhost": value})
		output, err := h.run(t, h.Project, "python3", "-c", forms, strconv.Itoa(o.port), ownAddress(t))
		if err != nil {
			t.Fatalf("%s: %v\n%s", value, err, output)
		}
		lines := regexp.MustCompile(`(?m)^([a-z0-9 ]+): (\w+)\r?$`).FindAllStringSubmatch(output, -1)
		const ways = 17
		if len(lines) != ways {
			t.Fatalf("%s: %d lines:\n%s", value, len(lines), output)
		}
		for try := 0; value == "all" && try < 10 && !slices.Contains(o.heard(), "race"); try++ {
			// On a busy machine the threads of the race may not have met.
			_, _ = h.run(t, h.Project, "python3", "-c", forms, strconv.Itoa(o.port), ownAddress(t), "race")
		}
		heard := o.heard()
		for _, line := range lines {
			name, said := line[1], line[2]
			switch reached := slices.Contains(heard, name); {
			case value == "all":
				lacking := (name == "mptcp" || strings.Contains(name, "v6") || strings.Contains(name, "mapped")) &&
					slices.Contains([]string{"EPROTONOSUPPORT", "EAFNOSUPPORT", "ENOPROTOOPT", "EADDRNOTAVAIL"}, said)
				if !reached && !lacking {
					t.Errorf("control: %s: %s", name, said)
				}
			case reached || said == "done":
				harness.Breach(t, "with localhost %q a session reaches a service outside by %q: %s", value, name, said)
			case !slices.Contains([]string{"EACCES", "ENOTSUP", "EPROTONOSUPPORT", "EAFNOSUPPORT"}, said):
				t.Errorf("%s: %s: %s", value, name, said)
			}
		}
		step := fmt.Sprintf(`add "localhost:%d" to "allowed_hosts"`, o.port)
		if value == "own" && !strings.Contains(unfolded(output), step) {
			t.Errorf("not told:\n%s", output)
		}
	}
}

func unfolded(text string) string { return strings.Join(strings.Fields(text), " ") }

// server prints its port and answers each connection, until it is killed.
const server = `
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"hello from a session"); c.close()
`

const caller = `
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5); print(s.recv(100).decode())
`

// callers calls many servers, one after the other.
const callers = `
import socket, sys
for port in sys.argv[1:]:
    try: text = socket.create_connection(("127.0.0.1", int(port)), 5).recv(100).decode()
    except OSError as e: text = type(e).__name__
    print("answer of %s: %s" % (port, text), flush=True)
`

// Two terminals of a project, each with a sidecar of its own, reach each other's
// servers. Those of other projects are others'. The user's browser is outside.
func TestLocalhost_ServersOfTheProject(t *testing.T) {
	t.Parallel()
	h := newHere(t, harness.Sandbox{})
	port := h.serve(t, h.Project, "python3", "-c", server)
	if output, err := h.run(t, h.Project, "python3", "-c", caller, strconv.Itoa(port)); err != nil ||
		!strings.Contains(output, "hello from a session") {
		t.Errorf("in the same project: %v\n%s", err, output)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	harness.Must(t, err)
	if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "hello") {
		t.Errorf("from outside: %v %q", err, text)
	}
	conn.Close()
	other := filepath.Join(filepath.Dir(h.Project), "another")
	harness.MakeDir(t, other)
	output, err := h.run(t, other, "python3", "-c", caller, strconv.Itoa(port))
	if err == nil || strings.Contains(output, "hello from a session") {
		harness.Breach(t, "a session reaches a server of another project:\n%s", output)
	}
	// A browser or a database that is started inside is reached inside.
	output, err = h.run(t, h.Project, "bash", "-c", `python3 -c "$1" >port & until [ -s port ]; do sleep 0.02; done
python3 -c "$2" "$(cat port)"; kill $!`, "bash", server, caller)
	if err != nil || !strings.Contains(output, "hello from a session") {
		t.Errorf("in the same session: %v\n%s", err, output)
	}
	// Nobody listens: programs that wait for a server get the usual answer.
	output, _ = h.run(t, h.Project, "python3", "-c", caller, "1")
	if !strings.Contains(output, "ConnectionRefusedError") {
		t.Errorf("nobody listens: %s", output)
	}
}

// A terminal in a directory of a repository reaches the servers of terminals in all
// others of it, and no others. A repository in another is one of its own.
func TestLocalhost_ServersOfTheRepository(t *testing.T) {
	t.Parallel()
	h := newHere(t, harness.Sandbox{})
	dir := filepath.Dir(h.Project)
	for _, path := range []string{
		"repo/.git", "repo/web", "repo/api/v1", "repo/deps/inner/.git", "other/.git", "plain/below",
	} {
		harness.MakeDir(t, filepath.Join(dir, path))
	}
	groups := [][]string{
		{"repo", "repo/web", "repo/api/v1"}, {"repo/deps/inner"}, {"other"}, {"plain"}, {"plain/below"},
	}
	args := []string{"python3", "-c", callers}
	for _, members := range groups {
		port := h.serve(t, filepath.Join(dir, members[len(members)-1]), "python3", "-c", server)
		args = append(args, strconv.Itoa(port))
	}
	ports := args[3:]
	for from, others := range groups {
		for _, member := range others {
			output, err := h.run(t, filepath.Join(dir, member), args...)
			if err != nil {
				t.Errorf("from %s: %v\n%s", member, err, output)
			}
			for of, members := range groups {
				switch reached := strings.Contains(output, "answer of "+ports[of]+": hello"); {
				case reached && of != from:
					harness.Breach(t, "from %s a server of %s is reached", member, members[0])
				case !reached && of == from:
					t.Errorf("from %s the server of %s: %v\n%s", member, members[len(members)-1], err, output)
				}
			}
		}
	}
}

// crowd connects many times at once, as an event loop does, and prints how many
// connections were made.
const crowd = `
import errno, select, socket, sys
port, many = int(sys.argv[1]), int(sys.argv[2])
waiting, made = {}, 0
for _ in range(many):
    s = socket.socket(); s.setblocking(False)
    waiting[s.fileno()] = s
    if s.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS): del waiting[s.fileno()]
while waiting:
    _, ready, _ = select.select([], list(waiting), [], 20)
    if not ready: break
    for fd in ready:
        made += waiting.pop(fd).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
print("made", made)
`

// A server that is busy for a while loses none of many connections at once. One
// that asks for a short queue has it, which is the control.
func TestLocalhost_ManyConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	const busy = `
import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(int(sys.argv[1])); s.listen(int(sys.argv[1]))
print(s.getsockname()[1], flush=True)
time.sleep(1000)
`
	h := newHere(t, harness.Sandbox{})
	for backlog, test := range map[string]struct{ many, most int }{
		"1": {8, 7}, "5": {300, 300}, "100": {300, 300},
	} {
		port := h.serve(t, h.Project, "python3", "-c", busy, backlog)
		output, err := h.run(t, h.Project, "python3", "-c", crowd, strconv.Itoa(port), strconv.Itoa(test.many))
		var made int
		for _, line := range strings.Split(output, "\n") {
			_, _ = fmt.Sscanf(strings.TrimSpace(line), "made %d", &made)
		}
		if err != nil || made > test.most || test.many == test.most && made < test.many || made == 0 {
			t.Errorf("a queue of %s: %d of %d: %v\n%s", backlog, made, test.many, err, output)
		}
	}
}

// An entry of allowed_hosts opens a service of the machine: a database in a
// container, for example. A variable opens a local proxy.
func TestLocalhost_WhatIsNamed(t *testing.T) {
	t.Parallel()
	o := newOutsider(t)
	port := strconv.Itoa(o.port)
	h := newHere(t, harness.Sandbox{"allowed_hosts": []string{"localhost:" + port}})
	output, err := h.run(t, h.Project, "python3", "-c", forms, port, ownAddress(t), "v4", "v4 any", "v6", "own address")
	if got := o.heard(); err != nil || !slices.Contains(got, "v4") || !slices.Contains(got, "v4 any") ||
		!slices.Contains(got, "own address") {
		t.Errorf("named by an entry: %v %v\n%s", got, err, output)
	}
	h = newHere(t, harness.Sandbox{
		"allowed_hosts": []string{"localhost:" + port}, "denied_hosts": []string{"localhost"},
	})
	output, _ = h.run(t, h.Project, "python3", "-c", forms, port, "127.0.0.1", "v4")
	if !strings.Contains(output, "v4: EACCES") {
		t.Errorf("denied: %s", output)
	}
	proxied := newHere(t, harness.Sandbox{})
	proxied.env = append(proxied.env, "https_proxy=http://me:secret@127.0.0.1:"+port)
	if output, _ := proxied.run(t, proxied.Project, "python3", "-c", forms, port, "127.0.0.1", "v4"); !strings.Contains(
		output, "v4: done") {
		t.Errorf("a proxy: %s", output)
	}
}

// held connects to a server of the session whose queue is full, so that the
// kernel would repeat the first packet for two minutes, and frees the port for
// a program outside.
const held = `
import errno, os, signal, socket, sys, time
port, killed = int(sys.argv[1]), sys.argv[3] == "killed"
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", port)); s.listen(0)
crowd = []
for _ in range(4):
    c = socket.socket(); c.setblocking(False)
    try: c.connect(("127.0.0.1", port))
    except OSError as e: print("connect:", errno.errorcode[e.errno], flush=True)
    crowd.append(c)
if killed:
    # The process that connects ends meanwhile, and another one has the socket.
    for c in crowd: c.close()
    crowd, children = [], []
    for _ in range(4):
        c = socket.socket(); child = os.fork()
        if not child:
            c.connect(("127.0.0.1", port)); os._exit(0)
        crowd.append(c); children.append(child)
    time.sleep(0.07)
    for child in children: os.kill(child, signal.SIGKILL)
    for child in children: os.waitpid(child, 0)
    for c in crowd: c.setblocking(False)
s.close()
print("free", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for c in crowd:
        try: c.send(b"order\n")
        except OSError: pass
    time.sleep(0.05)
`

// A connection that a session began at its own server does not wait until
// somebody else listens at the port.
func TestLocalhost_NoConnectionWaitsForAnother(t *testing.T) {
	t.Parallel()
	var ends []func() // all wait at once
	for _, test := range [][2]string{{"own", "waiting"}, {"all", "waiting"}, {"own", "killed"}, {"all", "killed"}} {
		value := test[0]
		h := newHere(t, harness.Sandbox{"localhost": value})
		free, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Must(t, err)
		at := free.Addr().(*net.TCPAddr)
		harness.Must(t, free.Close())
		command := h.command(t, h.Project, "python3", "-c", held, strconv.Itoa(at.Port), "4", test[1])
		out, err := command.StdoutPipe()
		harness.Must(t, err)
		harness.Must(t, command.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "free" {
			t.Log(test, lines.Text())
		}
		var later net.Listener
		harness.Eventually(t, "the port is free", func() bool {
			later, err = net.Listen("tcp", at.String())
			return err == nil
		})
		heard := make(chan bool, 1)
		go func() {
			for {
				conn, err := later.Accept()
				if err != nil {
					heard <- false
					return
				}
				line, _ := bufio.NewReader(conn).ReadString('\n')
				conn.Close()
				if line != "" {
					heard <- true
					return
				}
			}
		}()
		ends = append(ends, func() {
			_ = command.Wait()
			later.Close()
			switch got := <-heard; {
			case value == "own" && got:
				harness.Breach(t, "a connection of a session (%s) reaches who listens later", test[1])
			case value == "all" && !got:
				t.Errorf("control: no connection (%s) reaches who listens later", test[1])
			}
		})
	}
	for _, end := range ends {
		end()
	}
}

// beside listens at a port beside a program outside (SO_REUSEPORT), and connects
// there until the kernel gives a connection to that.
const beside = `
import errno, socket, sys
port = int(sys.argv[1])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("127.0.0.1", port)); s.listen(1000)
for _ in range(100):
    try:
        c = socket.create_connection(("127.0.0.1", port), 5); c.sendall(b"order\n"); print("connected")
    except OSError as e:
        print(errno.errorcode[e.errno]); break
    if sys.argv[2] == "0.0.0.0": s.close()
`

// Who listens beside a program outside owns that no more than before. Nor does
// who listens at one address beside a program at all: it could close its own
// right before the connection.
func TestLocalhost_ListeningBesideIsNotOwning(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{
		{"own", "127.0.0.1"}, {"all", "127.0.0.1"}, {"own", "0.0.0.0"}, {"all", "0.0.0.0"},
	} {
		value, at := test[0], test[1]
		h := newHere(t, harness.Sandbox{"localhost": value})
		config := net.ListenConfig{Control: reusePort}
		listener, err := config.Listen(t.Context(), "tcp4", at+":0")
		harness.Must(t, err)
		o := &outsider{port: listener.Addr().(*net.TCPAddr).Port}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go o.hear(conn)
			}
		}()
		output, err := h.run(t, h.Project, "python3", "-c", beside, strconv.Itoa(o.port), at)
		if err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		if value == "own" && (!strings.Contains(output, "EACCES") || strings.Contains(output, "connected")) {
			t.Errorf("own, %s: %s", at, output)
		}
		if value == "all" {
			harness.Eventually(t, "control: a connection reaches the program outside", func() bool {
				return len(o.heard()) > 0
			})
		} else if heard := o.heard(); len(heard) > 0 {
			harness.Breach(t, "a session reaches a program outside by listening beside it")
		}
		listener.Close()
	}
}

// A session finds no place in which it could claim a listener.
func TestLocalhost_NotesAreOutOfReach(t *testing.T) {
	t.Parallel()
	h := newHere(t, harness.Sandbox{})
	h.env = append(h.env, "XDG_RUNTIME_DIR=", "XDG_STATE_HOME=")
	h.serve(t, h.Project, "python3", "-c", server)
	found := ""
	harness.Must(t, filepath.WalkDir(h.Home, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "listeners" {
			found = path
		}
		return nil
	}))
	if found == "" {
		t.Fatal("no listeners are noted")
	}
	output, err := h.run(t, h.Project, "bash", "-c",
		`touch "$1/x"; find "$1" -type d | while read d; do touch "$d/1"; done`, "bash", found)
	written := 0
	harness.Must(t, filepath.WalkDir(found, func(path string, d os.DirEntry, err error) error {
		if err == nil && (d.Name() == "x" || d.Name() == "1") {
			written++
		}
		return nil
	}))
	if written > 0 {
		harness.Breach(t, "a session notes a listener of its own making: %v\n%s", err, output)
	}
}

// The debugger of a program outside carries out what whoever connects says. One
// that was started in another terminal of the project is the session's own.
func TestLocalhost_NodesDebugger(t *testing.T) {
	t.Parallel()
	h := newHere(t, harness.Sandbox{})
	harness.RequirePrograms(t, "node", "curl")
	const debugged = `process.stdout.write(new URL(require("inspector").url()).port + "\n"); setInterval(() => {}, 1000)`
	ask := func(port int) (string, error) {
		return h.run(t, h.Project, "curl", "-sS", "-m", "10", fmt.Sprintf("http://127.0.0.1:%d/json/list", port))
	}
	inside := h.serve(t, h.Project, "node", "--inspect=127.0.0.1:0", "-e", debugged)
	if output, err := ask(inside); err != nil || !strings.Contains(output, "devtoolsFrontendUrl") {
		t.Errorf("in the same project: %v\n%s", err, output)
	}
	outside := exec.Command("node", "--inspect=127.0.0.1:0", "-e", debugged)
	outside.Env = h.env
	out, err := outside.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, outside.Start())
	t.Cleanup(func() {
		_ = outside.Process.Kill()
		_ = outside.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	harness.Must(t, err)
	port, err := strconv.Atoi(strings.TrimSpace(line))
	harness.Must(t, err)
	if output, err := ask(port); err == nil || strings.Contains(output, "devtoolsFrontendUrl") {
		harness.Breach(t, "a session reaches the debugger of a program outside: %s", output)
	}
	open := newHere(t, harness.Sandbox{"localhost": "all"})
	output, err := open.run(t, open.Project, "curl", "-sS", fmt.Sprintf("http://127.0.0.1:%d/json/list", port))
	if err != nil || !strings.Contains(output, "devtoolsFrontendUrl") {
		t.Errorf("control: %v\n%s", err, output)
	}
}

// A page that a server in another terminal of the project serves opens in a
// browser that Playwright starts inside. Both talk to the browser by localhost.
func TestLocalhost_ABrowserOpensThePageOfAnotherTerminal(t *testing.T) {
	t.Parallel()
	h := newHere(t, harness.Sandbox{})
	harness.RequirePrograms(t, "node", "chromium", "playwright-core")
	port := h.serve(t, h.Project, "node", "-e", `
const server = require("http").createServer((request, response) => {
  response.setHeader("content-type", "text/html");
  response.end("<p id=p></p><script>p.textContent = 'answ' + 'ered'</script>");
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`)
	output, err := h.run(t, h.Project, "node", "-e", `
const { chromium } = require("/usr/local/lib/node_modules/playwright-core");
(async () => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--remote-debugging-port=0"] });
  const page = await browser.newPage();
  await page.goto("http://localhost:" + process.argv[1]);
  console.log(await page.textContent("p"));
  await browser.close();
})();
`, strconv.Itoa(port))
	if err != nil || !strings.Contains(output, "answered") {
		t.Errorf("%v\n%s", err, output)
	}
}

// resolvers has TCP servers at addresses of a machine without a network, and runs
// its arguments.
const resolvers = `
import fcntl, socket, struct, subprocess, sys, threading
with socket.socket() as s:  # ip link set lo up (netdevice(7))
    fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x41))
def serve(address, port):
    s = socket.socket(); s.bind((address, port)); s.listen(16)
    def accept():
        while True: s.accept()[0].close()
    threading.Thread(target=accept, daemon=True).start()
for address, port in ("127.0.0.53", 53), ("127.0.0.7", 53), ("127.0.0.9", 53), ("127.0.0.53", 54): serve(address, port)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
`

// asks connects to each of these servers.
const asks = `
import errno, socket
for at in ("127.0.0.53", 53), ("127.0.0.7", 53), ("127.0.0.9", 53), ("127.0.0.53", 54):
    s = socket.socket()
    try: s.connect(at); answer = "done"
    except OSError as e: answer = errno.errorcode[e.errno]
    print("%s:%d %s" % (*at, answer), flush=True)
`

// Names are looked up by TCP, too, at systemd's stub and at servers of
// /etc/resolv.conf on this machine. Other servers and ports are no resolvers.
func TestLocalhost_TheResolver(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root mounts over /etc")
	}
	for value, want := range map[string]string{
		"own":  "127.0.0.53:53 done\n127.0.0.7:53 done\n127.0.0.9:53 EACCES\n127.0.0.53:54 EACCES\n",
		"none": "127.0.0.53:53 EACCES\n127.0.0.7:53 EACCES\n127.0.0.9:53 EACCES\n127.0.0.53:54 EACCES\n",
		"all":  "127.0.0.53:53 done\n127.0.0.7:53 done\n127.0.0.9:53 done\n127.0.0.53:54 done\n",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			h := newHere(t, harness.Sandbox{"localhost": value})
			file := h.OutsidePath("resolv.conf")
			harness.Write(t, file, "search example\nnameserver 127.0.0.7\n")
			const line = `mount --make-rprivate / && mount --bind "$1" "$(realpath /etc/resolv.conf)" && shift && exec "$@"`
			command := exec.Command("unshare", "-m", "-n", "/bin/sh", "-c", line, "sh", file,
				"/usr/bin/python3", "-c", resolvers, harness.Binary(t), "exec", "--", "/usr/bin/python3", "-c", asks)
			command.Dir, command.Env = h.Project, h.env
			var errs strings.Builder
			command.Stderr = &errs
			output, err := command.Output()
			if err != nil || string(output) != want {
				t.Errorf("%v: %s\nwant %s\n%s", err, output, want, errs.String())
			}
		})
	}
}
