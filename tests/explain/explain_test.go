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
// links, sockets of agents, caches, directories that sessions have for themselves.
type scene struct {
	*harness.World
	random  *rand.Rand
	env     []string
	victim  string
	program string   // the sidecar
	linked  bool     // links that are shells lead to it
	places  []string // what settings name
	sets    []string // toolchains that settings name
	sockets []string
	acts    []act
	hosts   []string // what settings name; none: the network is as by default
	name    string   // of what is created
	count   int      // makes unique names
}

func newScene(t *testing.T, random *rand.Rand) *scene {
	t.Helper()
	harness.RequireSandbox(t)
	s := &scene{World: harness.NewWorldOutsideDefaults(t), random: random, program: harness.Binary(t)}
	s.name = filepath.Base(filepath.Dir(s.Home))
	s.sets = []string{"ssh", "gpg"}
	if harness.Enforces(t, "toolchain_caches") {
		s.sets = append(s.sets, "ruby", "java")
	}
	s.victim = s.ProjectPath("victim")
	harness.Victim(t, "tests/explain/victim", s.victim)
	runtime := s.runtime()
	harness.MakeDir(t, runtime)
	for _, path := range []string{
		s.ProjectPath("file"), s.ProjectPath(".mcp.json"), s.ProjectPath("dir/file"), s.OutsidePath("file"),
		s.OutsidePath("dir/file"), s.HomePath(".bashrc"), s.HomePath(".ssh/id"), s.HomePath(".ssh/known_hosts"),
		s.HomePath(".local/share/other"), filepath.Join(runtime, "file"), s.only(protocol.Terminal),
		s.only(protocol.Tool), s.cache("file"), s.daemons(), s.state("file"), s.HomePath(".claude.json"),
	} {
		harness.Write(t, path, "content\n")
	}
	// Sessions read the first line of it.
	harness.Write(t, s.HomePath(".npmrc"), "registry=https://registry.example/\n"+
		"//registry.example/:_authToken=npm_q8Zr2Kx7Vb4Ty1Lw9Dm3\n")
	program, err := exec.LookPath("true")
	harness.Must(t, err)
	for _, path := range []string{s.OutsidePath("true"), s.OutsidePath("dir/true"), s.ProjectPath("dir/true")} {
		harness.CopyProgram(t, program, path)
	}
	// Everybody may execute it, or it would be private.
	harness.MakeDir(t, filepath.Dir(s.agent()))
	harness.CopyProgram(t, s.victim, s.agent())
	harness.Must(t, os.Chmod(s.agent(), 0o755))
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
	if s.linked = random.IntN(3) > 0; s.linked {
		s.sidecar(t, harness.Defaults(nil), "shell", "install")
	} else {
		harness.MakeDir(t, filepath.Dir(s.shell()))
		harness.Must(t, os.Symlink(s.program, s.shell()))
	}
	s.places = []string{
		s.Outside, s.OutsidePath("dir"), s.OutsidePath("file"), s.OutsidePath("true"), s.HomePath(".local/share"),
		s.HomePath(".local"), s.HomePath(".ssh"), s.HomePath(".bashrc"), s.HomePath(".npmrc"), s.cache(""), all,
		filepath.Dir(s.program), runtime, s.ProjectPath("dir"), "/tmp",
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

// only is a file that all settings open to one kind of session.
func (s *scene) only(kind protocol.Kind) string {
	return filepath.Join(filepath.Dir(s.Home), "only", string(kind))
}

// cache is in the cache of a toolchain, and state in the directory of an agent,
// which changes only where no program outside sees it.
func (s *scene) cache(name string) string { return filepath.Join(s.HomePath(".cache/gem"), name) }

func (s *scene) state(name string) string { return filepath.Join(s.HomePath(".claude"), name) }

// daemons is in a cache of the toolchain java that sessions find empty.
func (s *scene) daemons() string { return s.HomePath(".gradle/daemon/file") }

// agent is the program of the agent: the victim.
func (s *scene) agent() string { return s.HomePath("bin/claude") }

// shell is a link that is a shell: one of "shell install", or one that nothing
// knows of.
func (s *scene) shell() string {
	if s.linked {
		return s.HomePath(".local/share/sandbox-sidecar/shells/sh")
	}
	return s.HomePath("links/sh")
}

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
		filepath.Join(links, "bash"), s.program, temporary.Name(), filepath.Join(s.runtime(), "file"),
		s.UserSettings(), "/etc/passwd", "/dev/ptmx", "/dev/pts/ptmx", "/dev/pts", s.only(protocol.Terminal),
		s.only(protocol.Tool), s.cache("file"), s.daemons(), s.state("file"), s.HomePath(".claude.json"))
	add(protocol.AccessWrite, "write", s.ProjectPath("file"), s.ProjectPath(".mcp.json"), s.ProjectPath("dir/file"),
		s.OutsidePath("file"), s.OutsidePath("dir/file"), filepath.Join(all, "start/startup.py"),
		filepath.Join(all, "other/bash_history"), s.program, s.UserSettings(), temporary.Name(), "/dev/null",
		"/dev/ptmx", "/dev/pts/ptmx", s.HomePath(".claude.json"))
	add(protocol.AccessWrite, "append", s.ProjectPath("dir/file"), s.OutsidePath("dir/file"))
	add(protocol.AccessExecute, "execute", s.OutsidePath("true"), s.OutsidePath("dir/true"), s.ProjectPath("dir/true"),
		s.program, filepath.Join(links, "bash"), "/bin/true", s.agent())
	for _, dir := range []string{
		s.Project, s.ProjectPath("dir"), s.Outside, s.OutsidePath("dir"), own, all, filepath.Join(all, "start"),
		filepath.Join(all, "other"), links, s.runtime(), state, "/tmp", "/var/tmp", "/dev/shm",
	} {
		add(protocol.AccessWrite, "create", dir)
	}
	if slices.Contains(s.sets, "ruby") { // else nothing stays apart in them
		add(protocol.AccessWrite, "append", s.cache("file"), s.state("file"))
		add(protocol.AccessWrite, "create", s.cache(""), s.state(""))
	}
	if harness.Namespaces(t) {
		add(protocol.AccessRead, "secret", s.HomePath(".npmrc"))
	}
	add(protocol.AccessConnectUnix, "connect_unix", s.sockets...)
}

