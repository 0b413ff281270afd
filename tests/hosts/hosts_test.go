//go:build linux

package hosts

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

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
		harness.Breach(t, "another port: %s", output)
	}
}

// ownAnswers are what each action of the victim gets.
var ownAnswers = map[string]string{
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
	"connect ALLOWED.Example.:80":                  "connected",
	"connect evil.EXAMPLE.:80":                     "EACCES",
	"connect xn--bcher-kva.example:80":             "connected", // bücher.example
	"shared slow.example:80":                       "hello from 93.184.216.34",
	"upgrade allowed.example:25":                   "hello from tls", // STARTTLS
	// A name server that is down, or answers nonsense.
	"connect silent.example:80":  "ETIMEDOUT",
	"connect broken.example:80":  "EHOSTUNREACH",
	"connect garbage.example:80": "EHOSTUNREACH",
}

func TestConnect_AnswersAsTheNetworkDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed(append(usual, "93.184.216.34:7", "BÜCHER.example", "slow.example", "broken.example",
		"garbage.example")...))
	s.answers(e, inTurn(t, ownAnswers, sharedAnswers, 0))
}

// inTurn are the lines of a machine's table that have their turn. A line that is in
// the other machine's table, too, is tried on one of both.
func inTurn(t *testing.T, table, other map[string]string, machine int) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for line, want := range table {
		first := int(crc32.ChecksumIEEE([]byte(line)) % 2)
		if _, both := other[line]; !both || harness.Turn(t, first+machine, 2) {
			lines[line] = want
		}
	}
	return lines
}

// A name whose owner leads it to this machine or its network reaches nothing.
func TestNames_MustNotLeadIntoPrivateNetworks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed(usual...))
	denials := harness.RecordDenials(e)
	for name, leads := range map[string]string{
		"rebound.example": "127.0.0.1:80", "metadata.example": "169.254.169.254:80", "private.example": "10.9.8.7:80",
		"here.example": "93.184.216.1:80", "routed.example": "203.0.113.7:80",
	} {
		if got := s.unconfined("connect", name+":80"); got != "connected" {
			t.Errorf("control: %s: %s", name, got)
		}

		if got := s.victim(e, "connect", name+":80"); got != "EACCES" {
			t.Errorf("%s: %s", name, got)
		}
		awaitDenial(t, denials, leads)
	}
	if visits := s.visits(); visits != "" {
		harness.Breach(t, "visited: %s", visits)
	}
}

// A name may lead elsewhere the next time that somebody asks for it.
func TestNames_AreCheckedAtEachConnection(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("flip.example"))
	for _, want := range []string{"connected", "EACCES", "EACCES"} {
		if got := s.victim(e, "connect flip.example:80"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What /etc/hosts of the machine says counts outside, where the sidecar looks up
// names. Sessions see its names for the loopback interface alone.
func TestNames_OfTheHostsFile(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("listed.example", "public.example", "localhost:80"))
	denials := harness.RecordDenials(e)
	s.answers(e, map[string]string{
		"v6 public.example:80": "hello from 93.184.216.34", "connect local.example:80": "ECONNREFUSED",
		"connect listed.example:80": "EACCES",
	})
	awaitDenial(t, denials, "10.9.8.7:80")
	if text := s.run(e, "cat /etc/hosts"); !strings.Contains(text, "local.example") ||
		strings.Contains(text, "listed.example") || strings.Contains(text, "public.example") {
		t.Errorf("the session's /etc/hosts: %s", text)
	}
}

// Not even a packet leaves for a name or an address that is not allowed.
func TestPackets_OfDeniedHostsDoNotExist(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	file := filepath.Join(s.dir, "packets")
	harness.Write(t, file, "")
	e := s.start(allowed("allowed.example"))
	for _, line := range []string{
		"connect denied.example:80", "poll denied.example:443", "v6 denied.example:80", "mptcp denied.example:80",
		"connect 93.184.216.66:80", "fast-open 93.184.216.66:80 sendto", "fast-open denied.example:80 sendmsg",
		"defer denied.example:80", "datagram denied.example:443", "datagram 93.184.216.66:53", "raw",
		"tls allowed.example:443 denied.example", "v6only '[2606:2800:220:1::7]:80'", "ask denied.example TXT",
		"connect secret.denied.example:80", "unspec allowed.example:80 denied.example:80",
	} {
		s.victim(e, line)
	}
	if got := s.victim(e, "connect allowed.example:9000"); got != "connected" {
		t.Error(got)
	}
	harness.Eventually(t, "a packet to the allowed host", func() bool {
		return strings.Contains(harness.Read(t, file), "tcp 93.184.216.34:9000\n")
	})
	for line := range strings.Lines(harness.Read(t, file)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "tcp 93.184.216.34:"), line == "udp 127.0.0.53:53":
		case strings.HasPrefix(line, "udp 127.0.0.1:"): // the answers
		default:
			harness.Breach(t, "a packet: %s", line)
		}
	}
	for _, name := range s.asked() {
		if name != "allowed.example" {
			harness.Breach(t, "asked outside about %q", name)
		}
	}
}

