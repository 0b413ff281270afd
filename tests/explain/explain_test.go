//go:build linux

package explain

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// act is one access to a target. made is how the victim tries it.
type act struct {
	access protocol.Access
	target string
	made   string
}

func (a act) String() string { return fmt.Sprintf("%s %s (%s)", a.access, a.target, a.made) }

// scene is a world with everything that a session can name: files, histories,
// links, sockets of agents, directories that sessions have for themselves.
type scene struct {
	*harness.World
	random  *rand.Rand
	env     []string
	victim  string
	places  []string // what settings name
	sockets []string
	acts    []act
	hosts   []string // what settings name; none: the network is as by default
	name    string   // of what is created
	count   int      // makes unique names
}

func newScene(t *testing.T, random *rand.Rand) *scene {
	t.Helper()
	harness.RequireSandbox(t)
	s := &scene{World: harness.NewWorldOutsideDefaults(t), random: random}
	s.name = filepath.Base(filepath.Dir(s.Home))
	s.victim = s.ProjectPath("victim")
	harness.Victim(t, "tests/explain/victim", s.victim)
	runtime := s.runtime()
	harness.MakeDir(t, runtime)
	for _, path := range []string{
		s.ProjectPath("file"), s.ProjectPath(".mcp.json"), s.ProjectPath("dir/file"), s.OutsidePath("file"),
		s.OutsidePath("dir/file"), s.HomePath(".bashrc"), s.HomePath(".ssh/id"), s.HomePath(".ssh/known_hosts"),
		s.HomePath(".local/share/other"), filepath.Join(runtime, "file"),
	} {
		harness.Write(t, path, "content\n")
	}
	program, err := exec.LookPath("true")
	harness.Must(t, err)
	for _, path := range []string{s.OutsidePath("true"), s.OutsidePath("dir/true"), s.ProjectPath("dir/true")} {
		harness.CopyProgram(t, program, path)
	}
	short := harness.ShortDir(t) // sockets' paths are short
	gnupg := filepath.Join(short, "gnupg")
	harness.MakeDir(t, gnupg)
	for _, path := range []string{
		filepath.Join(short, "ssh"), filepath.Join(short, "named"), filepath.Join(gnupg, "S.gpg-agent"),
		filepath.Join(short, "other"),
	} {
		listener, err := net.Listen("unix", path)
		harness.Must(t, err)
		t.Cleanup(func() { listener.Close() })
		s.sockets = append(s.sockets, path)
	}
	harness.Write(t, s.HomePath(".ssh/config"), "IdentityAgent "+s.sockets[1]+"\n")
	s.env = []string{"SSH_AUTH_SOCK=" + s.sockets[0], "GNUPGHOME=" + gnupg, "XDG_RUNTIME_DIR=" + runtime}
	s.sidecar(t, harness.Defaults(nil), "exec", "--", "true") // makes the history
	all := s.HomePath(".local/state/sandbox-sidecar/history")
	dirs, err := filepath.Glob(filepath.Join(all, "project-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%q, %v", dirs, err)
	}
	harness.Write(t, filepath.Join(all, "other/bash_history"), "secret\n")
	if random.IntN(3) > 0 {
		s.sidecar(t, harness.Defaults(nil), "shell", "install")
	}
	s.places = []string{
		s.Outside, s.OutsidePath("dir"), s.OutsidePath("file"), s.OutsidePath("true"), s.HomePath(".local/share"),
		s.HomePath(".local"), s.HomePath(".ssh"), s.HomePath(".bashrc"), all, filepath.Dir(harness.Binary(t)), runtime,
		s.ProjectPath("dir"), "/tmp",
	}
	if os.Geteuid() == 0 { // nobody else may open the ptmx that is there outside
		s.places = append(s.places, "/dev/pts")
	}
	s.findActs(t, dirs[0], all)
	return s
}

