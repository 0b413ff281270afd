//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/containers"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/kernels/result"
)

// user is the ordinary user's id.
const user = 1000

// context is who runs the suites, and in which cgroup.
type context struct {
	order
	name string
	uid  int
	// cgroup is the directory below the mount; delegated gives it to the user.
	cgroup    string
	delegated bool
	// namespaces is how many user namespaces the machine allows; 0 on systems
	// that forbid them.
	namespaces int
	// place is where the context is besides; "": on the machine itself. Elsewhere
	// only doctor runs, because the controls of many attacks do not work.
	place string
	// never are the features that tests cannot have in this context on any
	// kernel.
	never string
}

// The machine has no compiler, no init system, and only some programs.
const never = "go systemd sudo script ssh network_interface vsock "

func contexts() []context {
	const many = 1000
	return []context{
		{name: "root", cgroup: "root", namespaces: many, never: never},
		{name: "user-delegated", uid: user, cgroup: "delegated/leaf", delegated: true, namespaces: many, never: never +
			"root audit_log"},
		{name: "user-plain", uid: user, cgroup: "plain", namespaces: many, never: never + "root audit_log"},
		{name: "user-no-namespaces", uid: user, cgroup: "plain", never: never + "root audit_log user_namespaces"},
		{name: "docker", cgroup: "container", place: docker, namespaces: many},
		{name: "devcontainer", cgroup: "container", place: devcontainer, namespaces: many},
		{name: "podman", uid: user, cgroup: "plain", place: podman, namespaces: many},
		{name: "ubuntu", uid: user, cgroup: "plain", place: ubuntu, namespaces: many},
	}
}

// The places where agents live, beside whole machines.
const (
	// docker is a container whose root has few capabilities, a read-only cgroup
	// tree, and a filter that refuses what Docker's default one refuses.
	docker = "docker"
	// devcontainer is the same without a filter, as our feature starts it.
	devcontainer = "devcontainer"
	// podman is a container that an ordinary user has made; see package
	// containers.
	podman = "podman"
	// ubuntu is a machine where AppArmor lets users make namespaces and refuses
	// every mount in them.
	ubuntu = "ubuntu"
)

// possible reports whether the machine has the programs that make the context. One
// of another architecture has none.
func (c context) possible() bool {
	_, err := os.Stat("/usr/bin/unshare")
	return c.place != podman || err == nil
}

func (c context) run(send func(result.Line)) {
	if err := c.prepare(); err != nil {
		send(result.Line{Note: fmt.Sprintf("%s: %v", c.name, err)})
	}
	if doctor, err := c.doctor(); err != nil {
		send(result.Line{Note: fmt.Sprintf("%s: doctor: %v", c.name, err)})
	} else {
		send(result.Line{Doctor: doctor})
	}
	for _, suite := range c.suites {
		if c.runs(suite) {
			send(result.Line{Run: c.test(suite)})
		}
	}
}

func (c context) dir() string { return filepath.Join(c.cgroups(), c.cgroup) }

func (c context) prepare() error {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte(strconv.Itoa(c.namespaces)), 0); err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir(), 0o755); err != nil {
		return err
	}
	// What the kernel lacks is not enabled. A write of several would enable none.
	for _, dir := range []string{c.cgroups(), filepath.Dir(c.dir())} {
		for _, controller := range []string{"+memory", "+pids", "+cpu"} {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controller), 0)
		}
	}
	if !c.delegated {
		return nil
	}
	// A subtree is delegated, and the user starts in its leaf: moving between
	// two cgroups needs the right to their common ancestor.
	for dir := c.dir(); dir != c.cgroups(); dir = filepath.Dir(dir) {
		for _, file := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
			if err := os.Chown(filepath.Join(dir, file), c.uid, c.uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (c context) home() string {
	if c.uid == 0 {
		return "/home/root"
	}
	return "/home/user"
}

// command runs a program in the context. This program enters it in a second
// process, because a process must be in its cgroup before it gives up root.
func (c context) command(dir, program string, args ...string) *exec.Cmd {
	enter, line := "enter", append([]string{program}, args...)
	const victim = "/programs/tests/victim"
	switch c.place {
	case docker:
		enter, line = "container", append([]string{victim, "as-container"}, line...)
	case devcontainer:
		enter = "container"
	case podman:
		line = containers.Podman(victim, line...)
		line[0] = "/usr/bin/" + line[0]
	case ubuntu:
		line = append([]string{victim, "as-ubuntu"}, line...)
	}
	command := exec.Command("/init", append([]string{
		enter, filepath.Join(c.dir(), "cgroup.procs"), strconv.Itoa(c.uid),
	}, line...)...)
	command.Dir = dir
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + c.home(), "TERM=linux", "LANG=C.UTF-8",
		"SHELL=/bin/bash",
		"CI=true", "SIDECAR_MISSING=" + strings.Join([]string{c.never, c.without, c.missing[c.name]}, " "),
		"SIDECAR_BINARY=" + sidecar, "SIDECAR_PROGRAMS=/programs",
	}
	if (c.delegated || c.name == "root") && !c.hybrid {
		// A test that could not limit memory would otherwise show nothing.
		command.Env = append(command.Env, "SIDECAR_HAS=memory_limits")
	}
	return command
}

// enter moves this process into a cgroup, becomes the user, and executes a
// program. It returns only an error.
func enter(args []string) error {
	procs, uid, program := args[0], args[1], args[2]
	if err := os.WriteFile(procs, []byte("0"), 0); err != nil {
		return err
	}
	id, err := strconv.Atoi(uid)
	if err != nil {
		return err
	}
	if id != 0 {
		if err := errors.Join(unix.Setgroups(nil), unix.Setresgid(id, id, id), unix.Setresuid(id, id, id)); err != nil {
			return err
		}
	}
	return syscall.Exec(program, args[2:], os.Environ())
}