func TestPrivateNetworks_CanBeAllowedByTheirAddresses(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("private.example", "10.9.0.0/16:80", "localhost:80", "[2606:2800::/32]:80", "six.example",
		"93.184.216.1", "here.example"))
	s.answers(e, map[string]string{
		"v6 private.example:80": "hello from 10.9.8.7", "v6 10.9.8.7:80": "hello from 10.9.8.7",
		"connect 10.9.8.7:81": "EACCES", "v6 host.sandbox.internal:80": "hello from 127.0.0.1",
		"connect host.sandbox.internal:81": "EACCES", "v6 six.example:80": "hello from 2606:2800:220:1::7",
		"v6only '[2606:2800:220:1::7]:80'": "connected", "v6 here.example:80": "hello from 93.184.216.1",
	})
}

func TestTLS_MayAskForAllowedServersAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed(usual...))
	denials := harness.RecordDenials(e)
	s.answers(e, map[string]string{
		"tls allowed.example:443 allowed.example":           "connected",
		"tls allowed.example:443 api.allowed.example":       "connected",
		"tls allowed.example:443 allowed.example long":      "connected",
		"tls allowed.example:443 ''":                        "connected", // the host's own choice
		"tls allowed.example:443 evil.example":              "ECONNRESET",
		"tls api.allowed.example:443 evil.example":          "ECONNRESET",
		"tls allowed.example:443 evil.allowed.example.evil": "ECONNRESET",
	})
	denial := awaitDenial(t, denials, "evil.example:443")
	if program(denial) != "victim" {
		t.Errorf("the report names the program %q", program(denial))
	}
}

// Servers tolerate bytes before the hello, and other versions of its record. What
// they would take for a hello does not reach them, whatever it looks like.
func TestTLS_NoOtherFormReachesAnotherName(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lies := map[string]string{
		"2.1": "the record version 2.1", "0.0": "the record version 0.0", "4.1": "the record version 4.1",
		"3.4": "the record version 3.4", "warning": "a record of type 21 before the end of the hello",
		"change-cipher-spec": "a record of type 20 before the end of the hello",
	}
	for lie := range lies { // the control: this server takes all but one
		if got := s.unconfined("tls", "93.184.216.34:443", "evil.example", lie); got != "connected" &&
			lie != "change-cipher-spec" {
			t.Errorf("control: %s: %s", lie, got)
		}
	}
	e := s.start(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{"allowed.example"}, "audit": "file",
	})
	denials := harness.RecordDenials(e)
	before := s.visits()
	for lie, told := range lies {
		for _, name := range []string{"evil.example", "allowed.example"} {
			if got := s.victim(e, "tls allowed.example:443", name, lie); got != "ECONNRESET" {
				harness.Breach(t, "%s, %s: %s", lie, name, got)
			}
		}
		harness.Eventually(t, "a report of "+lie, func() bool {
			return slices.ContainsFunc(denials.All(), func(d protocol.DeniedParams) bool {
				return d.Target == "allowed.example:443" && d.Detail == told && d.Suggestion == nil &&
					strings.Contains(d.Hint, "no entry passes another") && strings.Contains(d.Message, told) &&
					program(d) == "victim"
			})
		})
	}
	if s.visits() != before {
		harness.Breach(t, "visits: %s", s.visits())
	}
	command := exec.Command(harness.Binary(t), "audit")
	command.Env = harness.Environ(s.World)
	trail, err := command.CombinedOutput()
	text := strings.Join(strings.Fields(string(trail)), " ")
	for _, told := range lies {
		if !strings.Contains(text, "connect allowed.example:443 by victim: "+told) {
			t.Errorf("the trail lacks %q: %v: %s", told, err, trail)
		}
	}
}

