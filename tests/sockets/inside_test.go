//go:build linux

package sockets

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// inside are programs that talk among themselves over Unix sockets. Each prints
// "fine" last if it has worked. TEMP is a directory with a short name.
var inside = map[string]struct {
	program string
	script  string
}{
	"python": {"python3", `
cat >p.py <<'END'
import asyncio, multiprocessing, multiprocessing.connection, multiprocessing.managers
import os, socket, socketserver, threading
def serve(address, ready):
    with multiprocessing.connection.Listener(address) as listener:
        ready.set()
        with listener.accept() as conn: conn.send(conn.recv() * 2)
def main():
    for address in ("TEMP/mp", "\0sidecar-test-TEMP"):
        ready = multiprocessing.Event()
        process = multiprocessing.Process(target=serve, args=(address, ready)); process.start(); ready.wait()
        with multiprocessing.connection.Client(address) as conn: conn.send(21); assert conn.recv() == 42
        process.join()
    with multiprocessing.managers.SyncManager(address="TEMP/manager") as manager:
        shared = manager.dict(); shared["a"] = 1; assert dict(shared) == {"a": 1}
    async def run():
        server = await asyncio.start_unix_server(lambda r, w: (w.write(b"hello"), w.close()), "TEMP/asyncio")
        reader, _ = await asyncio.open_unix_connection("TEMP/asyncio"); assert await reader.read() == b"hello"
        server.close()
    asyncio.run(run())
    handler = type("H", (socketserver.BaseRequestHandler,), {"handle": lambda self: self.request.send(b"x")})
    server = socketserver.ThreadingUnixStreamServer("TEMP/many", handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    def client():
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as s: s.connect("TEMP/many"); assert s.recv(1) == b"x"
    threads = [threading.Thread(target=client) for _ in range(20)]
    [t.start() for t in threads]; [t.join() for t in threads]
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("TEMP/stale")
    try: socket.socket(socket.AF_UNIX).connect("TEMP/stale"); raise SystemExit("stale")
    except ConnectionRefusedError: pass
    if os.fork() == 0:  # a daemon whose parent has gone
        os.setsid()
        if os.fork() == 0:
            with socket.socket(socket.AF_UNIX) as s: s.connect("TEMP/many"); open("daemon", "wb").write(s.recv(1))
        os._exit(0)
    os.wait()
    for _ in range(1000):
        if os.path.exists("daemon") and os.path.getsize("daemon"): break
        threading.Event().wait(0.01)
    else: raise SystemExit("the daemon could not connect")
    print("fine")
if __name__ == "__main__": main()
END
python3 p.py`},
	"a signal ends a wait": {"python3", `
python3 -c '
import signal, socket
class Alarm(Exception): pass
def ring(*_): raise Alarm
server = socket.socket(socket.AF_UNIX); server.bind("TEMP/busy"); server.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect("TEMP/busy")
signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.2)
try: socket.socket(socket.AF_UNIX).connect("TEMP/busy"); print("not busy")
except Alarm: print("fine")'`},
	"signals all the time": {"python3", `
python3 -c '
import signal, socket
count = 0
def ring(*_):
    global count; count += 1
# Most programs want calls to begin anew; Python has to be told.
signal.signal(signal.SIGALRM, ring); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
server = socket.socket(socket.AF_UNIX); server.bind("TEMP/s"); server.listen(8)
while count < 10:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("TEMP/s"); server.accept()[0].close()
signal.setitimer(signal.ITIMER_REAL, 0)
print("fine" if count else "no signals")'`},
	"node": {"node", `
cat >n.js <<'END'
const net = require("net"), cp = require("child_process");
if (process.send) { process.on("message", m => { process.send(m + 1); process.disconnect(); }); return; }
const server = net.createServer(c => c.end("hello")).listen("TEMP/node", () =>
  net.connect("TEMP/node").on("data", d => {
    if (d.toString() !== "hello") throw new Error("data"); server.close();
    const child = cp.fork(__filename); child.send(1); child.on("message", m => { if (m === 2) console.log("fine"); });
  }));
END
node n.js`},
	"gpg": {"gpg", `
export GNUPGHOME=TEMP/gnupg; mkdir -m 700 $GNUPGHOME
gpg --batch --quiet --passphrase '' --quick-gen-key tester@example.com ed25519 sign 1d
echo text | gpg --batch --quiet --clearsign >signed && gpg --batch --quiet --verify signed &&
gpgconf --kill gpg-agent && echo fine`},
	"ssh-agent": {"ssh-agent", `
eval $(ssh-agent -a TEMP/agent) >/dev/null; ssh-keygen -q -t ed25519 -N '' -f key; ssh-add -q key
ssh-add -l | grep -q ED25519 && ssh-agent -k >/dev/null && echo fine`},
	"tmux": {"tmux", `
tmux -S TEMP/t -f /dev/null new-session -d 'echo in >in; sleep 30'
for i in $(seq 200); do [ -s in ] && break; sleep 0.05; done; tmux -S TEMP/t kill-server; [ -s in ] && echo fine`},
	"go": {"true", `VICTIM flip TEMP/in TEMP/nowhere | grep -q 'inside [1-9]' && echo fine`},
}

// closed are those whose server cannot be inspected by its own user
// (PR_SET_DUMPABLE, prctl(2)). Only root, or the owner of its user namespace,
// can then tell that a socket is the session's own.
var closed = map[string]bool{"gpg": true, "ssh-agent": true}

func TestProcessesOfASessionReachEachOther(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, name := range slices.Sorted(maps.Keys(inside)) {
			if name == "tmux" && !machine.Namespaces {
				continue // without a /dev/pts of its own a session opens no terminals (see tests/ordinary)
			}
			if name != "tmux" && !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			thing := inside[name]
			t.Run(machine.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				need(t, thing.program)
				for _, settings := range []harness.Sandbox{nil, defaults(), private(), offline()} {
					s := newScene(t, machine)
					script := "set -e\nexport HOME=$PWD\nmkdir -p TEMP\n" + thing.script
					harness.Write(t, s.Project+"/script", fill(script, "TEMP", s.temp, "VICTIM",
						harness.Quote(s.Victim)))
					e := s.start(settings)
					output, status := e.Tool("bash script")
					fine := status == 0 && strings.HasSuffix(strings.TrimSpace(output), "fine")
					mediated := strings.Contains(e.Hello.Capabilities.Enforcement["unix_sockets"].Mechanism,
						"seccomp") &&
						settings != nil
					hidden := mediated && closed[name] && !machine.Namespaces && os.Geteuid() != 0
					if fine == hidden {
						t.Errorf("sandbox %v: status %d, expected to work: %t\n%s", settings, status, !hidden, output)
					}
				}
			})
		}
	}
}
