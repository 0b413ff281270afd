//go:build linux

package attack

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// fewInotify and fewWatches limit the user's instances and watches of inotify
// for the test that tries to take all of them.
const fewInotify, fewWatches = 40, 200

// withFewInotify starts a sidecar in a user namespace with these limits, so
// that processes outside keep theirs.
func withFewInotify(t testing.TB) func(*exec.Cmd) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	harness.Must(t, err)
	lower := "echo " + strconv.Itoa(fewInotify) + " >/proc/sys/user/max_inotify_instances && echo " +
		strconv.Itoa(fewWatches) +
		` >/proc/sys/user/max_inotify_watches && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"`
	wrapper := []string{unshare, "--user", "--map-current-user", "--keep-caps", "/bin/sh", "-c", lower, "sh"}
	if output, err := exec.Command(unshare, append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "user_namespaces", err.Error()+": "+string(output))
	}
	return func(command *exec.Cmd) {
		command.Args = append(append([]string{}, wrapper...), append([]string{command.Path}, command.Args[1:]...)...)
		command.Path = unshare
	}
}

// Takes all instances and watches of inotify. All programs of a user share one
// limit: the tripwires of other sessions would be blind, and an editor would
// see no changes. A user namespace has limits of its own. If a session has
// none, the reply says so.
func TestASessionCannotTakeAllOfInotify(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	try := func(settings, action string, more ...string) (took int, reply protocol.SpawnResult) {
		s := newScene(t)
		harness.MakeDir(t, s.ProjectPath("watched"))
		e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: withFewInotify(t)})
		args := []string{action}
		if action == "inotify-watches" {
			args = append(args, s.ProjectPath("watched"))
		}
		session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: s.Victim, Args: append(args, more...)})
		took, err := strconv.Atoi(session.Await(`took (\d+)`)[1])
		harness.Must(t, err)
		return took, session.SpawnResult
	}
	const unlimited = "nothing limits how many of the user's inotify instances"
	if !harness.Namespaces(t) || os.Geteuid() == 0 {
		_, reply := try(harness.Settings(nil), "inotify", "1")
		if detail := reply.Sandbox.Protections["syscalls"].Detail; !strings.Contains(detail, unlimited) {
			t.Errorf("nothing limits the session, and the reply does not say so: %s", detail)
		}
		return
	}
	for _, test := range []struct {
		action string
		whole  int
	}{{"inotify", fewInotify}, {"inotify-watches", fewWatches}} {
		more := strconv.Itoa(2 * test.whole)
		if took, _ := try(harness.Off(), test.action, more); took < test.whole/2+10 {
			t.Fatalf("control: %s: without a sandbox the attack must work: %d taken", test.action, took)
		}
		took, reply := try(harness.Settings(nil), test.action, more)
		if took == 0 || took > test.whole/2 {
			harness.Breach(t, "%s: THE ATTACK WORKS, or nothing does: %d taken", test.action, took)
		}
		if detail := reply.Sandbox.Protections["syscalls"].Detail; strings.Contains(detail, unlimited) {
			t.Errorf("the reply says that nothing limits the session: %s", detail)
		}
	}
}