// command is one that a user starts in the project.
func (s *scene) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Dir, command.Env = s.Project, append(harness.Environ(s.World), s.env...)
	return command
}

// sidecar runs the binary under settings.
func (s *scene) sidecar(t *testing.T, settings string, args ...string) {
	t.Helper()
	harness.Write(t, s.UserSettings(), settings)
	if output, err := s.command(s.program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", args, err, output)
	}
}

// some are up to so many of a list.
func (s *scene) some(most int, list []string) []string {
	some := []string{}
	for range s.random.IntN(most + 1) {
		some = append(some, list[s.random.IntN(len(list))])
	}
	return some
}

// settings are random ones for sessions of a front. Those that are confined in any
// case are so where the settings leave the sandbox off, too.
func (s *scene) settings(f front, offline bool) string {
	one := func(list ...string) string { return list[s.random.IntN(len(list))] }
	of := func(kind protocol.Kind) harness.Sandbox { // a list in it replaces the one outside
		return harness.Sandbox{"additional_read_only_paths": append(s.some(2, s.places), s.only(kind))}
	}
	block := harness.Sandbox{
		"enabled": !f.confines || s.random.IntN(2) > 0, "tool": of(protocol.Tool), "terminal": of(protocol.Terminal),
		"temporary_files": one("private", "shared"), "toolchain_caches": one("private", "shared"),
		"toolchains":                  s.some(2, s.sets),
		"additional_executable_paths": s.some(2, s.places),
		"additional_read_write_paths": s.some(2, s.places),
		"hidden_paths":                s.some(2, append(slices.Clone(s.places), "**/true")),
		"protected_paths":             s.some(2, []string{"dir", "file", "!.mcp.json", "**/file", "**/explain-*"}),
		"allowed_unix_sockets":        s.some(1, s.sockets),
	}
	if len(s.hosts) > 0 {
		block["allow_network"] = !offline || f.agent && s.random.IntN(2) > 0 // an agent reaches its hosts alone
		block["localhost"] = one("all", "own", "none")
		block["allowed_hosts"] = s.some(3, s.hosts)
	}
	return harness.Defaults(block)
}

