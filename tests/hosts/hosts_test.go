//go:build linux

package hosts

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// clients are programs that get the URL that %s stands for.
var clients = map[string]string{
	"curl":    `curl -sS -m 60 %s`,
	"python3": `python3 -c 'import urllib.request as u; print(u.urlopen("%s").read().decode())'`,
	"node":    `node -e 'fetch("%s").then(r=>r.text()).then(t=>console.log(t)).catch(e=>console.log("failed", e.cause))'`,
	"perl": `perl -MIO::Socket::INET -e '$_="%s"; m{//([^/]+)}; $s=IO::Socket::INET->new("$1:80") or die "failed $!";` +
		` print $s "GET / HTTP/1.0\r\nHost: $1\r\n\r\n"; print <$s>'`,
	"java": `java Get.java %s`,
	"git":  `git ls-remote %s/x`,
	"ruby": `ruby -rnet/http -e 'puts Net::HTTP.get(URI("%s"))'`,
	"php":  `php -r 'echo file_get_contents("%s");'`,
	"wget": `wget -q -t 1 -O - -T 60 %s`,
}

const javaClient = `
import java.net.*; import java.net.http.*;
public class Get { public static void main(String[] a) throws Exception {
  var r = HttpRequest.newBuilder(URI.create(a[0])).build();
  System.out.println(HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body());
} }
`

// Every client that is there reaches the allowed host, without a variable, and
// no other host.
func TestClients_ReachAllowedHostsAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	harness.Write(t, s.ProjectPath("Get.java"), javaClient)
	e := s.start(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"allowed.example"}, "toolchains": []string{
			"java", "node",
			"python",
		},
	})
	tried := 0
	for name, line := range clients {
		if _, err := exec.LookPath("/usr/bin/" + name); err != nil {
			continue
		}
		tried++
		before := s.visits()
		output := s.run(e, strings.ReplaceAll(line, "%s", "http://allowed.example"))
		if !strings.Contains(output, "hello from 93.184.216.34") && (name != "git" || s.visits() == before) {
			t.Errorf("%s: %s", name, output)
		}
		before = s.visits()
		if output := s.run(e, strings.ReplaceAll(line, "%s", "http://evil.example")); s.visits() != before {
			t.Errorf("%s reached a host that is not allowed: %s", name, output)
		}
	}
	if tried == 0 {
		t.Error("no client is there")
	}
	if names := s.asked(); !slices.Equal(names, []string{"allowed.example"}) {
		t.Errorf("asked outside about %q", names)
	}
}

func TestTLS_IsUntouched(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "curl")
	s := newScene(t)
	e := s.start(allowed(usual...))
	for _, name := range []string{"allowed.example", "api.allowed.example"} {
		if output := s.run(e, "curl -sS -m 60 --cacert world/ca.pem https://"+name); output != "hello from tls" {
			t.Errorf("%s: %s", name, output)
		}
	}
	if output := s.run(e, "curl -sS -m 60 http://api.allowed.example"); !strings.Contains(output, "Failed to connect") {
		t.Errorf("another port: %s", output)
	}
}

// answers are what each action of the victim gets.
func TestConnect_AnswersAsTheNetworkDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed(append(usual, "93.184.216.34:7")...))
	for line, want := range map[string]string{
		"connect allowed.example:80":                   "connected",
		"connect allowed.example:9":                    "ECONNREFUSED",
		"connect unreachable.example:80":               "EACCES", // a special address
		"connect missing.example:80":                   "EHOSTUNREACH",
		"connect evil.example:80":                      "EACCES",
		"connect 93.184.216.34:7":                      "connected",
		"connect 93.184.216.34:80":                     "EACCES",
		"connect '[2606:2800:220:1::7]:80'":            "EACCES",
		"connect 127.0.0.1:80":                         "ECONNREFUSED", // the session's own
		"connect '[::1]:80'":                           "ECONNREFUSED",
		"connect 198.18.77.77:80":                      "EHOSTUNREACH", // no name has it
		"connect host.sandbox.internal:80":             "EACCES",
		"poll allowed.example:80":                      "EINPROGRESS connected",
		"poll allowed.example:9":                       "ECONNREFUSED",
		"poll evil.example:80":                         "EACCES",
		"poll silent.example:80":                       "EINPROGRESS connected",
		"interrupted allowed.example:81":               "EINTR EISCONN",
		"again allowed.example:80":                     "EISCONN",
		"unspec allowed.example:80 evil.example:80":    "EACCES",
		"unspec allowed.example:22 allowed.example:80": "connected",
		"v6 allowed.example:80":                        "hello from 93.184.216.34",
		"v6 evil.example:80":                           "EACCES",
		"v6only '[2606:2800:220:1::7]:80'":             "EACCES",
		"mptcp allowed.example:80":                     "hello from 93.184.216.34",
		"mptcp evil.example:80":                        "EACCES",
		"fast-open allowed.example:80 sendto":          "ECONNREFUSED", // the program connects then
		"fast-open evil.example:80 sendmsg":            "ECONNREFUSED",
		"fast-open 93.184.216.34:7 sendto":             "ENETUNREACH",
		"defer allowed.example:80":                     "hello from 93.184.216.34",
		"defer evil.example:80":                        "EACCES",
		"passed allowed.example:80":                    "hello from 93.184.216.34",
		"datagram allowed.example:443":                 "ECONNREFUSED", // QUIC falls back to TCP
		"datagram 93.184.216.34:53":                    "ENETUNREACH",
		"hear allowed.example:22":                      "SSH-2.0-world",
		"halves allowed.example:9000":                  "20971520",
		"hear allowed.example:9001":                    "ECONNRESET",
		"peer allowed.example:80":                      "true",
		"relay":                                        "1 tried, 0 answers",
	} {
		if got := s.victim(e, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// A name whose owner leads it to this machine or its network reaches nothing.
func TestNames_MustNotLeadIntoPrivateNetworks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed(usual...))
	denials := harness.RecordDenials(e)
	for name, leads := range map[string]string{
		"rebound.example": "127.0.0.1:80", "metadata.example": "169.254.169.254:80", "private.example": "10.9.8.7:80",
		"here.example": "93.184.216.1:80",
	} {
		if got := s.victim(e, "connect", name+":80"); got != "EACCES" {
			t.Errorf("%s: %s", name, got)
		}
		awaitDenial(t, denials, leads)
	}
	if visits := s.visits(); visits != "" {
		t.Errorf("visited: %s", visits)
	}
}

