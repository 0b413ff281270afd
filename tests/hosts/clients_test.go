//go:build linux

package hosts

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// clientProgram is a program that connects to the host that %h stands for.
type clientProgram struct {
	needs []string
	line  string
	want  string // "" is an answer of the web server
}

const sshCommand = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes -o " +
	"UserKnownHostsFile=$PWD/world/known_hosts"

var clients = map[string]clientProgram{
	"curl": {needs: []string{"curl"}, line: `curl -sS -m 60 http://%h`},
	"python": {needs: []string{"python3"}, line: `/usr/bin/python3 -c 'import urllib.request as u; ` +
		`print(u.urlopen("http://%h").read().decode())'`},
	"node, fetch": {needs: []string{"node"}, line: `node -e 'fetch("http://%h").then(r => r.text()).then(console.log)` +
		`.catch(e => console.log("failed", e.cause))'`},
	"bun, fetch": {needs: []string{"bun"}, line: `bun -e 'console.log(await (await fetch("http://%h")).text())'`},
	"deno, WebSocket": {needs: []string{"deno"}, line: `deno eval 'const s = new WebSocket("ws://%h/echo");
		s.onopen = () => s.send("over a WebSocket"); s.onmessage = (m) => { console.log(m.data); s.close(); };
		s.onerror = (e) => { console.log("failed", e.message); s.close(); };'`, want: "over a WebSocket"},
	// What gRPC needs: HTTP/2 by TLS, both sides at once, and a trailer.
	"node, HTTP/2": {
		needs: []string{"node"}, line: `node -e 'const h = require("http2");
		const c = h.connect("https://%h", {ca: require("fs").readFileSync("world/ca.pem")});
		c.on("error", (e) => console.log("failed", e.code));
		const r = c.request({":method": "POST", ":path": "/stream", "content-type": "application/grpc", te: "trailers"});
		r.on("error", () => {}); let n = 0; r.setEncoding("utf8");
		r.on("response", () => r.write("call 0\n"));
		r.on("data", (d) => { console.log(d.trim()); if (++n < 3) r.write("call " + n + "\n"); else r.end(); });
		r.on("trailers", (t) => console.log("status", t["grpc-status"])); r.on("close", () => c.close());'`,
		want: "call 0 from tls\ncall 1 from tls\ncall 2 from tls\nstatus 0",
	},
	"git over HTTPS": {
		needs: []string{"git"}, line: `git -c http.sslCAInfo=$PWD/world/ca.pem ls-remote https://%h/x`,
		want: "info/refs not valid",
	},
	"openssl": {needs: []string{"openssl"}, line: `sh -c "printf 'GET / HTTP/1.0\r\nHost: %h\r\n\r\n' | ` +
		`openssl s_client -quiet -CAfile world/ca.pem -verify_return_error -connect %h:443"`, want: "hello from tls"},
	"gnutls-cli": {needs: []string{"gnutls-cli"}, line: `sh -c "printf 'GET / HTTP/1.0\r\nHost: %h\r\n\r\n' | ` +
		`gnutls-cli --priority NORMAL:%SSL3_RECORD_VERSION --x509cafile world/ca.pem %h"`, want: "hello from tls"},
	"perl": {
		needs: []string{"perl"},
		line: `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("%h:80") or die $!; ` +
			`print $s "GET / HTTP/1.0\r\nHost: %h\r\n\r\n"; print <$s>'`,
	},
	"java, NIO":      {needs: []string{"java"}, line: `java Get.java http://%h`},
	"ruby":           {needs: []string{"ruby"}, line: `ruby -rnet/http -e 'puts Net::HTTP.get(URI("http://%h"))'`},
	"php":            {needs: []string{"php"}, line: `php -r 'echo file_get_contents("http://%h");'`},
	"wget":           {needs: []string{"wget"}, line: `wget -q -t 1 -O - -T 60 http://%h`},
	"busybox wget":   {needs: []string{"busybox"}, line: `busybox wget -q -O - http://%h`},
	"Go without cgo": {line: `./victim v6 %h:80`},
	"musl, static":   {needs: []string{"musl-gcc"}, line: `./static %h`},
	"ssh":            {needs: []string{"ssh"}, line: sshCommand + ` -p 2222 %h 'echo over ssh'`, want: "over ssh"},
	"git over HTTP": {
		needs: []string{"git"}, line: `git ls-remote http://%h/x`,
		want: "info/refs not valid",
	},
	"git over ssh": {needs: []string{"git", "ssh"}, line: `GIT_SSH_COMMAND="` + sshCommand + `" sh -c '` +
		`git clone -q ssh://%h:2222$PWD/world/repository clone && cat clone/file'`, want: "from the repository"},
	"Chromium": {needs: []string{"chromium"}, line: `chromium --headless --no-sandbox --disable-gpu ` +
		`--disable-dev-shm-usage --user-data-dir=$PWD/profile --dump-dom http://%h`},
}

