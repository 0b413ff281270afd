//go:build linux

package machines

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// allowedHost is the host that the settings allow. Its DNS server gives it the
// address hostAddress, as all names below evil.example.
const (
	allowedHost = "allowed.example"
	hostAddress = "93.184.216.34"
)

// way is one in which programs look names up; see ways.go of the victim in
// tests/hosts.
type way struct {
	name string
	// program must be installed, and root must be the user, if these are set.
	program string
	root    bool
	// answer is what it finds outside about a name that exists. reaches is the
	// server that is asked then.
	answer, reaches string
	// network: it finds the same in a session with the network.
	network bool
	// hosts is how its answer about allowedHost begins in a session that reaches
	// that host alone; "" if it has none.
	hosts string
}

// ownAddresses is how addresses begin that the session's resolver gives to names.
const ownAddresses = "198.1"

var ways = []way{
	{name: "getent", answer: hostAddress, reaches: "udp-53", network: true, hosts: ownAddresses},
	{
		name: "python3", program: "python3", answer: hostAddress, reaches: "udp-53", network: true,
		hosts: ownAddresses,
	},
	{name: "go", answer: hostAddress, reaches: "udp-53", network: true, hosts: ownAddresses},
	{
		name: "txt", answer: "text of txt.evil.example", reaches: "udp-53", network: true,
		hosts: "text of allowed.example",
	},
	// With the network, the host is a service of the machine, as it is laid out
	// here.
	{name: "connect", answer: "connected", reaches: "udp-53", hosts: "connected"},
	// The server of /etc/resolv.conf. Programs such as dig ask it themselves.
	{name: "udp-53", answer: hostAddress, reaches: "udp-53", network: true},
	{name: "tcp-53", answer: hostAddress, reaches: "tcp-53", network: true},
	{name: "udp-853", answer: hostAddress, reaches: "udp-853"},
	{name: "tcp-853", answer: hostAddress, reaches: "tcp-853"},
	{name: "udp-5353", answer: hostAddress, reaches: "udp-5353"},
	{name: "tcp-5353", answer: hostAddress, reaches: "tcp-5353"},
	{name: "raw", root: true, answer: "answered", reaches: "udp-53"},
	// Another server, which no file names.
	{name: "public-udp-53", answer: hostAddress, reaches: "public-udp-53"},
	{name: "public-tcp-53", answer: hostAddress, reaches: "public-tcp-53"},
	{name: "public-tcp-853", answer: hostAddress, reaches: "public-tcp-853"},
	// Daemons that look names up for others, by their Unix sockets.
	{name: "resolved", answer: "heard", reaches: "resolved"},
	{name: "nscd", answer: "heard", reaches: "nscd"},
}

// lacks says why a layout has no such daemon. All layouts are here.
var lacks = map[string]map[string]string{
	"alpine":        {"resolved": "there is no systemd", "nscd": "musl has none"},
	"arch":          {"nscd": "systemd-resolved remembers names"},
	"company":       {"resolved": "resolvconf writes the list of servers"},
	"fedora":        {"nscd": "systemd-resolved remembers names"},
	"fedora-atomic": {"nscd": "systemd-resolved remembers names"},
	"nixos":         {"resolved": "NetworkManager writes the list of servers"},
	"ubuntu":        {"nscd": "systemd-resolved remembers names"},
	"wsl":           {"resolved": "WSL writes the list of servers", "nscd": "WSL's images have none"},
}

// waysOn are those that a layout has for a user, and the daemons among them.
func waysOn(t *testing.T, l layout, u who) (used []way, daemons []string) {
	t.Helper()
	without, known := lacks[l.name]
	if !known {
		t.Fatalf("the layout %s is not in the table of daemons", l.name)
	}
	installed := func(program string) bool {
		return slices.ContainsFunc(filepath.SplitList(searchPath), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, program))
			return err == nil
		})
	}
	for _, w := range ways {
		switch reason := without[w.name]; {
		case reason != "":
			t.Logf("no %s: %s", w.name, reason)
			continue
		case w.program != "" && !installed(w.program):
			t.Logf("no %s: not installed", w.name)
			continue
		case w.root && !u.isRoot():
			t.Logf("no %s: only root can do that", w.name)
			continue
		}
		used = append(used, w)
		if w.name == "resolved" || w.name == "nscd" {
			daemons = append(daemons, w.name)
		}
	}
	return used, daemons
}

