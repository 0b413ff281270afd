//go:build linux

package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// claim turns the status of one protection into an attack that must be refused
// or must work.
type claim func(t *testing.T, status protocol.ProtectionStatus)

// claims has an entry for every protection of a reply. A protection without one
// would be a claim that nothing tests.
var claims = map[string]claim{
	"filesystem": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		secretOutside(s)
		result := s.attempt(s.Start(""), "read", s.OutsidePath("secret"))
		mustAgree(t, status, result, leaked(s, result.output))
	},
	"file_tree": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		secretOutside(s)
		before := metadata(t, s.OutsidePath("secret"))
		result := s.attempt(s.Start(""), "chmod", s.OutsidePath("secret"))
		mustAgree(t, status, result, metadata(t, s.OutsidePath("secret")) != before)
	},
	"execute": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		s.CopyVictim(s.OutsidePath("program"))
		result := s.attempt(s.Start(harness.Settings(readOnlyOutside(s))), "exec", s.OutsidePath("program"),
			"privileges")
		mustAgree(t, status, result, result.done())
	},
	"network": func(t *testing.T, status protocol.ProtectionStatus) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Must(t, err)
		defer listener.Close()
		s := newScene(t)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		result := s.attempt(s.Start(offline()), "connect-tcp", port)
		mustAgree(t, status, result, result.done())
	},
	"network_hosts": func(t *testing.T, status protocol.ProtectionStatus) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Must(t, err)
		defer listener.Close()
		s := newScene(t)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		e := s.Start(harness.Settings(harness.Sandbox{
			"allow_network": false, "allowed_hosts": []string{"localhost:" + port},
		}))
		line := "exec 3<>/dev/tcp/host.sandbox.internal/%s && echo reached"
		output, _ := e.Tool(fmt.Sprintf(line, port))
		if reached := strings.Contains(output, "reached"); reached != (status == protocol.Enforced) {
			t.Errorf("an allowed host, while the status is %q: %s", status, output)
		}
		if output, _ := e.Tool(fmt.Sprintf(line, "1")); strings.Contains(output, "reached") {
			harness.Breach(t, "a host that is not allowed: %s", output)
		}
	},
	"unix_sockets": unixSocketsClaim,
	"signals": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		p := newProcessID(t, s)
		result := s.attempt(s.Start(""), "kill", strconv.Itoa(p.pid))
		mustAgree(t, status, result, result.done())
	},
	"protected_paths": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		harness.MakeDir(t, s.ProjectPath(".git/hooks"))
		result := s.attempt(s.Start(""), "write", s.ProjectPath(".git/hooks/pre-commit"), "x")
		mustAgree(t, status, result, exists(s.ProjectPath(".git/hooks/pre-commit")))
	},
	"temporary_files": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		file, err := os.CreateTemp("/tmp", "sidecar-test-")
		harness.Must(t, err)
		t.Cleanup(func() { os.Remove(file.Name()) })
		_, err = file.WriteString("a temporary secret")
		harness.Must(t, errors.Join(err, file.Close()))
		e := s.Start(harness.Settings(harness.Sandbox{"system_paths": map[string]any{"read_write": []string{
			"/tmp", "/dev/null",
		}}}))
		result := s.attempt(e, "read", file.Name())
		// Without namespaces only TMPDIR is the project's own.
		if open := strings.Contains(result.output, "a temporary secret"); open == (status == protocol.Enforced) {
			harness.Breach(t, "the reply says %s; leaked: %t; status %d\n%s", status, open, result.status,
				result.output)
		}
	},
	"hidden_paths": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		secretOutside(s)
		e := s.Start(harness.Settings(harness.Sandbox{
			"additional_read_only_paths": []string{s.Outside}, "hidden_paths": []string{s.OutsidePath("secret")},
		}))
		result := s.attempt(e, "read", s.OutsidePath("secret"))
		mustAgree(t, status, result, leaked(s, result.output))
	},
	"limits": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		e := s.Start(harness.Settings(harness.Sandbox{"limits": map[string]any{"processes": 60}}))
		result := s.attempt(e, "crowd", "80")
		mustAgree(t, status, result, result.done())
	},
	"toolchain_caches": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		cache := filepath.Join(s.Home, ".npm")
		harness.MakeDir(t, cache)
		e := s.Start(harness.Settings(harness.Sandbox{"toolchains": []string{"node"}}))
		result := s.attempt(e, "write", filepath.Join(cache, "new"), "x")
		if open := exists(filepath.Join(cache, "new")); open == (status == protocol.Enforced) || !result.done() {
			harness.Breach(t, "the reply says %s; seen outside: %t; status %d\n%s", status, open,
				result.status, result.output)
		}
	},
	"syscalls": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		result := s.attempt(s.Start(""), "privileges")
		if status != protocol.Absent && field(t, result.output, "NoNewPrivs") != 1 {
			harness.Breach(t, "status %s without no_new_privs:\n%s", status, result.output)
		}
		// In a container the tests themselves may run under filters that are
		// not the sidecar's.
		own := field(t, harness.Read(t, "/proc/self/status"), "Seccomp_filters")
		if filtered := field(t, result.output, "Seccomp_filters") > own; filtered != (status == protocol.Enforced) {
			t.Errorf("status %s, yet filtered: %v\n%s", status, filtered, result.output)
		}
	},
	"process_tracking": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		session := s.Start("").Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: s.Victim, Args: []string{
				"detach", s.ProjectPath("pid"), "then", "wait",
				s.ProjectPath("leave"),
			},
		})
		// The machine's status is that of the weakest session. A sandboxed
		// session may have a guarantee that others lack.
		if status == protocol.Enforced && !session.Tracking.Guarantee || status == protocol.Absent &&
			session.Tracking.Guarantee {
			t.Errorf("status %s with tracking %+v", status, session.Tracking)
		}
		pid := announced(t, s)
		session.Close(0)
		switch alive := harness.Alive(pid); {
		case alive && session.Tracking.Guarantee:
			harness.Breach(t, "tracking %+v, yet process %d is alive", session.Tracking, pid)
		case !alive && status == protocol.Absent:
			t.Errorf("status %s, yet process %d is dead", status, pid)
		}
	},
	"denials": func(t *testing.T, status protocol.ProtectionStatus) {
		s := newScene(t)
		secretOutside(s)
		e := s.Start("")
		reported := make(chan json.RawMessage, 64)
		client.On(e.Client, protocol.Notification[json.RawMessage]{Method: "sandbox/denied"},
			func(raw json.RawMessage) { reported <- raw })
		if result := s.attempt(e, "read", s.OutsidePath("secret")); !result.refused("EACCES") {
			t.Errorf("status %d\n%s", result.status, result.output)
		}
		// The answer to a request follows every notification that was sent
		// before it.
		harness.Call(e, protocol.List, protocol.Empty{})
		if got := len(reported) > 0; got != (status == protocol.Enforced) {
			t.Errorf("status %s, yet denials are reported: %v", status, got)
		}
	},
}