const javaClient = `
import java.net.*; import java.net.http.*;
public class Get { public static void main(String[] a) throws Exception {
  var r = HttpRequest.newBuilder(URI.create(a[0])).build();
  System.out.println(HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body());
} }
`

const staticClient = `
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
  struct addrinfo *a, hints = {.ai_socktype = SOCK_STREAM};
  char answer[4096]; ssize_t n;
  int s;
  if (getaddrinfo(argv[1], "80", &hints, &a) != 0) return puts("no such name");
  s = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
  if (connect(s, a->ai_addr, a->ai_addrlen) != 0) { perror("connect"); return 1; }
  dprintf(s, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
  while ((n = read(s, answer, sizeof answer)) > 0) write(1, answer, n);
  return 0;
}
`

// Every client reaches the allowed host with an empty environment, and no other
// host. Clients take turns with TestShared_ClientsReachAllowedHostsAlone.
func TestClients_ReachAllowedHostsAlone(t *testing.T) {
	t.Parallel()
	reachAllowedHostsAlone(t, newScene(t), 0)
}

// reachAllowedHostsAlone has the clients connect whose turn it is, on a machine
// with a number.
func reachAllowedHostsAlone(t *testing.T, s *scene, machine int) {
	t.Helper()
	harness.Write(t, s.ProjectPath("Get.java"), javaClient)
	harness.Write(t, s.ProjectPath("static.c"), staticClient)
	s.CopyVictim(s.ProjectPath("victim"))
	s.outside(t, "git init -q world/repository && cd world/repository && echo from the repository >file && git "+
		"add file && git -c user.name=x -c user.email=x@example.org commit -qm first")
	if _, err := exec.LookPath("musl-gcc"); err == nil {
		s.outside(t, "musl-gcc -static -o static static.c")
	}
	e := s.start(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"allowed.example"}, "toolchains": []string{
			"java", "node", "python",
		},
	})
	for i, name := range slices.Sorted(maps.Keys(clients)) {
		if !harness.Turn(t, i+machine, 2) {
			continue
		}
		client := clients[name]
		t.Run(name, func(t *testing.T) {
			harness.RequirePrograms(t, client.needs...)
			want, before := client.want, s.visits()
			if want == "" {
				want = "hello from 93.184.216.34"
			}
			output := s.run(e, "sh -c "+harness.Quote(strings.ReplaceAll(client.line, "%h", "allowed.example")))
			if !strings.Contains(output, want) || s.visits() == before {
				t.Errorf("the allowed host: %s", output)
			}
			before = s.visits()
			output = s.run(e, "sh -c "+harness.Quote(strings.ReplaceAll(client.line, "%h", "evil.example")))
			if s.visits() != before {
				harness.Breach(t, "reached a host that is not allowed: %s", output)
			}
		})
	}
	if names := s.asked(); !slices.Equal(names, []string{"allowed.example"}) {
		harness.Breach(t, "asked outside about %q", names)
	}
}

// outside runs a command line in the project, without a sandbox.
func (s *scene) outside(t *testing.T, line string) {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", line)
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, output)
	}
}