// At a port that serves TLS nothing else passes, unless an entry says so. Then
// also a server that speaks first is understood.
func TestTLS_IsAloneAtItsPorts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if got := s.unconfined("speak", "10.9.8.7:443"); got != "welcome" {
		t.Fatalf("control: %s", got)
	}
	harness.Write(t, s.dir+"/visits", "")
	e := s.start(allowed("10.9.8.7", "allowed.example", "tls://allowed.example:80"))
	denials := harness.RecordDenials(e)
	s.answers(e, map[string]string{
		"speak 10.9.8.7:443": "ECONNRESET", "v6 10.9.8.7:80": "hello from 10.9.8.7",
		"v6 allowed.example:80": "hello from 93.184.216.34", // by the wider entry
	})
	const entry = "tcp://10.9.8.7:443"
	denial := awaitDenial(t, denials, entry)
	if denial.Suggestion == nil || denial.Suggestion.Setting != "allowed_hosts" ||
		string(denial.Suggestion.Value) != `"`+entry+`"` || denial.Detail != "another protocol than TLS" ||
		!strings.Contains(denial.Message, `To allow it: add "`+entry+`" to "allowed_hosts"`) {
		t.Errorf("%+v, %+v", denial, denial.Suggestion)
	}
	if visits := s.visits(); strings.Contains(visits, "SSH") {
		harness.Breach(t, "visits: %s", visits)
	}
	s.answers(s.start(allowed(entry, "tls://allowed.example:80")), map[string]string{
		"speak 10.9.8.7:443": "welcome", "v6 allowed.example:80": "ECONNRESET",
	})
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
			harness.Breach(t, "%v: another port: %s", test.settings, got)
		}
	}
}

func TestResolver_AsksNobodyAboutNames(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example", "intranet"))
	s.answers(e, map[string]string{
		"ask allowed.example AAAA": "Success", "ask allowed.example HTTPS": "Success",
		"ask secret.data.evil.example AAAA": "Success", "ask nodot A": "NameError",
		"ask secret.data.evil.example TXT": "Refused", "ask evil.example MX": "Refused",
		"ask allowed.example TXT": "Success text of allowed.example", "ask allowed.example MX": "Success mail.example.",
		"ask localhost A": "Success 127.0.0.1", "ask app.localhost AAAA": "Success ::1", "ask 1.2.3.4 A": "NameError",
		"ask 1.0.0.127.in-addr.arpa PTR": "Success localhost.", "ask 8.8.8.8.in-addr.arpa PTR": "NameError",
		"ask sub.allowed.example TXT": "Refused",
	})
	if got := s.victim(e, "ask evil.example A"); !strings.HasPrefix(got, "Success 198.1") {
		t.Errorf("a name's address: %s", got)
	}
	if got := s.victim(e, "v6 intranet:80"); got != "EHOSTUNREACH" && got != "hello from 93.184.216.34" {
		t.Errorf("a name without a dot: %s", got)
	}
	for _, name := range s.asked() {
		if name != "allowed.example" && !strings.HasPrefix(name, "intranet") {
			harness.Breach(t, "asked outside about %q", name)
		}
	}
}