// mustAgree makes sure that an attack was refused if the status is enforced,
// and works if the status admits that nothing is refused.
func mustAgree(t *testing.T, status protocol.ProtectionStatus, result result, works bool) {
	t.Helper()
	if status == protocol.Degraded {
		t.Skipf("degraded by what this kernel lacks: what is left of it has no attack here: %s", result.output)
	}
	if enforced := status == protocol.Enforced; works == enforced || !works && result.status != 1 {
		harness.Breach(t, "the reply says %s, and the attack works: %v; status %d\n%s", status, works, result.status,
			result.output)
	}
}

// unixSocketsClaim connects to a socket with a path outside and to an abstract
// one. Enforced: neither answers; degraded: the path does; absent: both do.
func unixSocketsClaim(t *testing.T, status protocol.ProtectionStatus) {
	s := newScene(t)
	// Short, because a socket's path is limited to 107 bytes.
	dir, err := os.MkdirTemp("", "s")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, err := filepath.EvalSymlinks(dir)
	harness.Must(t, err)
	name := fmt.Sprintf("sidecar-test-honesty-%d-%d", os.Getpid(), sockets.Add(1))
	for _, address := range []string{path + "/daemon", "@" + name} {
		listener, err := net.Listen("unix", address)
		harness.Must(t, err)
		t.Cleanup(func() { listener.Close() })
	}
	e := s.Start("")
	byPath, abstract := s.attempt(e, "connect", path+"/daemon"), s.attempt(e, "connect-abstract", name)
	if byPath.done() == (status == protocol.Enforced) || abstract.done() != (status == protocol.Absent) {
		harness.Breach(t, "the reply says %s; by path: status %d %s; abstract: status %d %s",
			status, byPath.status, byPath.output, abstract.status, abstract.output)
	}
	if !byPath.done() && !byPath.refused("EACCES") || !abstract.done() && !abstract.refused("EPERM") {
		t.Errorf("not a refusal of the sandbox: %s; %s", byPath.output, abstract.output)
	}
}

