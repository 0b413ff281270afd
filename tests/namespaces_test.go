package tests

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What namespaces change for programs inside, and what they must not change.

// needNamespaces skips a test if sessions have none.
func needNamespaces(t *testing.T) {
	t.Helper()
	if !harness.Namespaces(t) {
		harness.Skip(t, "user_namespaces", "sessions get no namespaces of their own")
	}
}

func TestTerminal_ProgramsThatOpenTerminalsWork(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	for _, test := range []struct{ program, line string }{
		{"script", `script -qec tty /dev/null`},
		{"python3", `/usr/bin/python3 -c 'import pty; pty.spawn(["tty"])'`},
		{"expect", `expect -c 'spawn -noecho tty; expect eof'`},
		{
			"tmux",
			`tmux -S "$PWD/t" -f /dev/null new-session -d 'tty >tty; sleep 100' && ` +
				`for i in $(seq 6000); do [ -s tty ] && break; sleep 0.01; done; cat tty; tmux -S "$PWD/t" kill-server`,
		},
		{"bash", `script -qec "bash --norc -ic 'sleep 100 & jobs; kill %1; exec 3<>/dev/tty; tty'" /dev/null`},
	} {
		t.Run(test.program, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/usr/bin/" + test.program); err != nil {
				harness.Skip(t, test.program, err.Error())
			}
			s := e.For(t).Spawn(protocol.SpawnParams{Command: "tty; " + test.line})
			s.Exit()
			names := regexp.MustCompile(`/dev/pts/(\d+)`).FindAllString(s.Output(), -1)
			if len(names) != 2 || names[0] != "/dev/pts/0" || names[1] == names[0] ||
				strings.Contains(s.Output(), "no job control") {
				t.Errorf("got %q", s.Output())
			}
		})
	}
}

// asUser makes a sidecar run as a user that is not root, who gets the world's
// files.
func asUser(t *testing.T, w *harness.World) (name string, wrap func(*exec.Cmd)) {
	t.Helper()
	if os.Geteuid() != 0 {
		self, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		return self.Username, func(*exec.Cmd) {}
	}
	other, err := user.Lookup("daemon")
	if err != nil {
		harness.Skip(t, "mapped_user", err.Error())
	}
	uid, _ := strconv.Atoi(other.Uid)
	gid, _ := strconv.Atoi(other.Gid)
	root := filepath.Dir(w.Home)
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return other.Username, func(command *exec.Cmd) {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, gid)
		})
		if err != nil {
			t.Fatal(err)
		}
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}

func TestNamespaces_OfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	w := harness.NewWorld(t)
	name, wrap := asUser(t, w)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: wrap})
	if got := e.Hello.Capabilities.Enforcement["network"].Mechanism; !strings.Contains(got, "namespace") {
		harness.Skip(t, "user_namespaces", "an ordinary user gets none: "+got)
	}
	lines := map[string]string{
		"id -un":                                        name,
		"stat -c %U .":                                  name,
		"stat -c %U /etc":                               "nobody", // root is not mapped, which is visible here
		"grep CapEff /proc/self/status":                 "CapEff:\t0000000000000000",
		"grep CapAmb /proc/self/status":                 "CapAmb:\t0000000000000000",
		"grep NoNewPrivs /proc/self/status":             "NoNewPrivs:\t1",
		"cat /etc/hostname >/dev/null && echo readable": "readable",
		"git init -q r && cd r && git status --short && echo clean":                     "clean",
		"ssh -V 2>&1 | cut -c 1-7":                                                      "OpenSSH",
		"ssh -G somewhere 2>/dev/null | grep ^port":                                     "port 22",
		"zsh -fc 'autoload -Uz compinit; compinit -D && echo complete'":                 "complete",
		"zsh -fc 'autoload -Uz compaudit; compaudit && echo safe'":                      "safe",
		"mount -t tmpfs none . 2>/dev/null || echo no mounts":                           "no mounts",
		"umount /dev/pts 2>/dev/null || echo no umounts":                                "no umounts",
		"nsenter --mount=/proc/1/ns/mnt true 2>/dev/null || echo no entering":           "no entering",
		"python3 -c 'import os; os.chroot(\".\")' 2>/dev/null || echo no chroot":        "no chroot",
		"f=$(mktemp) && chmod 4755 $f && chown 0 $f 2>/dev/null || echo no giving away": "no giving away",
		"cd / && cd \"$OLDPWD\" && pwd -P":                                              w.Project,
	}
	const end = "-- end of the line --\n"
	sorted := slices.Sorted(maps.Keys(lines))
	output, _ := e.Tool("(" + strings.Join(sorted, "); echo '"+strings.TrimSpace(end)+"'; (") + ")")
	answers := strings.Split(output, end)
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d lines: %s", len(answers), len(lines), output)
	}
	for i, line := range sorted {
		if got := strings.TrimSpace(answers[i]); got != lines[line] {
			t.Errorf("%s: got %q, want %q", line, got, lines[line])
		}
	}
}

