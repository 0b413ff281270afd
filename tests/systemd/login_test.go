package systemd

import (
	"cmp"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// managers is where Debian and Fedora keep systemd and its parts, which are not
// in PATH.
const managers = "/usr/lib/systemd"

// otherManagers names a directory that replaces managers in the namespaces of
// the tests: another version of systemd. The program under-bullseye makes it.
const otherManagers = "SIDECAR_SYSTEMD"

// setUp turns a root shell into the user's systemd: $1 cgroup, $2 user, $3
// runtime directory, $4 home, $5 its directory, $6 what replaces that, or "".
// The cgroup belongs to the user, so that the manager may move processes below
// it, as the system's manager does on its behalf on a real machine. Versions
// before 250 find the root of the hierarchy by the cgroup of process 1. That is
// not visible in the namespace, so it is set to the place that it has on a real
// machine.
const setUp = `
set -e
chown "$2" "$1" "$1"/cgroup.{procs,subtree_control,threads}
echo $$ >"$1/cgroup.procs"
exec unshare --mount --cgroup --propagation private bash -c '
set -e
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/manager /sys/fs/cgroup/login
chown -R "$2" /sys/fs/cgroup/manager
echo $$ >/sys/fs/cgroup/manager/cgroup.procs
mount -t tmpfs -o mode=755 tmpfs /run
echo 0::/init.scope >/run/first
mount --bind /run/first /proc/1/cgroup
[ -z "$6" ] || mount --bind "$6" "$5"
mkdir -p /run/systemd/system "$3"
chown "$2" "$3"
chmod 700 "$3"
exec setpriv --reuid "$2" --regid "$(id -g "$2")" --clear-groups --bounding-set=-all \
	env -i HOME="$4" USER="$2" PATH=/usr/bin:/bin XDG_RUNTIME_DIR="$3" "$5/systemd" --user --log-target=console
' - "$@"
`

// logIn turns a root shell into a command in the user's login session: $1
// cgroup, $2 user, $3 the manager's process.
const logIn = `
set -e
echo $$ >"$1/login/cgroup.procs"
user=$2 manager=$3
shift 3
exec nsenter --target "$manager" --mount --cgroup \
	setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --bounding-set=-all "$@"
`

// busUnits make the manager listen for a message bus and start it on demand.
// Distributions have units of these names in a package that many machines lack.
// The bus itself, dbus-daemon, is on most.
var busUnits = map[string]string{
	"dbus.socket": "[Socket]\nListenStream=%t/bus\n",
	"dbus.service": "[Unit]\nRequires=dbus.socket\n[Service]\nType=notify\nNotifyAccess=main\n" +
		"ExecStart=/usr/bin/dbus-daemon --session --address=systemd: --nofork --nopidfile --systemd-activation\n",
	"default.target": "[Unit]\nWants=dbus.socket\nAfter=dbus.socket\n",
}

// login is a login session of an ordinary user in which no process runs yet.
type login struct {
	user    string
	runtime string // XDG_RUNTIME_DIR, in the namespace
	cgroup  string // as seen from outside; "login" and "manager" are below it
	manager int
}

// newLogin starts the user's systemd and waits for it. All of it ends with the
// test.
func newLogin(t *testing.T) *login {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "systemd", "only root can start one for another user")
	}
	other := os.Getenv(otherManagers)
	for _, program := range []string{filepath.Join(cmp.Or(other, managers), "systemd"), "/usr/bin/dbus-daemon"} {
		if _, err := os.Stat(program); err != nil {
			harness.Skip(t, "systemd", err.Error())
		}
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		harness.Skip(t, "systemd", err.Error())
	}
	l := &login{user: nobody.Username, runtime: "/run/user/" + nobody.Uid, cgroup: newCgroup(t)}
	home, err := os.MkdirTemp("", "login-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	for name, unit := range busUnits {
		harness.Write(t, filepath.Join(home, ".config", "systemd", "user", name), unit)
	}
	give(t, l.user, home)
	log := &harness.Buffer{}
	command := exec.Command("bash", "-c", setUp, "-", l.cgroup, l.user, l.runtime, home, managers, other)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	l.manager = command.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		removeCgroup(t, l.cgroup)
		if t.Failed() {
			t.Logf("log of systemd:\n%s", log)
		}
	})
	for _, socket := range []string{"systemd/private", "bus"} {
		path := filepath.Join("/proc", strconv.Itoa(l.manager), "root", l.runtime, socket)
		harness.Eventually(t, "there is a socket "+socket, func() bool {
			select {
			case <-ended:
				t.Fatalf("systemd has ended:\n%s", log)
			default:
			}
			_, err := os.Lstat(path)
			return err == nil
		})
	}
	running, err := os.Stat(filepath.Join("/proc", strconv.Itoa(l.manager), "exe"))
	if err != nil {
		t.Fatal(err)
	}
	if wanted, err := os.Stat(filepath.Join(cmp.Or(other, managers), "systemd")); err != nil ||
		!os.SameFile(running, wanted) {
		t.Fatalf("another systemd answers than that in %q: %v", other, err)
	}
	return l
}

// edit starts an editor's sidecar in the login session, as its user.
func (l *login) edit(t *testing.T, settings string, env ...string) *harness.Editor {
	t.Helper()
	return l.editThrough(t, nil, settings, env...)
}

// editThrough is edit with another command that runs the sidecar's.
func (l *login) editThrough(t *testing.T, through []string, settings string, env ...string) *harness.Editor {
	t.Helper()
	root, err := os.MkdirTemp("", "login-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	w := &harness.World{
		Home: filepath.Join(root, "home"), Project: filepath.Join(root, "project"),
		Outside: filepath.Join(root, "outside"),
	}
	for _, dir := range []string{w.Home, w.Project, w.Outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return harness.Start(t, w, harness.Options{Settings: settings, Env: env, Wrap: func(command *exec.Cmd) {
		give(t, l.user, root)
		bash, err := exec.LookPath("bash")
		if err != nil {
			t.Fatal(err)
		}
		command.Path, command.Args = bash, slices.Concat(
			[]string{bash, "-c", logIn, "-", l.cgroup, l.user, strconv.Itoa(l.manager)}, through, command.Args)
	}})
}

// give changes the owner of a tree to the user.
func give(t *testing.T, user, root string) {
	t.Helper()
	if out, err := exec.Command("chown", "-R", user+":", root).CombinedOutput(); err != nil {
		t.Fatalf("give %s to %s: %v: %s", root, user, err, out)
	}
}
