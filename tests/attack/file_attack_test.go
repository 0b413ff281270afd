//go:build linux

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// fileAttack is the attack of a file, carried out by an account.
type fileAttack struct {
	file      harness.CaseFile
	as        account
	sandboxed bool
	wrap      string
	shared    *sidecars
}

// carryOut plays the attack in a world of its own and returns the result for
// the matrix.
func (a fileAttack) carryOut(t *testing.T) string {
	t.Helper()
	w := a.newWorld(t)
	outside := a.script(t, w, "prepare")
	// A file, because what it leaves running keeps its output open.
	said, err := os.Create(filepath.Join(filepath.Dir(w.Home), "prepared"))
	harness.Must(t, err)
	t.Cleanup(func() { _ = said.Close() })
	outside.Stdout, outside.Stderr = said, said
	harness.Must(t, outside.Start())
	t.Cleanup(func() {
		_ = unix.Kill(-outside.Process.Pid, unix.SIGKILL) // what it left running; mostly nothing
		cleanup := a.script(t, w, "cleanup")
		if output, err := cleanup.CombinedOutput(); err != nil {
			t.Errorf("cleanup: %v\n%s", err, output)
		}
	})
	if err := outside.Wait(); err != nil {
		text, _ := os.ReadFile(said.Name())
		t.Fatalf("prepare: %v\n%s", err, text)
	}
	e := a.editor(t, w)
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Kind(a.file.Key("kind")), Command: "/bin/bash", Args: []string{"attack.sh"}, Cwd: w.Project,
		ProjectDir: w.Project, Env: map[string]string{"PATH": a.path(w)},
	})
	session.Exit()
	if session.Sandbox.Applied != a.sandboxed {
		t.Fatalf("sandbox applied: %v", session.Sandbox.Applied)
	}
	if file := a.file.Key("target"); file != "" {
		if err := targetRuns(filepath.Join(w.Project, file)); err != nil {
			t.Error(err)
		}
	}
	review := session.Close(0).Review
	output := filepath.Join(filepath.Dir(w.Home), "output")
	harness.Must(t, os.WriteFile(output, []byte(session.Output()), 0o644))
	harm := a.script(t, w, "harm")
	harm.Env = append(harm.Env, "OUTPUT="+output, "CHECKS="+strconv.Itoa(a.checks()))
	saw, err := harm.CombinedOutput()
	return a.judge(t, session, err == nil, string(saw), review)
}

// targetRuns returns an error unless a process runs whose id is in a file. One
// that has ended is not found, which must not count as a refusal.
func targetRuns(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && !harness.Alive(pid) {
		err = fmt.Errorf("the target %d has ended, so nothing was refused", pid)
	}
	return err
}

// An attack on a process that has ended shows nothing.
func TestTargetRuns(t *testing.T) {
	t.Parallel()
	const nobody = 1 << 22 // PID_MAX_LIMIT, which no process has (proc_sys_kernel(5))
	for text, runs := range map[string]bool{
		fmt.Sprintln(os.Getpid()): true, fmt.Sprintln(nobody): false, "": false, "none": false,
	} {
		file := filepath.Join(t.TempDir(), "pid")
		harness.Write(t, file, text)
		if err := targetRuns(file); (err == nil) != runs {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// checks is how often, 50 times a second, a script checks for an effect that
// may take a moment. Without a sandbox the effect must come. With one, an
// effect that comes later than this is missed.
func (a fileAttack) checks() int {
	if a.sandboxed {
		return 15
	}
	return 50 * int(harness.Timeout.Seconds())
}

// judge compares the effect with the reply.
func (a fileAttack) judge(
	t *testing.T, session *harness.Session, harm bool, said string, review []protocol.Finding,
) string {
	t.Helper()
	if !a.sandboxed {
		if !harm {
			t.Fatalf("control: without a sandbox the attack must work; it printed:\n%s\nand the harm:\n%s",
				session.Output(), said)
		}
		return cellWorks
	}
	protection, status := a.file.Key("stops"), protocol.Enforced
	if protection != "always" {
		reported, known := session.Sandbox.Protections[protection]
		if !known {
			t.Fatalf("no protection is called %q", protection)
		}
		status = reported.Status
	}
	held := status == protocol.Enforced || status == protocol.Degraded && a.file.Key("holds") == "degraded"
	refusal := a.file.Key("refusal")
	if own := a.file.Key("refusal_tree"); own != "" &&
		session.Sandbox.Protections["file_tree"].Status == protocol.Enforced {
		refusal = own
	}
	switch {
	case harm && a.reported(review):
		return cellReported
	case harm && held:
		harness.Breach(t, "THE ATTACK WORKS, by %s under %q, and the reply says that %s is %s; it printed:\n%s",
			a.as.name, a.wrap, protection, status, session.Output())
		return cellHole
	case harm:
		return cellSaid
	case held && !regexp.MustCompile(refusal).MatchString(session.Output()):
		t.Errorf("not refused with %q, by %s under %q; it printed:\n%s", refusal, a.as.name, a.wrap,
			session.Output())
	}
	return cellStopped
}

// reported says whether the review names what the attack left.
func (a fileAttack) reported(review []protocol.Finding) bool {
	pattern := a.file.Key("review")
	if pattern == "" {
		return false
	}
	var text strings.Builder
	for _, finding := range review {
		text.WriteString(finding.Message + "\n")
	}
	return regexp.MustCompile(pattern).MatchString(text.String())
}

// newWorld makes one that belongs to the account, in a directory that every
// user may enter.
func (a fileAttack) newWorld(t testing.TB) *harness.World {
	t.Helper()
	root, err := os.MkdirTemp("", "sidecar-attack-")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	root, err = filepath.EvalSymlinks(root)
	harness.Must(t, err)
	harness.Must(t, os.Chmod(root, 0o755))
	w := &harness.World{Home: root + "/home", Project: root + "/project", Outside: root + "/outside"}
	for _, dir := range []string{w.Home, w.Project, w.Outside, w.Project + "/bin", w.Home +
		"/.config/sandbox-sidecar"} {
		harness.MakeDir(t, dir)
	}
	harness.Victim(t, "tests/victim", w.Project+"/bin/victim")
	if program := a.file.Key("program"); program != "" {
		path := filepath.Join(w.Project, program)
		harness.CopyProgram(t, harness.Binary(t), path)
		harness.Must(t, os.Chmod(path, 0o755)) // for accounts other than the owner
	}
	harness.Write(t, w.Project+"/attack.sh", a.preamble(t, w)+a.file.Section("attack"))
	if a.as.credential != nil {
		harness.Must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || path == root {
				return err
			}
			return os.Lchown(path, int(a.as.credential.Uid), int(a.as.credential.Gid))
		}))
	}
	return w
}

