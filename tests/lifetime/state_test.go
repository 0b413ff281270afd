//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// stateLost is how a reply's warning begins if the state directory cannot be
// used.
const stateLost = "the state directory cannot be used"

func warnsOfState(s *harness.Session) bool {
	return slices.ContainsFunc(s.Sandbox.Warnings, func(w string) bool { return strings.HasPrefix(w, stateLost) })
}

// The state directory is removed while the sidecar runs. The next session makes
// it again. Both sessions end with the sidecar: the watchdog or the next
// sidecar kills them.
func TestTheStateDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	for i, by := range []string{"the watchdog", "the next sidecar"} {
		for j, sandbox := range sandboxes {
			if !harness.Turn(t, i+j, len(sandboxes)) {
				continue
			}
			t.Run(by+" "+sandbox.name, func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorld(t)
				e := harness.Start(t, w, harness.Options{Settings: sandbox.settings})
				before := harness.StartEscapees(t, e, protocol.Tool)
				if err := os.RemoveAll(w.State()); err != nil {
					t.Fatal(err)
				}
				after := harness.StartEscapees(t, e, protocol.Tool)
				if warnsOfState(after.Session) {
					t.Errorf("warnings: %q", after.Session.Sandbox.Warnings)
				}
				e.Log.Await(t, "in use again")
				if by == "the watchdog" {
					kill(t, e.Process(), unix.SIGKILL)
				} else {
					killWithWatchdog(t, e)
					harness.Start(t, w, harness.Options{Settings: sandbox.settings})
				}
				before.AwaitPromisedDeath(t)
				after.AwaitPromisedDeath(t)
				if by == "the watchdog" {
					harness.NoTrace(t, w, e.Process())
				}
			})
		}
	}
}

// block puts a file at the place of a directory above the state directory.
func block(t *testing.T, w *harness.World) {
	t.Helper()
	local := filepath.Join(w.Home, ".local")
	harness.Eventually(t, "a file is there, and not what the sidecar makes meanwhile", func() bool {
		return os.RemoveAll(local) == nil && os.WriteFile(local, nil, 0o600) == nil
	})
}

// fillDisk mounts a small file system for the state, and fills it.
const fillDisk = `
dir=$1; shift
mkdir -p "$dir" && mount -t tmpfs -o size=16k,mode=700 none "$dir" || exit 125
head -c 16k /dev/zero >"$dir/full" 2>/dev/null
exec "$@"
`

// readOnly mounts the home read-only.
const readOnly = `
dir=$1; shift
mkdir -p "$dir" && mount --bind "$dir" "$dir" && mount -o remount,bind,ro "$dir" || exit 125
exec "$@"
`

func inMounts(t *testing.T, w *harness.World, script string) func(*exec.Cmd) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		harness.Skip(t, "mount_namespace", err.Error())
	}
	wrapper := []string{unshare, "--mount"}
	if os.Geteuid() != 0 {
		wrapper = append(wrapper, "--user", "--map-current-user", "--keep-caps")
	}
	wrapper = append(wrapper, "/bin/sh", "-c", script, "sh", filepath.Join(w.Home, ".local", "state"))
	if out, err := exec.Command(unshare, append(slices.Clone(wrapper[1:]), "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "mount_namespace", err.Error()+": "+string(out))
	}
	return func(command *exec.Cmd) {
		command.Args = slices.Concat(wrapper, []string{command.Path}, command.Args[1:])
		command.Path = unshare
	}
}

// If there is no state directory, or the disk is full, sessions still start. The
// reply says what is missing, and a watchdog ends them.
func TestWithoutAUsableStateDirectory(t *testing.T) {
	t.Parallel()
	for i, test := range []struct {
		name string
		wrap func(t *testing.T, w *harness.World) func(*exec.Cmd)
		late func(t *testing.T, w *harness.World) // after the first session
	}{
		{"it cannot be made", func(t *testing.T, w *harness.World) func(*exec.Cmd) { block(t, w); return nil }, nil},
		{"it is removed and cannot be made again", nil, block},
		{"disk full", func(t *testing.T, w *harness.World) func(*exec.Cmd) { return inMounts(t, w, fillDisk) }, nil},
		{"read-only", func(t *testing.T, w *harness.World) func(*exec.Cmd) { return inMounts(t, w, readOnly) }, nil},
	} {
		for j, sandbox := range sandboxes {
			if !harness.Turn(t, i+j, len(sandboxes)) {
				continue
			}
			t.Run(test.name+" "+sandbox.name, func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorld(t)
				options := harness.Options{Settings: sandbox.settings}
				if test.wrap != nil {
					options.Wrap = test.wrap(t, w)
				}
				e := harness.Start(t, w, options)
				if test.late != nil {
					e.Tool("true")
					test.late(t, w)
				}
				b := harness.StartEscapees(t, e, protocol.Tool)
				if !warnsOfState(b.Session) {
					t.Errorf("warnings: %q", b.Session.Sandbox.Warnings)
				}
				if sandbox.name == "sandboxed" && !b.Session.Sandbox.Applied {
					t.Errorf("sandbox: %+v", b.Session.Sandbox)
				}
				e.Log.Await(t, stateLost)
				for range 3 {
					if output, status := e.Tool("echo on $XDG_RUNTIME_DIR"); status != 0 ||
						!strings.HasPrefix(output, "on") {
						t.Errorf("status %d, %q", status, output)
					}
				}
				kill(t, e.Process(), unix.SIGKILL)
				begun := time.Now()
				gone := b.AwaitPromisedDeath(t)
				t.Logf("%s: dead after %d ms", b.Session.Tracking.Mechanism, gone.Sub(begun).Milliseconds())
			})
		}
	}
}

