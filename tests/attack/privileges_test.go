//go:build linux

package attack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// requireRoot skips tests that only root can prepare, or that are a danger from
// root alone.
func requireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the tests run as an ordinary user")
	}
}

// Mounts as root: a tmpfs, and the outside onto a directory of the project.
// CAP_SYS_ADMIN is gone, and Landlock refuses mounts too. It happens in a mount
// namespace, so that the control does not change the machine.
func TestRootCannotMount(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	harness.Require(t, "filesystem")
	for name, actions := range map[string]func(s *scene) []string{
		"tmpfs": func(s *scene) []string { return []string{"mount-tmpfs", s.ProjectPath("mount")} },
		"bind":  func(s *scene) []string { return []string{"bind", s.Outside, s.ProjectPath("mount")} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try := func(settings string) result {
				s := newScene(t)
				harness.MakeDir(t, s.ProjectPath("mount"))
				private := func(command *exec.Cmd) {
					command.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
				}
				e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: private})
				return s.attempt(e, actions(s)...)
			}
			if control := try(harness.Off()); !control.done() {
				t.Fatalf("control: without a sandbox it must work: status %d\n%s", control.status, control.output)
			}
			if result := try(""); !result.refused("EPERM") {
				t.Errorf("want a refusal with EPERM, got status %d\n%s", result.status, result.output)
			}
		})
	}
}

// Makes a user namespace, in which every process has all capabilities, and
// binds the outside onto a directory of the project there. Landlock refuses
// mounts whatever the capabilities.
func TestAUserNamespaceDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	try := func(settings string) result {
		s := newScene(t)
		secretOutside(s)
		harness.MakeDir(t, s.ProjectPath("mount"))
		// In the namespace no id is mapped, so the process may not enter a
		// directory of mode 0700.
		for _, dir := range []string{s.Project, s.Outside, s.ProjectPath("mount"), s.Victim} {
			harness.Must(t, os.Chmod(dir, 0o755))
		}
		harness.Must(t, os.Chmod(s.OutsidePath("secret"), 0o644))
		return s.attempt(s.Start(settings), "own-mounts", "bind", s.Outside, s.ProjectPath("mount"), "+", "read",
			s.ProjectPath("mount/secret"))
	}
	if control := try(harness.Off()); !control.done() || !leaked(nil, control.output) {
		harness.Skip(t, "user_namespaces", strings.TrimSpace(control.output))
	}
	if result := try(""); !result.refused("EPERM") || leaked(nil, result.output) {
		t.Errorf("want a refusal with EPERM, got status %d\n%s", result.status, result.output)
	}
}

// Reads the capabilities of root inside, after another execve(2). Mounting,
// tracing, modules, raw disks, device nodes, opening by handle and BPF are gone
// from the permitted and the bounding set. no_new_privs is set.
func TestRootInsideHasNoDangerousCapability(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	harness.Require(t, "filesystem")
	dangerous := []uint{
		unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_MKNOD,
		unix.CAP_DAC_READ_SEARCH,
		unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_BOOT, unix.CAP_MAC_ADMIN,
		unix.CAP_SYSLOG,
	}
	s := newScene(t)
	result := s.attempt(s.Start(""), "exec", s.Victim, "privileges")
	if field(t, result.output, "NoNewPrivs") != 1 {
		harness.Breach(t, "no_new_privs is not set:\n%s", result.output)
	}
	control := newScene(t)
	before := control.attempt(control.Start(harness.Off()), "exec", control.Victim, "privileges")
	for _, set := range []string{"CapEff", "CapPrm", "CapBnd"} {
		for _, capability := range dangerous {
			if field(t, result.output, set)&(1<<capability) != 0 {
				harness.Breach(t, "%s holds capability %d", set, capability)
			}
		}
		if field(t, before.output, set)&(1<<unix.CAP_SYS_ADMIN) == 0 {
			t.Errorf("control: without a sandbox root must have CAP_SYS_ADMIN in %s:\n%s", set, before.output)
		}
	}
}

// Runs programs that gain privileges when they are executed, as an ordinary
// user: one with the setuid bit of root, and one with CAP_SYS_ADMIN as a file
// capability. no_new_privs prevents the gain; the programs run as the user.
func TestSetuidProgramsGainNothing(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	harness.Require(t, "filesystem")
	const nobody = 65534
	try := func(settings, program string) result {
		s := newScene(t)
		for _, name := range []string{"setuid", "capable"} {
			s.CopyVictim(s.ProjectPath(name))
		}
		// A test's own directory is closed to other users.
		harness.Must(t, os.Chmod(filepath.Dir(s.Home), 0o755))
		harness.Must(t, os.Chmod(filepath.Dir(filepath.Dir(s.Home)), 0o755))
		asNobody := func(command *exec.Cmd) {
			harness.Must(t, filepath.WalkDir(filepath.Dir(s.Home), func(path string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(path, nobody, nobody)
			}))
			// chown(2) clears the setuid bit and file capabilities.
			harness.Must(t, os.Chown(s.ProjectPath("setuid"), 0, 0))
			harness.Must(t, os.Chmod(s.ProjectPath("setuid"), 0o755|os.ModeSetuid))
			harness.Must(t, exec.Command(s.Victim, "file-capability", s.ProjectPath("capable")).Run())
			command.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: asNobody})
		return s.attempt(e, "exec", s.ProjectPath(program), "privileges")
	}
	for program, gained := range map[string]func(output string) bool{
		"setuid": func(output string) bool {
			return strings.Contains(strings.Join(strings.Fields(output), " "), "Uid: 65534 0 0 0")
		},
		"capable": func(output string) bool { return field(t, output, "CapEff")&(1<<unix.CAP_SYS_ADMIN) != 0 },
	} {
		if control := try(harness.Off(), program); !control.done() || !gained(control.output) {
			t.Fatalf("control: %s: without a sandbox the program must gain: status %d\n%s", program, control.status,
				control.output)
		}
		if result := try("", program); !result.done() || gained(result.output) ||
			field(t, result.output, "CapEff") != 0 {
			t.Errorf("%s: the program must run and gain nothing: status %d\n%s", program, result.status, result.output)
		}
	}
}

// Gives, as root, a copy of a program a file capability that the session
// dropped, and runs it. The bounding set and no_new_privs keep it out.
func TestFileCapabilitiesDoNotBringBackWhatWasDropped(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	harness.Require(t, "filesystem")
	try := func(settings string) result {
		s := newScene(t)
		s.CopyVictim(s.ProjectPath("capable"))
		return s.attempt(s.Start(settings), "file-capability", s.ProjectPath("capable"), "then", "exec",
			s.ProjectPath("capable"),
			"privileges")
	}
	if control := try(harness.Off()); !control.done() ||
		field(t, control.output, "CapEff")&(1<<unix.CAP_SYS_ADMIN) == 0 {
		t.Fatalf("control: without a sandbox root must have it: status %d\n%s", control.status, control.output)
	}
	result := try("")
	if result.done() && field(t, result.output, "CapEff")&(1<<unix.CAP_SYS_ADMIN) != 0 {
		harness.Breach(t, "THE ATTACK WORKS:\n%s", result.output)
	}
	if !result.done() && !result.refused("EPERM") {
		t.Errorf("want the program without the capability, or EPERM; got status %d\n%s", result.status, result.output)
	}
}
