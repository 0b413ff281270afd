//go:build linux

package hosts

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	editor "github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Without namespaces a session shares the network of the machine, and the
// sidecar connects its sockets all the same.

// newShared is a scene on a machine without namespaces.
func newShared(t testing.TB) *scene {
	t.Helper()
	harness.Require(t, "network_hosts")
	return newScene(t).under(harness.WithoutNamespaces(t))
}

func TestShared_ClientsReachAllowedHostsAlone(t *testing.T) {
	t.Parallel()
	reachAllowedHostsAlone(t, newShared(t), 1)
}

func TestShared_SaysSo(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	e := s.start(allowed("allowed.example"))
	session, _ := e.Run(protocol.SpawnParams{Kind: protocol.Tool, Cwd: s.Project, Command: "/bin/true"})
	hosts := session.Sandbox.Protections["network_hosts"]
	if hosts.Status != protocol.Enforced || !strings.Contains(hosts.Mechanism, "landlock") ||
		!strings.Contains(hosts.Detail, "no localhost") {
		t.Errorf("the reply says %+v", hosts)
	}
	if network := session.Sandbox.Protections["network"]; !strings.Contains(network.Detail, "TCP") {
		t.Errorf("the reply says %+v", network)
	}
}

// sharedAnswers are what each action of the victim gets.
var sharedAnswers = map[string]string{
	"connect allowed.example:80":                   "connected",
	"connect allowed.example:9":                    "ECONNREFUSED",
	"connect unreachable.example:80":               "EACCES",
	"connect missing.example:80":                   "EHOSTUNREACH",
	"connect evil.example:80":                      "EACCES",
	"connect rebound.example:80":                   "EACCES",
	"connect 93.184.216.34:7":                      "connected",
	"connect 93.184.216.34:80":                     "EACCES",
	"connect '[2606:2800:220:1::7]:80'":            "EACCES",
	"connect 127.0.0.1:80":                         "ECONNREFUSED", // nobody listens in the session
	"connect '[::1]:80'":                           "ECONNREFUSED",
	"connect 198.18.77.77:80":                      "EHOSTUNREACH",
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
	"mptcp allowed.example:80":                     "EPROTONOSUPPORT", // programs use TCP then
	"fast-open allowed.example:80 sendto":          "ENOTSUP",
	"fast-open 93.184.216.34:7 sendmsg":            "ENOTSUP",
	"defer allowed.example:80":                     "hello from 93.184.216.34",
	"defer evil.example:80":                        "EACCES",
	"passed allowed.example:80":                    "hello from 93.184.216.34",
	"datagram allowed.example:443":                 "ECONNREFUSED",
	"hear allowed.example:22":                      "SSH-2.0-world",
	"halves allowed.example:9000":                  "20971520",
	"hear allowed.example:9001":                    "ECONNRESET",
	"ask allowed.example TXT":                      "Success text of allowed.example",
	"ask name.corp.example A":                      "NameError", // as the machine searches there
	"tls allowed.example:443 evil.example":         "ECONNRESET",
	"tls api.allowed.example:443 allowed.example":  "connected",
	"unix .": "hello",
}

// sharedMuch is the same as in TestMuch_AtATime, with which it takes turns.
var sharedMuch = map[string]string{
	"names 20000 allowed.example:7":                   "echo, 0 failed, same address: false",
	"storm allowed.example:81 allowed.example:80 300": "connected",
	"many allowed.example:7 300":                      "connected",
}

func TestShared_AnswersAsTheNetworkDoes(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	settings := allowed(append(usual, "93.184.216.34:7")...)
	settings["limits"] = harness.Sandbox{"connections": 2048}
	e := s.start(settings)
	s.answers(e, inTurn(t, sharedAnswers, ownAnswers, 1))
	if harness.Turn(t, 1, 2) {
		s.answers(e, sharedMuch)
	}
}

// A session that shares the machine's network cannot listen, so it has no
// server to show.
func TestShared_HasNoServersToShow(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	e := s.start(allowed("allowed.example"))
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Terminal, Cwd: s.Project, Command: "cat"})
	_, err := forward(e, session, 8080, 8080)
	var answer *editor.Error
	if !errors.As(err, &answer) || answer.Code != protocol.CodePortNotForwarded ||
		!strings.Contains(answer.Data.Reason, "has no localhost") || !strings.Contains(answer.Data.Hint, "doctor") {
		t.Errorf("%v", err)
	}
	session.Close(0)
}

// Programs that ask DNS servers themselves look at the addresses of their sockets
// and of answers.
func TestShared_DatagramsLookLikeThoseOfADNSServer(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	e := s.start(allowed("allowed.example"))
	const server = " from 127.0.0.53:53"
	s.answers(e, map[string]string{
		"query": "answer" + server + ", answer" + server + ", answer" + server +
			", EAGAIN, EAGAIN, own 127.0.0.1, peer 127.0.0.53:53",
		"query v6": "answer from [::ffff:127.0.0.53]:53, answer from [::ffff:127.0.0.53]:53, " +
			"answer from [::ffff:127.0.0.53]:53, EAGAIN, EAGAIN, own ::ffff:127.0.0.1, peer [::ffff:127.0.0.53]:53",
	})
}