// newNetworkScene has servers outside, and acts about the network alone.
func newNetworkScene(t *testing.T, random *rand.Rand) *scene {
	t.Helper()
	harness.Require(t, "network", "network_hosts")
	if !harness.Namespaces(t) {
		harness.Skip(t, "namespaces", "a session without the network has no localhost of its own")
	}
	s := newScene(t, random)
	s.acts = nil
	add := func(access protocol.Access, made string, targets ...string) {
		for _, target := range targets {
			s.acts = append(s.acts, act{access, target, made})
		}
	}
	local := serve(t, "127.0.0.1")
	_, port, _ := net.SplitHostPort(local)
	s.hosts = []string{"localhost:" + port, "allowed.example", "192.0.2.0/24", "localhost:1"}
	add(protocol.AccessBind, "bind", "127.0.0.1:0", "0.0.0.0:0", "localhost:0", "127.9.9.9:0")
	add(protocol.AccessConnect, "connect", local, "localhost:"+port)
	add(protocol.AccessConnect, "connect_name", "host.sandbox.internal:"+port, "refused.example:443")
	if address := ownAddress(t); address != "" {
		reached := serve(t, address)
		_, port, _ := net.SplitHostPort(reached)
		s.hosts = append(s.hosts, reached, "localhost:"+port)
		add(protocol.AccessBind, "bind", address+":0")
		add(protocol.AccessConnect, "connect", reached)
	}
	// Of this port and address there is no other server.
	const first, ports = 20_000, 10_000
	add(protocol.AccessConnect, "connect_own", fmt.Sprintf("127.77.%d.%d:%d", random.IntN(256), 1+random.IntN(250),
		first+random.IntN(ports)))
	return s
}

