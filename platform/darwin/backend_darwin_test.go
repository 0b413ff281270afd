package darwin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	paths "github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// These tests run on macOS only, and none is skipped there: a Mac without a
// working sandbox is a failure.

func backend(t testing.TB) *Backend {
	t.Helper()
	return &Backend{Executable: platformtest.Self(t)}
}

func TestBackend_Conforms(t *testing.T) {
	t.Parallel()
	platformtest.Run(t, backend(t), platformtest.Features{
		Files: true, Truncate: true, Signals: true, UnixSockets: true,
		RootListed: true,
	})
}

func TestBackend_AnswersAsTheTableSays(t *testing.T) {
	t.Parallel()
	t.Logf("%d answers of the kernel are those of the table", platformtest.RunTable(t, backend(t)))
}

// marked is a group's fingerprint for a test. Recognise does what package
// lifecycle's does, for a process that the test chooses.
type marked struct {
	lifecycle.Marked
	fingerprint lifecycle.SessionFingerprint
	recognise   func() error
}

func (m marked) Fingerprint() lifecycle.SessionFingerprint { return m.fingerprint }
func (m marked) Recognise() error                          { return m.recognise() }

// answers asks the kernel about one process by every mark.
func answers(t *testing.T, f lifecycle.SessionFingerprint, pid int) string {
	t.Helper()
	var all []string
	for _, mark := range f.Marks() {
		filter := libsystem.FilterGlobalName
		if mark.Medium == lifecycle.ByPath {
			filter = libsystem.FilterPath
		}
		for _, side := range []string{mark.Denied, mark.Allowed} {
			answer, err := libsystem.Check(pid, string(mark.Medium), filter, side)
			if err != nil {
				t.Errorf("%s %s: %v", mark.Medium, side, err)
			}
			all = append(all, strconv.Itoa(answer))
		}
	}
	return strings.Join(all, " ")
}