// Other ways to send a packet, or to receive one, are closed. The controls show
// that this machine has them.
func TestShared_NothingElseReachesTheNetwork(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for line, want := range map[string]string{
		"listen": "listening", "bind": "bound", "device": "bound", "short [2606:2800:220:1::7]:80": "connected",
		"scatter 93.184.216.34:9002": "sent", "scatter 127.0.0.1:9002": "sent",
		"hear 93.184.216.34:22": "SSH-2.0-world", "fast-open 93.184.216.34:7 sendto": "connected",
	} {
		if got := s.unconfined(strings.Fields(line)...); got != want {
			t.Errorf("control: %s: %s, want %s", line, got, want)
		}
	}
	if got := s.unconfined("route", "93.184.216.34:80", "93.184.216.1"); got != "sent" && os.Geteuid() == 0 {
		t.Errorf("control: route: %s", got) // newer kernels let nobody else do so
	}
	if got := s.unconfined("kinds"); len(strings.Fields(got)) < 3 {
		t.Errorf("control: kinds: %s", got)
	}
	if visits := s.visits(); !strings.Contains(visits, "datagram sendmmsg") || !strings.Contains(visits, "port 22") {
		t.Errorf("control: visits: %s", visits)
	}
	harness.Write(t, s.dir+"/visits", "")
	harness.Write(t, s.dir+"/asked", "")
	e := s.start(allowed("allowed.example:80"))
	s.answers(e, map[string]string{
		"listen": "EACCES", "bind": "EACCES", "device": "EPERM", "short [2606:2800:220:1::7]:80": "EINVAL",
		"scatter 93.184.216.34:9002":            "sent", // to the resolver, whom it tells nothing
		"scatter 127.0.0.1:9002":                "sent",
		"scatter 127.0.0.53:53":                 "sent",
		"route allowed.example:80 93.184.216.1": "EPERM", "kinds": "1 netlink", "raw": "EACCES",
		"fast-open 93.184.216.34:7 sendto": "ENOTSUP",
	})
	if visits := s.visits(); visits != "" {
		harness.Breach(t, "visits: %s", visits)
	}
	for _, name := range s.asked() {
		if name != "allowed.example" {
			harness.Breach(t, "asked outside about %q", name)
		}
	}
}

// Threads that replace addresses and sockets while the sidecar decides win
// nothing.
func TestShared_RacesReachNoOtherHost(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	e := s.start(allowed("allowed.example:80"))
	if got := s.victim(e, "swap allowed.example:80 93.184.216.34:22 3"); got != "tried: true, listening: false" {
		t.Error(got)
	}
	if visits := s.visits(); strings.Contains(visits, "port 22") {
		harness.Breach(t, "visits: %s", visits)
	}
}

// Programs outside cannot use the relay.
func TestShared_RelayServesTheSessionAlone(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	settings := s.ProjectPath("settings.json")
	harness.Write(t, settings, harness.Defaults(allowed("allowed.example")))
	// In one world: a session, and a program beside it.
	binary := harness.Binary(t)
	script := `"$0" exec --sandbox --settings "$1" --project "$2" -- sh -c '"$0" connect allowed.example:80; echo there >ready;` +
		` exec cat' "$3" <hold & exec 3>hold; until [ -e ready ] || ! kill -0 $!; do sleep 0.05; done; ` +
		`"$3" knock 80; exec 3>&-; wait`
	harness.Must(t, exec.Command("mkfifo", s.ProjectPath("hold")).Run())
	command := exec.Command("/bin/sh", "-c", script, binary, settings, s.Project, s.Victim)
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	s.Wrap(command)
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "connected") ||
		!strings.Contains(string(output), "1 tried, 0 answers") {
		t.Errorf("%v: %s", err, output)
	}
}

// Where nobody can answer the session's calls, it reaches nothing, and says so.
func TestHosts_AreOffWithoutASupervisor(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	s := newScene(t).under(harness.InContainer(t))
	e := s.Start(harness.Defaults(allowed("allowed.example", "localhost:80")))
	session, _ := e.Run(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project,
		Command: s.Victim + " connect 93.184.216.34:80; " + s.Victim + " connect 127.0.0.1:80",
	})
	hosts := session.Sandbox.Protections["network_hosts"]
	if hosts.Status != protocol.Absent || !strings.HasPrefix(hosts.Detail, "no host can be reached") {
		t.Errorf("the reply says %+v", hosts)
	}
	warnings := strings.Join(session.Sandbox.Warnings, "\n")
	if !strings.Contains(warnings, "allowed_hosts has no effect") {
		t.Errorf("the warnings: %s", warnings)
	}
	if strings.Contains(session.Output(), "connected") || s.visits() != "" {
		harness.Breach(t, "reached a host: %s", session.Output())
	}
	file := s.ProjectPath("settings.json")
	harness.Write(t, file, harness.Defaults(allowed("allowed.example")))
	const gap = "this machine cannot tell hosts apart, so sessions have no network: "
	for _, line := range []string{"policy", "exec -- true"} {
		for _, filtered := range []bool{true, false} {
			args := strings.Fields(line)
			command := exec.Command(harness.Binary(t), append(
				[]string{args[0], "--settings", file, "--project", s.Project}, args[1:]...)...)
			command.Dir, command.Env = s.Project, harness.Environ(s.World)
			if filtered {
				harness.InContainer(t)(command)
			}
			output, err := command.CombinedOutput()
			said := strings.Contains(strings.Join(strings.Fields(string(output)), " "), gap)
			if err != nil || said != filtered {
				t.Errorf("%s, in a container: %v: %v: %s", line, filtered, err, output)
			}
		}
	}
}