// Tests each line of a reply: an attack on what it calls enforced must be
// refused, and what it admits to be open must be open. Each attack on an
// enforced protection has its control in its own test.
func TestTheReplyMatchesWhatIsEnforced(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	s := newScene(t)
	e := s.Start(offline())
	reply := s.attempt(e, "privileges").reply.Sandbox
	if !reply.Applied {
		t.Fatalf("not applied: %+v", reply)
	}
	for name := range claims {
		if _, reported := reply.Protections[name]; !reported {
			t.Errorf("the reply says nothing of %s", name)
		}
	}
	for name, protection := range reply.Protections {
		// Without cgroups, tracking is certain only for sessions that cannot
		// fork away from it. initialize describes all sessions.
		tighter := name == "process_tracking" && protection.Status == protocol.Enforced
		before := e.Hello.Capabilities.Enforcement[name]
		if before.Status != protection.Status && (!tighter || before.Status != protocol.Degraded) {
			t.Errorf("%s: initialize says %s, the reply says %+v", name, before.Status, protection)
		}
		if name == "protected_paths" && protection.Status == protocol.Enforced {
			s.checkMissing(t, before, protection)
		}
		if protection.Detail == "" || protection.Status != protocol.Absent && protection.Mechanism == "" {
			t.Errorf("%s: no detail or no mechanism: %+v", name, protection)
		}
		try, known := claims[name]
		if !known {
			t.Errorf("%s is %s, and no attack tries it", name, protection.Status)
			continue
		}
		t.Run(name+" "+string(protection.Status), func(t *testing.T) {
			t.Parallel()
			try(t, protection.Status)
		})
	}
}

// checkMissing checks the note of a reply about protected paths of the project
// that do not exist, which a program with two threads may create. initialize
// knows no project. None of the named ones may exist.
func (s *scene) checkMissing(t *testing.T, before, reply protocol.Protection) {
	t.Helper()
	if reply == before {
		return
	}
	list, named := strings.CutPrefix(reply.Detail, before.Detail+
		"; these do not exist; creating one is refused; a deliberate race is reported: ")
	if !named || reply.Mechanism != before.Mechanism+", seccomp" {
		t.Errorf("initialize says %+v, the reply says %+v", before, reply)
		return
	}
	list, _, _ = strings.Cut(list, ", and ") // how many more
	for quoted := range strings.SplitSeq(list, ", ") {
		// A long detail is shortened somewhere in the middle.
		path, err := strconv.Unquote(quoted)
		_, name, below := strings.Cut(path, "/"+filepath.Base(s.Project)+"/")
		if err != nil || !below && !strings.Contains(path, "…") {
			harness.Breach(t, "%s is no path of the project", quoted)
		}
		if _, err := os.Lstat(s.ProjectPath(name)); below && !errors.Is(err, fs.ErrNotExist) {
			harness.Breach(t, "%s exists", quoted)
		}
	}
}

// If every protected path exists, the reply is what initialize says.
func TestProtectedPathsThatExistAreNoWeakerThanInitializeSays(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	s := newScene(t)
	harness.Write(t, s.ProjectPath("kept"), "")
	e := s.Start(harness.Settings(harness.Sandbox{"protected_paths": []string{"!*", "kept"}}))
	reply := s.attempt(e, "privileges").reply.Sandbox.Protections["protected_paths"]
	if before := e.Hello.Capabilities.Enforcement["protected_paths"]; reply != before {
		t.Errorf("initialize says %+v, the reply says %+v", before, reply)
	}
}

