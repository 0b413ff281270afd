//go:build linux

package syscalls

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// ordinary are things that people do all day. The last word that each prints is "fine" where it has worked.
var ordinary = []struct {
	name    string
	program string
	// online is true where it needs the network, if only to talk to itself: then it works without network in a network namespace alone.
	online bool
	script string
}{
	{"bash", "bash", false, `
for i in 1 2 3; do (sleep 0.01; echo $i) & done | sort | tr -d '\n' | grep -q 123
wait; cat <(echo x) >/dev/null; coproc cat; kill $COPROC_PID; ulimit -n >/dev/null
echo fine`},
	{"job control", "script", false, `
script -qec 'bash -ic "sleep 30 & jobs | grep -q sleep && kill %1 && echo jobs"' typescript >/dev/null
grep -q jobs typescript && echo fine`},
	{"git", "git", false, `
git init -q r && cd r && echo a >a && git add a && git -c user.name=x -c user.email=x@y commit -qm a
git worktree add -q ../w -b w && git gc -q && git log --oneline | grep -q a && echo fine`},
	{"python", "python3", false, `
cat >p.py <<'END'
import asyncio, concurrent.futures, multiprocessing, socket, subprocess, threading
def square(x): return x * x
def main():
    threads = [threading.Thread(target=square, args=(i,)) for i in range(20)]
    [t.start() for t in threads]; [t.join() for t in threads]
    with concurrent.futures.ThreadPoolExecutor(4) as pool: assert list(pool.map(square, [3])) == [9]
    for how in ("fork", "spawn"):
        process = multiprocessing.get_context(how).Process(target=square, args=(2,))
        process.start(); process.join(); assert process.exitcode == 0, how
    a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
    assert subprocess.run(["true"]).returncode == 0
    async def run(): return await (await asyncio.create_subprocess_exec("true")).wait()
    assert asyncio.run(run()) == 0
    print("fine")
if __name__ == "__main__": main()
END
python3 p.py`},
	{"python servers", "python3", true, `
python3 -c '
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
assert socket.create_connection(server.getsockname()).recv(5) == b"hello"
assert socket.getaddrinfo("localhost", 80) and socket.if_nameindex()
print("fine")'`},
	{"node", "node", false, `
cat >n.js <<'END'
const fs = require("fs"), cp = require("child_process"), { Worker } = require("worker_threads");
fs.promises.writeFile("f", "x").then(() => fs.promises.readFile("f", "utf8")).then(text => {
  if (text !== "x" || cp.spawnSync("true").status !== 0) throw new Error("failed");
  new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true }).on("message", () => console.log("fine"));
});
END
node n.js`},
	{"node servers", "node", true, `
node -e '
const http = require("http"), os = require("os"); os.networkInterfaces();
const server = http.createServer((_, r) => r.end("ok")).listen(0, "127.0.0.1", () =>
  http.get({ port: server.address().port, host: "127.0.0.1" }, r => { r.resume(); console.log("fine"); server.close(); }));'`},
	// Both trace children of their own; what lies in their memory must be readable.
	{"strace", "strace", false, `
strace -f -o trace cat script >/dev/null && grep -q 'openat(.*"script"' trace && grep -q 'exited with 0' trace && echo fine`},
	{"gdb", "gdb", false, `
gdb -q -batch -nx -ex 'set startup-with-shell off' -ex 'catch syscall exit_group' -ex run -ex 'x/1i $pc' -ex kill /bin/true >log 2>&1
grep -q 'Catchpoint 1 (call to' log && grep -q '^=> 0x' log && echo fine || cat log`},
	{"tmux", "tmux", false, `
tmux -S "$PWD/t" -f /dev/null new-session -d 'echo in >in; sleep 30'
for i in $(seq 200); do [ -s in ] && break; sleep 0.05; done; tmux -S "$PWD/t" kill-server; [ -s in ] && echo fine`},
}

func TestOrdinaryThingsWork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, o := range ordinary {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(filepath.Join("/usr/bin", o.program)); err != nil {
				t.Skipf("%s is not installed", o.program)
			}
			works(t, harness.Off(), o.script)
			works(t, sandboxed(), o.script)
			if !o.online || harness.Namespaces(t) {
				works(t, offline(), o.script)
			}
		})
	}
}

// works runs a script in the project.
func works(t *testing.T, settings, script string) {
	t.Helper()
	s := newScene(t, settings)
	harness.Write(t, filepath.Join(s.World.Project, "script"), "export TMPDIR=$PWD HOME=$PWD\n"+script)
	if output, status := s.Tool("bash -e script"); status != 0 || !strings.HasSuffix(strings.TrimSpace(output), "fine") {
		t.Errorf("status %d under %s:\n%s", status, settings, output)
	}
}

// A Go toolchain makes threads, processes with descriptors of their own, and caches.
func TestGoBuilds(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	script := `
export GOCACHE=$PWD/cache GOPATH=$PWD/path GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 GOTELEMETRY=off
go=` + quote(filepath.Join(root, "bin", "go")) + `
$go version | grep -q '^go version'
mkdir hello && cd hello && $go mod init example.com/hello 2>/dev/null
printf 'package main\nimport ("fmt"; "os/exec")\nfunc main() { if exec.Command("true").Run() == nil { fmt.Println("fine") } }\n' >main.go
$go build -p 2 -o hello . && ./hello`
	works(t, harness.Settings(harness.Sandbox{
		"allow_network": false, "additional_executable_paths": []string{root}, "additional_read_only_paths": []string{root},
	}), script)
}