// names are those that nothing allows: one that exists, and one that carries data
// to the DNS server of the allowed host's domain.
func (w way) names() []string {
	return []string{w.name + ".evil.example", w.name + ".secret.allowed.example"}
}

// phase is what the victim runs; see its file phases.go.
type phase struct {
	Name     string
	UID, GID uint32
	Args     []string

	Output, Errors, Failed string
	Asked                  []string // each "SERVER NAME"
}

// answers are the lines of a phase, by "WAY NAME".
func (p phase) answers() map[string]string {
	answers := map[string]string{}
	for line := range strings.Lines(p.Output) {
		if words := strings.SplitN(strings.TrimSpace(line), " ", 3); len(words) == 3 {
			answers[words[0]+" "+words[1]] = words[2]
		}
	}
	return answers
}

// The phases: without a sandbox, and in sessions of three settings.
const (
	outside     = "outside"
	withNetwork = "network"
	someHosts   = "allowed_hosts"
	noNetwork   = "no-network"
)

var sessions = map[string]harness.Sandbox{
	withNetwork: {"allow_network": true},
	someHosts:   {"allow_network": false, "allowed_hosts": []string{allowedHost}},
	noNetwork:   {"allow_network": false},
}

// With the network, programs look names up as outside. If only some hosts are
// allowed, no question about another name leaves the session, in whatever way it is
// asked; without the network, none at all. Outside each way reaches a server. In a
// turn, each layout is tried by one user, and each user tries half of the layouts.
func TestNames_OnEveryLayout(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root lays a machine out")
	}
	harness.Require(t, "filesystem", "hidden_paths", "network_hosts")
	makeNix(t)
	for i, l := range layouts(t) {
		for j, u := range users {
			if !harness.Turn(t, i+j, len(users)) {
				continue
			}
			t.Run(l.name+" "+u.name, func(t *testing.T) {
				t.Parallel()
				used, daemons := waysOn(t, l, u)
				lookUpNames(t, newMachine(t, l, u), used, daemons)
			})
		}
	}
}

func lookUpNames(t *testing.T, m machine, used []way, daemons []string) {
	t.Helper()
	phases := runPhases(t, m, used, daemons)
	control := phases[outside].answers()
	t.Run(outside, func(t *testing.T) {
		for _, w := range used {
			if got := control[w.name+" "+w.names()[0]]; got != w.answer {
				t.Errorf("%s: %q, want %q", w.name, got, w.answer)
			}
			mustReach(t, phases[outside], w)
		}
	})
	t.Run(withNetwork, func(t *testing.T) {
		answers := phases[withNetwork].answers()
		for _, w := range used {
			if !w.network {
				continue
			}
			for _, name := range append(w.names(), allowedHost) {
				if got, want := answers[w.name+" "+name], control[w.name+" "+name]; got != want {
					t.Errorf("%s %s: %q, and outside %q", w.name, name, got, want)
				}
			}
			mustReach(t, phases[withNetwork], w)
		}
	})
	t.Run(someHosts, func(t *testing.T) {
		answers := phases[someHosts].answers()
		for _, w := range used {
			if got := answers[w.name+" "+allowedHost]; w.hosts != "" && !strings.HasPrefix(got, w.hosts) {
				t.Errorf("%s: the allowed host: %q, want %q", w.name, got, w.hosts)
			}
			mustFindNothing(t, w, answers)
		}
		if got := answers["connect connect.evil.example"]; got != "EACCES" {
			t.Errorf("a host that is not allowed: %q", got)
		}
		for _, want := range []string{"udp-53 " + allowedHost, "tcp-80 " + allowedHost} {
			if !slices.Contains(phases[someHosts].Asked, want) {
				t.Errorf("the servers have not noted %q: %q", want, phases[someHosts].Asked)
			}
		}
		for _, line := range phases[someHosts].Asked {
			if _, name, _ := strings.Cut(line, " "); name != allowedHost {
				harness.Breach(t, "a name left the session that is not allowed: %s", line)
			}
		}
	})
	t.Run(noNetwork, func(t *testing.T) {
		answers := phases[noNetwork].answers()
		for _, w := range used {
			for _, name := range append(w.names(), allowedHost) {
				if got := answers[w.name+" "+name]; w.hosts != "" && got != "none" {
					t.Errorf("%s %s: %q, want no such name", w.name, name, got)
				}
			}
			mustFindNothing(t, w, answers)
		}
		if asked := phases[noNetwork].Asked; len(asked) > 0 {
			harness.Breach(t, "a server was asked: %q", asked)
		}
	})
}