// Compares the summary with its parts: "full" only if every protection that the
// settings ask for is enforced. Reports of denials protect nothing.
func TestTheSumOfAReplyIsThatOfItsParts(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	e := s.Start("")
	reply := s.attempt(e, "privileges").reply.Sandbox
	var weak []string
	for name, protection := range reply.Protections {
		// These settings leave the network on, grant no host, no cache and no
		// directory for temporary files, and hide nothing.
		requested := !slices.Contains([]string{
			"network", "network_hosts", "toolchain_caches", "temporary_files", "hidden_paths", "denials", "limits",
		}, name)
		if requested && protection.Status != protocol.Enforced {
			weak = append(weak, name)
		}
	}
	if full := reply.Status == protocol.SandboxFull; full != (len(weak) == 0) {
		t.Errorf("status %q with weak parts %v", reply.Status, weak)
	}
	// What a project lacks is no weakness: with the default settings a machine
	// that enforces everything gives "full".
	everything := true
	for name, protection := range e.Hello.Capabilities.Enforcement {
		everything = everything && (name == "denials" || name == "limits" || protection.Status == protocol.Enforced)
	}
	if everything && reply.Status != protocol.SandboxFull {
		t.Errorf("status %q on a machine that enforces everything: %+v", reply.Status, reply.Protections)
	}
	off := newScene(t)
	if reply := off.attempt(off.Start(harness.Off()), "privileges").reply.Sandbox; reply.Applied ||
		reply.Status != protocol.SandboxOff ||
		len(reply.Protections) > 0 {
		t.Errorf("control: without a sandbox: %+v", reply)
	}
}

// Grants reading of the whole file system, so that nothing is left to prove a
// refusal with, and writing of the home directory with the settings in it. The
// reply does not call the first enforced. The settings stay as they are, or the
// reply warns.
func TestAGrantOfEverythingIsNotCalledEnforced(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	secretOutside(s)
	e := s.Start(harness.Settings(harness.Sandbox{
		"additional_read_only_paths": []string{"/"}, "additional_read_write_paths": []string{"~"},
		"temporary_files": "shared", // a grant of / leaves out the /tmp of other programs
	}))
	result := s.attempt(e, "read", s.OutsidePath("secret"))
	if !result.done() || !leaked(s, result.output) {
		t.Errorf("the grant of / does not hold: status %d\n%s", result.status, result.output)
	}
	if status := result.reply.Sandbox.Protections["filesystem"].Status; status == protocol.Enforced {
		t.Errorf("the reply says %s", status)
	}
	before := harness.Read(t, s.UserSettings())
	_, status := e.Tool("echo '{}' >" + s.UserSettings())
	warnings := strings.Join(result.reply.Sandbox.Warnings, "\n")
	changed := status == 0 || harness.Read(t, s.UserSettings()) != before
	if changed && !strings.Contains(warnings, s.UserSettings()) {
		t.Errorf("no warning says that the settings can be written from inside: %q", warnings)
	}
	if _, status := e.Tool("echo x >~/control"); status != 0 {
		t.Errorf("control: the home directory cannot be written: %d", status)
	}
}

// offline are settings that ask for everything, the network off included: what
// is not asked for is not promised. Protected are existing paths: for missing
// ones the reply does not exclude a race.
func offline() string {
	return harness.Settings(harness.Sandbox{
		"allow_network": false, "protected_paths": []string{"victim"}, "toolchains": []string{"node"},
		"allowed_hosts": []string{"localhost:1"},
		"hidden_paths":  []string{"none"}, "system_paths": map[string]any{"read_write": []string{
			"/dev/shm", "/dev/null",
		}},
	})
}

// announced waits for the process id that a victim writes, and returns it.
func announced(t testing.TB, s *scene) int {
	t.Helper()
	pid := 0
	harness.Eventually(t, "victim writes its process id", func() bool {
		var err error
		pid, err = strconv.Atoi(harness.Read(t, s.ProjectPath("pid")))
		return err == nil
	})
	return pid
}