// A repository of another user is "dubious" to git, in a session as outside:
// namespaces do not change whom it trusts.
func TestNamespaces_GitTrustsTheSameOwnersAsOutside(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root can make a repository of somebody else's")
	}
	try := func(settings string) string {
		w := harness.NewWorld(t)
		_, wrap := asUser(t, w)
		e := harness.Start(t, w, harness.Options{Settings: settings, Wrap: func(command *exec.Cmd) {
			wrap(command)
			foreign := filepath.Join(w.Project, "foreign") // made after the rest was given to the user
			if out, err := exec.Command("git", "init", "-q", foreign).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}})
		output, _ := e.Tool("git -C foreign status 2>&1 | grep -o 'dubious ownership'; git -c safe.directory='*' -C " +
			"foreign status --short && echo trusted")
		return output
	}
	if inside, outside := try(harness.Defaults(nil)), try(harness.Off()); inside != outside ||
		!strings.Contains(inside, "dubious") {
		t.Errorf("inside %q, outside %q", inside, outside)
	}
}

// ssh refuses configuration files of owners other than root and the user. In a
// user namespace root's files belong to nobody.
func TestNamespaces_SSHTakesTheSystemsConfiguration(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root can put a file into /etc/ssh")
	}
	const dir = "/etc/ssh/ssh_config.d"
	if _, err := os.Stat(dir); err != nil {
		harness.Skip(t, "ssh", err.Error())
	}
	w := harness.NewWorld(t)
	name, wrap := asUser(t, w)
	self, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	// Two files, one of which includes another by a symlink, as Fedora's does,
	// in mounts that only the sidecar sees.
	prepare := `set -e
mount -t tmpfs none ` + dir + `
mkdir ` + dir + `/more
echo "SendEnv FROM_MORE" >` + dir + `/more/real
ln -s more/real ` + dir + `/link
echo "SendEnv FROM_FIRST" >` + dir + `/10-first.conf
printf 'Include %s\n' ` + dir + `/link >` + dir + `/20-second.conf
exec setpriv --reuid ` + self.Uid + ` --regid ` + self.Gid + ` --clear-groups "$@"`
	within := func(command *exec.Cmd) {
		wrap(command)
		command.Args = append([]string{"unshare", "--mount", "sh", "-c", prepare, "sh", command.Path},
			command.Args[1:]...)
		command.Path, command.SysProcAttr = "/usr/bin/unshare", nil
	}
	control := exec.Command("/usr/bin/unshare", "--user", "--map-current-user", "ssh", "-G", "somewhere")
	control.Dir = "/"
	within(control)
	if out, err := control.CombinedOutput(); err == nil || !strings.Contains(string(out), "Bad owner") {
		harness.Skip(t, "ssh_ownership", "ssh in a user namespace says: "+string(out))
	}
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: within})
	output, status := e.Tool("ssh -G somewhere | grep -i sendenv; ssh -G somewhere >/dev/null")
	if status != 0 || !strings.Contains(output, "FROM_FIRST") || !strings.Contains(output, "FROM_MORE") {
		t.Errorf("status %d: %s", status, output)
	}
	if output, status := e.Tool("echo ours >" + dir + "/10-first.conf"); status == 0 {
		t.Errorf("the copies can be written: %s", output)
	}
}