func TestPrivateNetworks_CanBeAllowedByTheirAddresses(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("private.example", "10.9.0.0/16:80", "localhost:80", "[2606:2800::/32]:80", "six.example",
		"93.184.216.1", "here.example"))
	for line, want := range map[string]string{
		"v6 private.example:80": "hello from 10.9.8.7", "v6 10.9.8.7:80": "hello from 10.9.8.7",
		"connect 10.9.8.7:81": "EACCES", "v6 host.sandbox.internal:80": "hello from 127.0.0.1",
		"connect host.sandbox.internal:81": "EACCES", "v6 six.example:80": "hello from 2606:2800:220:1::7",
		"v6only '[2606:2800:220:1::7]:80'": "connected", "v6 here.example:80": "hello from 93.184.216.1",
	} {
		if got := s.victim(e, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestTLS_MayAskForAllowedServersAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed(usual...))
	denials := harness.RecordDenials(e)
	for line, want := range map[string]string{
		"tls allowed.example:443 allowed.example":           "connected",
		"tls allowed.example:443 api.allowed.example":       "connected",
		"tls allowed.example:443 allowed.example long":      "connected",
		"tls allowed.example:443 ''":                        "connected", // the host's own choice
		"tls allowed.example:443 evil.example":              "ECONNRESET",
		"tls api.allowed.example:443 evil.example":          "ECONNRESET",
		"tls allowed.example:443 evil.allowed.example.evil": "ECONNRESET",
	} {
		if got := s.victim(e, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	denial := awaitDenial(t, denials, "evil.example:443")
	if program(denial) != "victim" {
		t.Errorf("the report names the program %q", program(denial))
	}
}

// A toolchain brings its registries, and no list of hosts is needed for them.
func TestToolchains_BringTheirRegistries(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, test := range []struct {
		settings harness.Sandbox
		want     string
	}{
		{harness.Sandbox{"toolchains": []string{"node"}}, "connected"},
		{harness.Sandbox{"toolchains": []string{"node"}, "denied_hosts": []string{"registry.npmjs.org"}}, "EACCES"},
		{harness.Sandbox{"toolchains": []string{"go"}}, "EACCES"},
	} {
		test.settings["allow_network"] = false
		e := s.start(test.settings)
		if got := s.victim(e, "connect registry.npmjs.org:443"); got != test.want {
			t.Errorf("%v: %s, want %s", test.settings, got, test.want)
		}
		if got := s.victim(e, "connect registry.npmjs.org:80"); got != "EACCES" {
			t.Errorf("%v: another port: %s", test.settings, got)
		}
	}
}

func TestResolver_AsksNobodyAboutNames(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example", "intranet"))
	for line, want := range map[string]string{
		"ask allowed.example AAAA": "Success", "ask allowed.example HTTPS": "Success",
		"ask secret.data.evil.example AAAA": "Success", "ask nodot A": "NameError",
		"ask secret.data.evil.example TXT": "Refused", "ask evil.example MX": "Refused",
		"ask allowed.example TXT": "Success text of allowed.example", "ask allowed.example MX": "Success mail.example.",
		"ask localhost A": "Success 127.0.0.1", "ask app.localhost AAAA": "Success ::1", "ask 1.2.3.4 A": "NameError",
		"ask 1.0.0.127.in-addr.arpa PTR": "Success localhost.", "ask 8.8.8.8.in-addr.arpa PTR": "NameError",
		"ask sub.allowed.example TXT": "Refused",
	} {
		if got := s.victim(e, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if got := s.victim(e, "ask evil.example A"); !strings.HasPrefix(got, "Success 198.1") {
		t.Errorf("a name's address: %s", got)
	}
	if got := s.victim(e, "v6 intranet:80"); got != "EHOSTUNREACH" && got != "hello from 93.184.216.34" {
		t.Errorf("a name without a dot: %s", got)
	}
	for _, name := range s.asked() {
		if name != "allowed.example" && !strings.HasPrefix(name, "intranet") {
			t.Errorf("asked outside about %q", name)
		}
	}
}

func TestResolver_ForgetsNamesThatNobodyUses(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example"))
	if got := s.victim(e, "names 20000 allowed.example:7"); got != "echo, 0 failed, same address: true" {
		t.Error(got)
	}
}

func TestConnect_ToAHostThatIsSilentHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example"))
	if got := s.victim(e, "storm allowed.example:81 allowed.example:80 300"); got != "connected" {
		t.Error(got)
	}
}

func TestConnections_MayBeMany(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example"))
	if got := s.victim(e, "many allowed.example:7 300"); got != "connected" {
		t.Error(got)
	}
}

func TestDenials_NameTheHostAndTheSetting(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"allowed.example", "*.evil.example"},
		"denied_hosts": []string{"very.evil.example"},
	})
	denials := harness.RecordDenials(e)
	for _, target := range []string{"evil.example:80", "host.sandbox.internal:80", "very.evil.example:80"} {
		if got := s.victim(e, "connect", target); got != "EACCES" {
			t.Errorf("%s: %s", target, got)
		}
	}
	for target, value := range map[string]string{
		"evil.example:80": "evil.example:80", "host.sandbox.internal:80": "localhost:80", "very.evil.example:80": "",
	} {
		denial := awaitDenial(t, denials, target)
		setting, suggested := "", ""
		if denial.Suggestion != nil {
			setting, suggested = denial.Suggestion.Setting, strings.Trim(string(denial.Suggestion.Value), `"`)
		}
		if program(denial) != "victim" || suggested != value || value != "" && setting != "allowed_hosts" {
			t.Errorf("%s: %+v, suggested %q %q", target, denial, setting, suggested)
		}
	}
}