// However much a session asks for, what it has goes on, and so do others. The
// same on a machine without namespaces is in
// TestShared_AnswersAsTheNetworkDoes.
func TestMuch_AtATime(t *testing.T) {
	t.Parallel()
	if !harness.Turn(t, 0, 2) {
		t.Skip("sharedMuch has its turn")
	}
	for line, want := range map[string]string{
		// Names are forgotten, but not while they are used.
		"names 20000 allowed.example:7":                   "echo, 0 failed, same address: true",
		"storm allowed.example:81 allowed.example:80 200": "connected",
		"many allowed.example:7 1000":                     "connected",
	} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			settings := allowed("allowed.example")
			settings["limits"] = harness.Sandbox{"connections": 1024}
			if got := s.victim(s.start(settings), line); got != want {
				t.Errorf("%s: %s", line, got)
			}
		})
	}
}

// A host that refuses, that no route leads to, or that is silent looks as it does
// outside. A caller in non-blocking mode that was held for 150 ms in vain is
// connected, and reset later.
func TestConnect_FailsAsItDoesOutside(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example", "11.1.1.1"))
	for target, want := range map[string][2]string{
		"allowed.example:9":  {"ECONNREFUSED", "ECONNREFUSED"},
		"11.1.1.1:80":        {"ENETUNREACH", "ENETUNREACH"},
		"allowed.example:81": {"ETIMEDOUT", "begun\nECONNRESET"},
	} {
		outside := exec.Command(s.Victim, "connect", target)
		s.Wrap(outside)
		var output strings.Builder
		outside.Stdout, outside.Stderr = &output, &output
		harness.Must(t, outside.Start())
		// All wait at once.
		var inside []*harness.Session
		for _, action := range []string{"connect", "eager"} {
			inside = append(inside, e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Command: empty + s.Victim + " " + action + " " + target + " 2>&1",
			}))
		}
		_ = outside.Wait() // the output says it
		if got := strings.TrimSpace(output.String()); got != want[0] {
			t.Errorf("outside, %s: %s", target, got)
		}
		for i, session := range inside {
			session.Exit()
			if got := strings.TrimSpace(session.Output()); got != want[i] {
				t.Errorf("%s, session %d: %s, want %s", target, i, got, want[i])
			}
		}
	}
}

func TestDenials_NameTheHostAndTheSetting(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(harness.Sandbox{
		"allow_network": false, "allowed_hosts": []string{
			"allowed.example", "*.evil.example", "private.example", "rebound.example",
		},
		"denied_hosts": []string{"very.evil.example"},
	})
	denials := harness.RecordDenials(e)
	s.answers(e, map[string]string{
		"connect evil.example:80": "EACCES", "connect host.sandbox.internal:80": "EACCES",
		"connect very.evil.example:80": "EACCES", "connect 93.184.216.34:22": "EACCES",
		"connect '[2606:2800:220:1::7]:80'": "EACCES", "connect 169.254.169.254:80": "EACCES",
		"connect private.example:80": "EACCES", "connect rebound.example:81": "EACCES",
		"tls allowed.example:443 other.example": "ECONNRESET", "eager poll.example:80": "EACCES",
		"datagram 93.184.216.77:443": "ENETUNREACH", "datagram 93.184.216.77:53": "ENETUNREACH",
	})
	for target, value := range map[string]string{
		"evil.example:80": "evil.example:80", "host.sandbox.internal:80": "localhost:80", "very.evil.example:80": "",
		"93.184.216.34:22": "93.184.216.34:22", "[2606:2800:220:1::7]:80": "[2606:2800:220:1::7]:80",
		"169.254.169.254:80": "", "10.9.8.7:80": "10.9.8.7:80", "127.0.0.1:81": "",
		"other.example:443": "other.example:443",
		"poll.example:80":   "poll.example:80", "93.184.216.77:443": "", "93.184.216.77:53": "",
	} {
		denial := awaitDenial(t, denials, target)
		setting, suggested := "", ""
		if denial.Suggestion != nil {
			setting, suggested = denial.Suggestion.Setting, strings.Trim(string(denial.Suggestion.Value), `"`)
		}
		if program(denial) != "victim" || suggested != value || value != "" && setting != "allowed_hosts" {
			t.Errorf("%s: %+v, suggested %q %q", target, denial, setting, suggested)
		}
		for other, part := range map[string]string{
			"10.9.8.7:80": `"10.9.8.7:80" (the address of "private.example")`, "93.184.216.77:53": "by TCP alone",
			"127.0.0.1:81":      `the address of "rebound.example"). it leads to this machine`,
			"93.184.216.77:443": "by TCP alone",
		} {
			if target == other && !strings.Contains(denial.Message+" "+denial.Hint, part) {
				t.Errorf("%s: %q, %q", target, denial.Message, denial.Hint)
			}
		}
	}
}