// serve starts a server outside.
func serve(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// ownAddress is one of this machine's that others may reach; "" if it has none.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	harness.Must(t, err)
	for _, address := range addresses {
		if ip, is := address.(*net.IPNet); is && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	return ""
}

// runtime is the user's runtime directory. It is not below /tmp, which projects
// have for themselves, and sockets in it have short paths.
func (s *scene) runtime() string { return filepath.Join(filepath.Dir(s.Home), "r") }

// findActs lists what is tried under each policy.
func (s *scene) findActs(t *testing.T, own, all string) {
	t.Helper()
	links, state := s.HomePath(".local/share/sandbox-sidecar/shells"), s.HomePath(".local/state/sandbox-sidecar")
	temporary, err := os.CreateTemp("", "explain-")
	harness.Must(t, err)
	temporary.Close()
	t.Cleanup(func() { os.Remove(temporary.Name()) })
	add := func(access protocol.Access, made string, targets ...string) {
		for _, target := range targets {
			if _, err := os.Lstat(target); err == nil {
				s.acts = append(s.acts, act{access, target, made})
			}
		}
	}
	add(protocol.AccessRead, "read", s.ProjectPath("file"), s.Outside, s.OutsidePath("file"), s.OutsidePath("dir/file"),
		s.HomePath(".bashrc"), s.HomePath(".ssh/id"), s.HomePath(".ssh/known_hosts"), s.HomePath(".local/share/other"),
		filepath.Join(all, "other/bash_history"), filepath.Join(all, "start/startup.py"), all, own,
		filepath.Join(links, "bash"), harness.Binary(t), temporary.Name(), filepath.Join(s.runtime(), "file"),
		s.UserSettings(), "/etc/passwd", "/dev/ptmx", "/dev/pts/ptmx", "/dev/pts")
	add(protocol.AccessWrite, "write", s.ProjectPath("file"), s.ProjectPath(".mcp.json"), s.ProjectPath("dir/file"),
		s.OutsidePath("file"), s.OutsidePath("dir/file"), filepath.Join(all, "start/startup.py"),
		filepath.Join(all, "other/bash_history"), harness.Binary(t), s.UserSettings(), temporary.Name(), "/dev/null",
		"/dev/ptmx", "/dev/pts/ptmx")
	add(protocol.AccessExecute, "execute", s.OutsidePath("true"), s.OutsidePath("dir/true"), s.ProjectPath("dir/true"),
		harness.Binary(t), filepath.Join(links, "bash"), "/bin/true")
	for _, dir := range []string{
		s.Project, s.ProjectPath("dir"), s.Outside, s.OutsidePath("dir"), own, all, filepath.Join(all, "start"),
		filepath.Join(all, "other"), links, s.runtime(), state, "/tmp", "/var/tmp", "/dev/shm",
	} {
		add(protocol.AccessWrite, "create", dir)
	}
	add(protocol.AccessConnectUnix, "connect_unix", s.sockets...)
}

// sidecar runs the binary under settings.
func (s *scene) sidecar(t *testing.T, settings string, args ...string) string {
	t.Helper()
	harness.Write(t, s.UserSettings(), settings)
	command := exec.Command(harness.Binary(t), args...)
	command.Dir, command.Env = s.Project, append(harness.Environ(s.World), s.env...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", args, err, output)
	}
	return string(output)
}

// some are up to so many of a list.
func (s *scene) some(most int, list []string) []string {
	some := []string{}
	for range s.random.IntN(most + 1) {
		some = append(some, list[s.random.IntN(len(list))])
	}
	return some
}

func (s *scene) settings(offline bool) string {
	one := func(list ...string) string { return list[s.random.IntN(len(list))] }
	block := harness.Sandbox{
		"temporary_files":             one("private", "shared"),
		"toolchains":                  s.some(2, []string{"ssh", "gpg"}),
		"additional_read_only_paths":  s.some(2, s.places),
		"additional_executable_paths": s.some(2, s.places),
		"additional_read_write_paths": s.some(2, s.places),
		"hidden_paths":                s.some(2, append(slices.Clone(s.places), "**/true")),
		"protected_paths":             s.some(2, []string{"dir", "file", "!.mcp.json", "**/file", "**/explain-*"}),
		"allowed_unix_sockets":        s.some(1, s.sockets),
	}
	if len(s.hosts) > 0 {
		block["allow_network"] = !offline
		block["localhost"] = one("all", "own", "none")
		block["allowed_hosts"] = s.some(3, s.hosts)
	}
	return harness.Defaults(block)
}

// concrete names what is to be created, so that each attempt has its own name.
// Names are looked up for sessions without the network; others ask a DNS server.
func (s *scene) concrete(offline bool) []act {
	acts := slices.DeleteFunc(slices.Clone(s.acts), func(a act) bool { return a.made == "connect_name" && !offline })
	for i := range acts {
		if acts[i].made == "create" {
			s.count++
			acts[i].target = filepath.Join(acts[i].target, fmt.Sprintf("explain-%s-%d", s.name, s.count))
		}
	}
	return acts
}

// compared counts questions, and those that were allowed.
type compared struct {
	asked, allowed int
	differences    []string
}

// compare asks about all acts under one policy, and tries them in a session.
// lie changes an answer; nil: nobody lies. Lies are about sessions without the
// network, which are asked about most.
func (s *scene) compare(t *testing.T, lie func(a act, allowed bool) bool) compared {
	t.Helper()
	offline := lie != nil || s.random.IntN(3) > 0
	settings, acts := s.settings(offline), s.concrete(offline)
	kind := []protocol.Kind{protocol.Terminal, protocol.Tool}[s.random.IntN(2)]
	e := harness.Start(t, s.World, harness.Options{Settings: settings, Env: s.env})
	found := compared{asked: len(acts)}
	answers := make([]protocol.PolicyExplainResult, len(acts))
	args := []string{}
	for i, a := range acts {
		answers[i] = harness.Call(e, protocol.PolicyExplain, protocol.PolicyExplainParams{
			ProjectDir: s.Project, Kind: kind, Access: a.access, Target: a.target,
		})
		args = append(args, a.made+" "+a.target)
	}
	front := []string{"exec", "rpc"}[s.random.IntN(2)]
	var output string
	if front == "exec" {
		output = s.sidecar(t, settings, append([]string{"exec", "--kind", string(kind), "--", s.victim}, args...)...)
	} else {
		params := protocol.SpawnParams{Kind: kind, Cwd: s.Project, ProjectDir: s.Project}
		if kind == protocol.Terminal { // that somebody types into
			params.Shell = &protocol.Shell{Program: s.victim, Args: args}
		} else {
			params.Command, params.Args = s.victim, args
		}
		session := e.Spawn(params)
		exit := session.Exit()
		if output = session.Output(); exit.ExitCode == nil || *exit.ExitCode != 0 {
			t.Fatalf("%+v: %s", exit, output)
		}
	}
	var results, said []string
	for line := range strings.Lines(output) {
		if result, is := strings.CutPrefix(strings.TrimSpace(line), "result "); is {
			results = append(results, result)
		} else {
			said = append(said, line)
		}
	}
	if len(results) != len(acts) || strings.Contains(output, "result misused") {
		t.Fatalf("%d results for %d acts: %s", len(results), len(acts), output)
	}
	for i, a := range acts {
		allowed := answers[i].Allowed || a.made == "connect_own" && strings.Contains(answers[i].Reason, projectsOwn)
		if lie != nil {
			allowed = lie(a, allowed)
		}
		if allowed {
			found.allowed++
		}
		hidden := strings.Contains(answers[i].Reason, "is hidden")
		if hidden && a.made == "read" && isDir(a.target) && os.Geteuid() == 0 {
			continue // root may list the empty directory
		}
		done := "done"
		if a.made == "connect" && strings.Contains(answers[i].Reason, "the session's own") {
			done = "ECONNREFUSED" // the server is outside, and nobody listens inside
		}
		if allowed != (results[i] == done) {
			found.differences = append(found.differences, fmt.Sprintf(
				"%s, %s, %s: explain says %t (%s; %s), the kernel says %s\nsaid %s\nsettings %s",
				front, kind, a, allowed, answers[i].Reason, answers[i].Hint, results[i], strings.Join(said, ""),
				settings))
		}
	}
	return found
}

// projectsOwn is in the answer about a service of this machine. It does not know
// who will listen there.
const projectsOwn = "reach only what those of their project or working tree listen with"

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// What is explained is what a process inside meets, for random settings, both
// kinds, and both fronts: exec and the protocol. SIDECAR_EXPLAIN_POLICIES makes
// it longer.
func TestExplain_AgreesWithASession(t *testing.T) { agrees(t, 11, newScene) }

// The same of the network: of a session's own servers, servers outside, and names.
func TestExplain_AgreesWithASessionAboutTheNetwork(t *testing.T) { agrees(t, 13, newNetworkScene) }

func agrees(t *testing.T, stream uint64, scenes func(*testing.T, *rand.Rand) *scene) {
	t.Helper()
	t.Parallel()
	policies, random := harness.Generated(t, 6, stream)
	const each = 20 // policies of a scene
	var mu sync.Mutex
	var all compared
	t.Run("policies", func(t *testing.T) {
		for first := 0; first < policies; first += each {
			random := rand.New(rand.NewPCG(random.Uint64(), stream))
			t.Run(fmt.Sprint("from ", first), func(t *testing.T) {
				t.Parallel() // most of the time is spent waiting
				s := scenes(t, random)
				for i := first; i < min(first+each, policies); i++ {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						one := s.compare(t, nil)
						mu.Lock()
						defer mu.Unlock()
						all.asked, all.allowed = all.asked+one.asked, all.allowed+one.allowed
						for _, difference := range one.differences {
							harness.Breach(t, "%s", difference)
						}
					})
				}
			})
		}
	})
	t.Logf("%d policies, %d questions, %d of them allowed", policies, all.asked, all.allowed)
	if all.allowed == 0 || all.allowed == all.asked {
		t.Error("this compares nothing")
	}
}

// A lie about any kind of access is found.
func TestExplain_FindsALie(t *testing.T) {
	finds(t, newScene, "read", "write", "create", "execute", "connect_unix")
}

func TestExplain_FindsALieAboutTheNetwork(t *testing.T) {
	finds(t, newNetworkScene, "bind", "connect", "connect_name", "connect_own")
}

func finds(t *testing.T, scenes func(*testing.T, *rand.Rand) *scene, lies ...string) {
	t.Helper()
	_, random := harness.Generated(t, 1, 12)
	s := scenes(t, random)
	for _, made := range lies {
		t.Run(made, func(t *testing.T) {
			var lied act
			found := s.compare(t, func(a act, allowed bool) bool {
				if lied.made == "" && a.made == made {
					lied, allowed = a, !allowed
				}
				return allowed
			})
			if len(found.differences) != 1 || !strings.Contains(found.differences[0], lied.String()) {
				t.Errorf("lied about %s, found %q", lied, found.differences)
			}
		})
	}
}