func TestLearn_PrintsTheHostsThatACommandNeeds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	harness.Require(t, "network_hosts")
	file := s.ProjectPath("settings.json")
	harness.Write(t, file, harness.Defaults(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"allowed.example"}, "denied_hosts": []string{"*.example.net"},
	}))
	command := exec.Command(harness.Binary(t), "learn", "--project", s.Project, "--settings", file, "--",
		s.Victim, "connect", "evil.example:443")
	command.Env, command.Dir = harness.Environ(s.World), s.Project
	s.Wrap(command)
	output, err := command.Output()
	if err != nil {
		t.Logf("learn: %v", err) // its status is the command's
	}
	var printed struct {
		Terminal struct{ Sandbox map[string]any }
	}
	_, text, _ := strings.Cut(string(output), "{")
	if err := json.Unmarshal([]byte("{"+text), &printed); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	got := fmt.Sprint(printed.Terminal.Sandbox["allowed_hosts"], printed.Terminal.Sandbox["denied_hosts"],
		printed.Terminal.Sandbox["allow_network"])
	if got != "[allowed.example evil.example:443] [*.example.net] false" {
		t.Errorf("%s: %s", got, output)
	}
}

// A machine without namespaces or without a supervisor reaches nothing, and the
// reply says so.
func TestHosts_AreOffWithoutNamespaces(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	inWorld, without := s.Wrap, harness.WithoutNamespaces(t)
	s.Wrap = func(command *exec.Cmd) {
		without(command)
		inWorld(command)
	}
	e := s.Start(harness.Defaults(allowed("allowed.example", "localhost:80")))
	session, _ := e.Run(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project,
		Command: s.Victim + " connect 93.184.216.34:80; " + s.Victim + " connect 127.0.0.1:80",
	})
	if hosts := session.Sandbox.Protections["network_hosts"]; hosts.Status != protocol.Absent {
		t.Errorf("the reply says %+v", hosts)
	}
	if strings.Contains(session.Output(), "connected") || s.visits() != "" {
		t.Errorf("reached a host: %s", session.Output())
	}
}

// Each session has a resolver and a relay of its own.
func TestSessions_DoNotShareHosts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"allowed.example"},
		"tool": harness.Sandbox{"allowed_hosts": []string{"api.allowed.example"}},
	})
	terminal := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.Project,
		Command: s.Victim + " connect allowed.example:80; " + s.Victim + " connect api.allowed.example:80; exec cat",
	})
	terminal.Await(`connected\s+EACCES`)
	if got := s.victim(e, "connect allowed.example:80"); got != "EACCES" {
		t.Errorf("the tool reaches the terminal's host: %s", got)
	}
	if got := s.victim(e, "connect api.allowed.example:80"); got != "connected" {
		t.Errorf("the tool: %s", got)
	}
}