// playParent makes that many children of its own parent (CLONE_PARENT), and
// ends on request.
func playParent(args []string) int {
	var count int
	if _, err := fmt.Sscan(args[0], &count); err != nil {
		return complain(err)
	}
	for range count {
		if _, err := cloneParent("/bin/true"); err != nil {
			return complain(err)
		}
	}
	fmt.Println("made")
	time.Sleep(harness.Timeout)
	return 0
}

// If a session makes processes children of the sidecar, they leave no zombies
// while the session lives. Processes that the sidecar itself waits for keep
// their statuses.
func TestChildrenThatASessionGivesToTheSidecarAreReaped(t *testing.T) {
	t.Parallel()
	if !harness.HasCgroups(t) {
		harness.Skip(t, "process_tracking", "only the leader of a cgroup has the sidecar as its parent")
	}
	const count = 300
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Off()})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "exec " + self + " parent " + fmt.Sprint(count)})
	most := 0
	zombies := func() (n int) {
		for _, state := range children(e.Process()) {
			if state == "Z" {
				n++
			}
		}
		most = max(most, n)
		return n
	}
	harness.Eventually(t, "the children are the sidecar's", func() bool { return zombies() > 0 })
	s.Await("made")
	begun := time.Now()
	harness.Eventually(t, "none is left", func() bool { return zombies() == 0 })
	t.Logf("%d at most, none %d ms after the last", most, time.Since(begun).Milliseconds())
	statuses := 20
	if testing.Short() {
		statuses = 5
	}
	for want := range statuses {
		if _, status := e.Tool(fmt.Sprintf("exit %d", want)); status != want {
			t.Errorf("status %d, expected %d", status, want)
		}
	}
	s.Close(0)
}

// However deep a session nests directories in its private one: its end is
// reported at once, needs no more descriptors than usual, and finally all of it
// is removed.
func TestADeepPrivateDirectory(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const tries = 5
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil)})
	before, most := 0, 0
	// A machine that is slow with the one is slow with the other. One that stops
	// the sidecar for a moment does not do so each time.
	for try := 1; ; try++ {
		s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo dir=$XDG_RUNTIME_DIR=; exec sleep 1000"})
		dir := s.Await(`dir=(.*)=`)[1]
		if filepath.Dir(dir) != w.State() {
			t.Fatalf("the private directory is %s", dir)
		}
		nest(t, dir, manyLevels())
		before = take(t, e.Process(), w).descriptors
		begun := time.Now()
		if result := s.Close(0); result.Remaining != 0 {
			harness.Breach(t, "close says %+v", result)
		}
		closed := time.Now()
		harness.MustEnd(t, "the directory is gone", func() bool {
			most = max(most, take(t, e.Process(), w).descriptors)
			_, err := os.Lstat(dir)
			return errors.Is(err, fs.ErrNotExist)
		})
		took, later := closed.Sub(begun), time.Since(closed)
		t.Logf("close took %v, and it was gone %v later; %d descriptors before, %d at most", took, later, before, most)
		if took < later {
			break
		} else if try == tries {
			t.Errorf("close waited until the directory was gone, %d times", tries)
			break
		}
	}
	if most > before+20 {
		t.Errorf("%d descriptors, where there were %d", most, before)
	}
	if strings.Contains(e.Log.String(), "surviv") || strings.Contains(e.Log.String(), "not removed") {
		harness.Breach(t, "the log speaks of survivors")
	}
	_ = e.HangUp()
	harness.NoTrace(t, w, e.Process())
}

// The sidecar ends while it still removes a deep directory: the watchdog
// continues.
func TestADeepPrivateDirectoryAtTheSidecarsEnd(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, ending := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		t.Run(unix.SignalName(ending), func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil)})
			s := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Command: "echo dir=$XDG_RUNTIME_DIR=; exec sleep 1000",
			})
			levels := manyLevels()
			if ending == unix.SIGTERM {
				levels = 10_000 // or the sidecar itself may have removed all of them by its end
			}
			nest(t, s.Await(`dir=(.*)=`)[1], levels)
			begun := time.Now()
			kill(t, e.Process(), ending)
			<-e.Gone()
			t.Logf("it has ended after %d ms", time.Since(begun).Milliseconds())
			harness.NoTrace(t, w, e.Process())
			t.Logf("and the directory is gone after %d ms", time.Since(begun).Milliseconds())
		})
	}
}

// manyLevels is a depth that no path reaches: PATH_MAX is 4096 bytes, and each level
// takes two.
func manyLevels() int {
	if testing.Short() {
		return 4_000
	}
	return 10_000
}

// nest makes that many directories, one in the other.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; i < levels && err == nil; i++ {
		if err = unix.Mkdirat(at, "d", 0o700); err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(at)
		at = next
	}
	if err != nil {
		t.Fatalf("nest directories: %v", err)
	}
	unix.Close(at)
}

// cloneParent starts a program as a child of the parent.
func cloneParent(path string) (int, error) {
	return syscall.ForkExec(path, []string{path},
		&syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT}})
}