// mustReach fails the test if a way has not reached its server with each name.
func mustReach(t *testing.T, p phase, w way) {
	t.Helper()
	for _, name := range w.names() {
		if want := w.reaches + " " + name; !slices.Contains(p.Asked, want) {
			t.Errorf("%s: the servers have not noted %q: %q", w.name, want, p.Asked)
		}
	}
}

// fromOutside matches answers that only a server outside of the session gives.
var fromOutside = regexp.MustCompile(`^(93\.184\.216\.|text of|connected|answered|heard)`)

// mustFindNothing fails the test if a way has found something about a name that is
// not allowed. The session's resolver may have given it an address.
func mustFindNothing(t *testing.T, w way, answers map[string]string) {
	t.Helper()
	for _, name := range w.names() {
		if got := answers[w.name+" "+name]; fromOutside.MatchString(got) {
			harness.Breach(t, "%s %s: %q", w.name, name, got)
		}
	}
}

// runPhases looks all names up in all ways, outside and in each kind of session.
func runPhases(t *testing.T, m machine, used []way, daemons []string) map[string]phase {
	t.Helper()
	victim := filepath.Join(m.project, "victim")
	harness.Victim(t, "tests/hosts/victim", victim)
	lookups := []string{victim, "lookups"}
	for _, w := range used {
		for _, name := range append(w.names(), allowedHost) {
			if name != allowedHost || w.network || w.hosts != "" {
				lookups = append(lookups, w.name, name)
			}
		}
	}
	list := []phase{{Name: outside, Args: lookups}}
	for _, name := range []string{withNetwork, someHosts, noNetwork} {
		settings := filepath.Join(m.home, name+".json")
		harness.Write(t, settings, harness.Defaults(sessions[name]))
		list = append(list, phase{Name: name, Args: slices.Concat([]string{
			harness.Binary(t), "exec", "--sandbox", "--settings", settings, "--",
		}, lookups)})
	}
	if !m.user.isRoot() {
		for i := range list {
			list[i].UID, list[i].GID = nobody, nogroup
		}
	}
	order, err := json.Marshal(list)
	harness.Must(t, err)
	// Programs are patient, as the machine may be busy.
	const script = `echo options timeout:30 >>/etc/resolv.conf
cd "$HOME/project"; exec "$@"`
	command := m.command(t, "-mn", script, slices.Concat([]string{victim, "phases", string(order)}, daemons)...)
	var output, failures bytes.Buffer
	command.Stdout, command.Stderr = &output, &failures
	err = command.Run()
	list = nil
	if wrong := json.Unmarshal(output.Bytes(), &list); err != nil || wrong != nil {
		t.Fatalf("%v, %v: %s\n%s", err, wrong, &output, &failures)
	}
	phases := map[string]phase{}
	for _, p := range list {
		if lines := strings.Count(p.Output, "\n"); p.Failed != "" || len(p.answers()) != (len(lookups)-2)/2 {
			t.Fatalf("%s: %s, %d lines: %s\n%s", p.Name, p.Failed, lines, p.Output, p.Errors)
		}
		phases[p.Name] = p
	}
	return phases
}