// concrete lists what is tried by a front, and names what is to be created, so that
// each attempt has its own name. Names are looked up for sessions without the
// network; others ask a DNS server.
func (s *scene) concrete(f front, offline bool) []act {
	acts := slices.DeleteFunc(slices.Clone(s.acts), func(a act) bool {
		return a.made == "connect_name" && !offline
	})
	if f.agent { // each question starts a program
		most := 20
		if testing.Short() {
			most = 10
		}
		s.random.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		others := 0
		acts = slices.DeleteFunc(acts, func(a act) bool {
			if _, known := s.known(f, a); known {
				return false
			}
			others++
			return others > most
		})
	}
	for i := range acts {
		if acts[i].made == "create" {
			s.count++
			acts[i].target = filepath.Join(acts[i].target, fmt.Sprintf("explain-%s-%d", s.name, s.count))
		}
	}
	return acts
}

// known says whether sessions of a front can do something that no random setting
// decides about. is is false for everything else.
func (s *scene) known(f front, a act) (allowed, is bool) {
	switch {
	case a.target == s.program && a.access != protocol.AccessWrite:
		return true, true // the init of a shared sandbox, and what a link leads to
	case a.target == s.only(protocol.Tool):
		return f.kind == protocol.Tool, true
	case a.target == s.only(protocol.Terminal):
		return f.kind == protocol.Terminal, true
	case a.target == s.agent() || a.target == s.state("") || filepath.Dir(a.target) == s.state(""):
		return f.agent, true
	}
	return false, false
}

// projectsOwn is in the answer about a service of this machine. It does not know
// who will listen there.
const projectsOwn = "reach only what those of their project or working tree listen with"

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// What is explained is what a process inside meets, for random settings and each
// front. SIDECAR_EXPLAIN_POLICIES makes it longer. In each turn this test has
// half of the fronts, and the next one the others.
func TestExplain_AgreesWithASession(t *testing.T) { agrees(t, 0, len(fronts), 11, newScene) }

// The same of the network: of a session's own servers, servers outside, and names.
// Each run tries some of the fronts.
func TestExplain_AgreesWithASessionAboutTheNetwork(t *testing.T) {
	agrees(t, 1, 6, 13, newNetworkScene)
}

func agrees(t *testing.T, turn, usual int, stream uint64, scenes func(*testing.T, *rand.Rand) *scene) {
	t.Helper()
	t.Parallel()
	var list []front
	for i, f := range fronts {
		if harness.Turn(t, i+turn, 2) {
			list = append(list, f)
		}
	}
	policies, random := harness.Generated(t, min(usual, len(list)), stream)
	order := random.Perm(len(list))
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
					f := list[order[i%len(order)]]
					t.Run(fmt.Sprintf("%d, %s", i, f.name), func(t *testing.T) {
						one := s.compare(t, f, nil)
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

// A lie about any kind of access is found, by whatever front.
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
	all := slices.DeleteFunc(slices.Clone(fronts), func(f front) bool { return f.agent }) // which is not asked all
	tries := len(lies)
	if testing.Short() {
		tries = 1
	}
	begin := random.IntN(len(all))
	for i := range tries {
		f := all[(begin+i)%len(all)]
		t.Run(f.name, func(t *testing.T) {
			lied := map[string]act{} // one of each kind
			found := s.compare(t, f, func(a act, allowed bool) bool {
				if _, already := lied[a.made]; !already && slices.Contains(lies, a.made) {
					lied[a.made], allowed = a, !allowed
				}
				return allowed
			})
			if len(lied) != len(lies) || len(found.differences) != len(lies) {
				t.Errorf("lied about %v, want %q, found %q", lied, lies, found.differences)
			}
			for _, lie := range lied {
				about := fmt.Sprintf("%s, %s:", f.name, lie)
				if !slices.ContainsFunc(found.differences, func(d string) bool { return strings.HasPrefix(d, about) }) {
					t.Errorf("lied about %s, found %q", lie, found.differences)
				}
			}
		})
	}
}