// preamble are the variables of every script, and a function that waits until a
// command succeeds, which also ends.
func (a fileAttack) preamble(t testing.TB, w *harness.World) string {
	return fmt.Sprintf(`PROJECT='%s' OUTSIDE='%s' SECRET='%s' SIDECAR='%s'
await() {
	local tries=0
	until "$@"; do [ $((tries += 1)) -lt %d ] || { echo "waited in vain: $*"; exit 1; }; sleep 0.02; done
}
`, w.Project, w.Outside, secretText, harness.Binary(t), 50*int(harness.Timeout.Seconds()))
}

// script is a section as a command of the account, in a process group of its
// own.
func (a fileAttack) script(t testing.TB, w *harness.World, section string) *exec.Cmd {
	command := exec.CommandContext(context.Background(), "/bin/bash", "-c", a.preamble(t, w)+a.file.Section(section))
	command.Env, command.Dir = append(harness.Environ(w), "PATH="+a.path(w)), w.Project
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: a.as.credential}
	return command
}

func (a fileAttack) path(w *harness.World) string {
	return w.Project + "/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
}

// variables are in the sidecar's own environment. Those that are no path must
// not arrive.
func (a fileAttack) variables(w *harness.World) []string {
	return []string{"PATH=" + a.path(w), "SECRET_VARIABLE=" + secretText, "PYTHONSTARTUP=" + w.Outside}
}

// sidecars are those that attacks share: one for each account and circumstance.
// They start when they are needed.
type sidecars struct {
	t   testing.TB // they end with it
	mu  sync.Mutex // guards all
	all map[string]*harness.Editor
}

// touches is what an attack names that it does not have for itself in a shared
// sidecar: its home, the settings, the program and the cgroup.
var touches = regexp.MustCompile(`HOME|~|gitconfig|--global|SIDECAR|PPID|SECRET_VARIABLE|PYTHONSTARTUP|cgroup|/tmp`)

// shares reports whether an attack can share its sidecar. One that ends processes
// could end it. Controls share another one.
func (a fileAttack) shares() bool {
	text := a.file.Key("settings") + a.file.Key("program")
	for _, section := range []string{"prepare", "attack", "harm", "cleanup"} {
		text += touches.FindString(a.file.Section(section))
	}
	return text == "" && a.file.Key("stops") != "signals"
}

// editor is the editor of an attack: one of its own, or a shared one.
func (a fileAttack) editor(t *testing.T, w *harness.World) *harness.Editor {
	t.Helper()
	if !a.shares() {
		return a.start(t, w)
	}
	a.shared.mu.Lock()
	defer a.shared.mu.Unlock()
	key := fmt.Sprint(a.as.name, a.wrap, a.sandboxed)
	if a.shared.all[key] == nil {
		home := fileAttack{as: a.as, wrap: a.wrap, sandboxed: a.sandboxed}
		first := failing{a.shared.t, t}
		a.shared.all[key] = home.start(first, home.newWorld(first))
	}
	return a.shared.all[key].For(t)
}

// failing is a test that makes things for all tests, and that fails for one.
type failing struct {
	testing.TB
	one testing.TB
}

func (f failing) Fatal(args ...any) { f.one.Fatal(args...) }

func (f failing) Fatalf(format string, args ...any) { f.one.Fatalf(format, args...) }

// start starts the account's sidecar.
func (a fileAttack) start(t testing.TB, w *harness.World) *harness.Editor {
	t.Helper()
	settings := harness.Off()
	if a.sandboxed {
		var extra harness.Sandbox
		if text := a.file.Key("settings"); text != "" {
			expand := strings.NewReplacer("$OUTSIDE", w.Outside, "$HOME", w.Home, "$PROJECT", w.Project)
			harness.Must(t, json.Unmarshal([]byte(expand.Replace(text)), &extra))
		}
		settings = harness.Settings(extra)
	}
	return harness.Start(t, w, harness.Options{Settings: settings, Env: a.variables(w), Wrap: func(command *exec.Cmd) {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: a.as.credential}
		if a.as.credential != nil {
			harness.Must(t, os.Lchown(w.UserSettings(), int(a.as.credential.Uid), int(a.as.credential.Gid)))
		}
		if program := a.file.Key("program"); program != "" {
			command.Path = filepath.Join(w.Project, program)
		}
		if a.wrap != "" {
			command.Args = append([]string{"victim", a.wrap, command.Path}, command.Args[1:]...)
			command.Path = w.Project + "/bin/victim"
		}
	}})
}