// Both kinds of mark are read from outside, in both kinds of profile: 1 and 0
// for a process of the session, 0 and 0 for others.
func TestMarks_AreReadFromOutside(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*policy.Policy{
		"restricted":   platformtest.Policy(t, policy.Rule{Path: "/bin", Access: policy.Read | policy.Execute}),
		"tracked only": {},
	} {
		dir := realDir(t)
		if err := os.Mkdir(filepath.Join(dir, "allow"), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := lifecycle.NewSessionFingerprint(uuid.NewString(), dir)
		if err != nil {
			t.Fatal(err)
		}
		asked := false
		confinement, err := backend(t).Confine(p, platform.Hooks{Mark: marked{fingerprint: f, recognise: func() error {
			asked = true
			return nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		stdin, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		launched, err := platform.Launch(ctx, backend(t), platform.Target{
			Order:       platform.Order{Program: "/bin/cat", Argv: []string{"cat"}, Env: []string{}, Dir: "/"},
			Confinement: confinement, Streams: [3]*os.File{stdin, os.Stderr, os.Stderr}, Start: lifecycle.Start,
			Attr: &syscall.SysProcAttr{Setsid: true},
		})
		cancel()
		stdin.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := answers(t, f, launched.Process.PID()); got != "1 0 1 0" || !asked {
			t.Errorf("%s: inside: %s; asked: %t", name, got, asked)
		}
		if got := answers(t, f, os.Getpid()); got != "0 0 0 0" {
			t.Errorf("%s: outside: %s", name, got)
		}
		theirs.Close()
		if _, err := launched.Process.Wait(false); err != nil {
			t.Error(err)
		}
		for _, answer := range strings.Fields(answersOfTheGone(f, launched.Process.PID())) {
			if answer == "0" {
				t.Errorf("%s: a process that has ended may do something", name)
			}
		}
	}
}

func answersOfTheGone(f lifecycle.SessionFingerprint, pid int) string {
	var all []string
	for _, mark := range f.Marks() {
		if mark.Medium == lifecycle.ByName {
			answer, _ := libsystem.Check(pid, string(mark.Medium), libsystem.FilterGlobalName, mark.Allowed)
			all = append(all, strconv.Itoa(answer))
		}
	}
	return strings.Join(all, " ")
}

// Names that are not ASCII reach the kernel as parameters, and in the pattern
// for missing paths.
func TestProfile_NamesOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Zo\u00eb", "\u65e5\u672c", `quo"te (and) \ back`, "line\nbreak", "dot.+*[x]"} {
		dir := filepath.Join(realDir(t), name)
		if err := os.MkdirAll(filepath.Join(dir, "kept"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := platformtest.Policy(t, policy.Rule{Path: dir, Access: policy.ReadWrite})
		p.Protected = []policy.Protected{
			{Path: dir + "/kept"},
			{Path: dir + "/later" + name},
			{Path: dir + "/never/" + name, Decides: true},
		}
		allowed := []platformtest.Act{{
			Verb: platformtest.Create, Path: dir + "/new",
		}, {Verb: platformtest.List, Path: dir}}
		forbidden := []platformtest.Act{
			{Verb: platformtest.Create, Path: dir + "/kept/new"},
			{Verb: platformtest.MakeDir, Path: dir + "/later" + name},
			{Verb: platformtest.MakeDir, Path: dir + "/LATER" + name},
			{Verb: platformtest.MakeDir, Path: dir + "/never"},
			{Verb: platformtest.MakeDir, Path: dir + "/Never"},
			{Verb: platformtest.Rename, Path: dir + "/kept", Target: dir + "/moved"},
		}
		results, _ := platformtest.Perform(t, backend(t),
			platformtest.Confined(t, backend(t), p, append(allowed, forbidden...)...))
		for i, result := range results {
			if want := i < len(allowed); result.OK() != want || (!want && !result.Refused()) {
				t.Errorf("%q: act %d: %+v", name, i, result)
			}
		}
	}
}

// Each of these programs has failed under some published profile.
func TestEverydayPrograms(t *testing.T) {
	t.Parallel()
	dir, tmp := realDir(t), realDir(t)
	p := defaultPolicy(t, realDir(t), dir, tmp)
	for name, line := range map[string]string{
		"shell":    `test "$(echo ok)" = ok`,
		"zsh":      `zsh -fc 'cat <<< ok'`,
		"pipes":    "yes | head -1 | grep -q y",
		"jobs":     "sleep 30 & kill $!; wait $! || true",
		"realpath": `test "$(cd ` + dir + ` && pwd -P)" = ` + dir,
		"id":       "id -un",
		"git":      "cd " + dir + " && git init -q && git add . && git status --short",
		"python":   "python3 -c 'import json, ssl, subprocess'",
		"clone":    "cd " + dir + " && echo x > b && cp -c b c && cat c",
		"memory":   `python3 -c 'from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=8); m.unlink()'`,
		"mktemp":   `case "$(mktemp)" in ` + tmp + `/*) ;; *) exit 1 ;; esac`,
		"perl":     "perl -e 'print getpwuid($<)'",
		"compiler": "cd " + dir + " && echo 'int main(void){return 0;}' > a.c && cc -o a a.c && ./a",
		"names":    "curl -fsSI https://example.com > /dev/null",
	} {
		order := platformtest.Confined(t, backend(t), p)
		order.Program, order.Argv, order.Dir = "/bin/sh", []string{"sh", "-ec", line}, dir
		order.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + dir, "TMPDIR=" + tmp}
		if output, _, err := platformtest.Output(backend(t), order); err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
	// No setuid program runs in any sandbox of macOS.
	order := platformtest.Confined(t, backend(t), p)
	order.Program, order.Argv = "/bin/sh", []string{"sh", "-c", "/bin/ps"}
	if output, _, err := platformtest.Output(backend(t), order); err == nil {
		t.Errorf("a setuid program runs: %s", output)
	}
}

// The log is best effort, but an idle machine must deliver one denial within
// half a minute of trying.
func TestDenials_AreReadFromTheLog(t *testing.T) {
	t.Parallel()
	denied := make(chan platform.Denial, 64)
	b := backend(t)
	tell := func(d platform.Denial) {
		select {
		case denied <- d:
		default:
		}
	}
	f, err := lifecycle.NewSessionFingerprint(uuid.NewString(), "")
	if err != nil {
		t.Fatal(err)
	}
	p := platformtest.Policy(t, policy.Rule{Path: "/bin", Access: policy.Read | policy.Execute})
	p.OnDenied = policy.Report
	confinement, err := b.Confine(p, platform.Hooks{
		Denied: tell,
		Mark:   marked{fingerprint: f, recognise: func() error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	order := platformtest.Order(t)
	order.Program, order.Argv = "/bin/sh", []string{
		"sh", "-c",
		"while :; do /bin/cat /private/etc/hosts; /bin/sleep 1; done 2>/dev/null",
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	launched, err := platform.Launch(ctx, b, platform.Target{
		Order: order.Order, Confinement: confinement, Streams: [3]*os.File{
			os.Stdin, os.Stderr,
			os.Stderr,
		}, Start: lifecycle.Start,
		Attr: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-launched.Process.PID(), syscall.SIGKILL)
		_, _ = launched.Process.Wait(false)
		_ = launched.Supervision.Close()
	}()
	for {
		select {
		case d := <-denied:
			if d.Process == "cat" && d.Access == platform.RefusedRead && d.Target == "/private/etc/hosts" {
				return
			}
			t.Logf("%+v", d)
		case <-ctx.Done():
			t.Fatal("the denial is not in the log")
		}
	}
}

func TestConfine_RefusesInsideASandbox(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("/usr/bin/sandbox-exec", "-p", "(version 1)(allow default)", platformtest.Self(t),
		"-test.run", "TestConfine_InsideASandbox",
		"-test.v").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "macOS allows only one") {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestConfine_InsideASandbox is run in a sandbox by the test above. Outside a
// sandbox it confines.
func TestConfine_InsideASandbox(t *testing.T) {
	t.Parallel()
	_, err := backend(t).Confine(&policy.Policy{Restricted: true}, platform.Hooks{})
	t.Log(err)
	if answer, _ := libsystem.Check(os.Getpid(), "", libsystem.FilterNone, ""); (err != nil) != (answer == 1) {
		t.Errorf("in a sandbox: %d; %v", answer, err)
	}
}

// defaultPolicy is that of a session with default settings on this Mac.
func defaultPolicy(t testing.TB, home, project, runtimeDir string) *policy.Policy {
	t.Helper()
	p := session(policyOf(t, paths.OS, home, project, byDefault), runtimeDir)
	p.Rules = append(p.Rules, platformtest.Policy(t).Rules...)
	return p
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