func TestLearn_PrintsTheHostsThatACommandNeeds(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	for name, test := range map[string]struct {
		settings harness.Sandbox
		want     string
		unnamed  bool // the command connects to addresses alone
	}{
		"some hosts": {
			harness.Sandbox{
				"allow_network": false, "allowed_hosts": []string{"allowed.example"},
				"denied_hosts": []string{"*.example.net"},
			}, "[93.184.216.34:80 allowed.example evil.example:443] [*.example.net] false", false,
		},
		"no network": {
			harness.Sandbox{"allow_network": false}, "[93.184.216.34:80 evil.example:443] [] false", false,
		},
		"no network, no names": {
			harness.Sandbox{"allow_network": false}, "[93.184.216.34:80] [] false", true,
		},
		"no network, asked": {
			harness.Sandbox{"allow_network": false, "on_denied": "ask"},
			"[93.184.216.34:80 evil.example:443] [] false",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			file := s.ProjectPath("settings.json")
			harness.Write(t, file, harness.Defaults(test.settings))
			line := fmt.Sprintf("%s connect 93.184.216.34:80; %s connect 169.254.169.254:80; %s datagram 8.8.8.8:53",
				s.Victim, s.Victim, s.Victim)
			if !test.unnamed {
				line = s.Victim + " connect evil.example:443; " + line
			}
			command := exec.Command(harness.Binary(t), "learn", "--project", s.Project, "--settings", file, "--",
				"/bin/sh", "-c", line)
			command.Env, command.Dir = harness.Environ(s.World), s.Project
			s.Wrap(command)
			var errors strings.Builder
			command.Stderr = &errors
			output, err := command.Output()
			if err != nil {
				t.Logf("learn: %v", err) // its status is the command's
			}
			var printed struct {
				Terminal struct {
					Sandbox struct {
						AllowedHosts []string `json:"allowed_hosts"`
						DeniedHosts  []string `json:"denied_hosts"`
						AllowNetwork bool     `json:"allow_network"`
					}
				}
			}
			_, text, _ := strings.Cut(string(output), "{")
			if err := json.Unmarshal([]byte("{"+text), &printed); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			block := printed.Terminal.Sandbox
			slices.Sort(block.AllowedHosts)
			got := fmt.Sprint(block.AllowedHosts, block.DeniedHosts, block.AllowNetwork)
			if got != test.want {
				t.Errorf("%s, want %s: %s\n%s", got, test.want, output, &errors)
			}
			if !strings.Contains(errors.String(), "169.254.169.254:80") {
				t.Errorf("nothing is said about credentials: %s", &errors)
			}
		})
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
		harness.Breach(t, "the tool reaches the terminal's host: %s", got)
	}
	if got := s.victim(e, "connect api.allowed.example:80"); got != "connected" {
		t.Errorf("the tool: %s", got)
	}
}
