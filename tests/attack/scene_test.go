//go:build linux

package attack

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a harness.Scene with the victim of tests/victim.
type scene struct{ *harness.Scene }

func newScene(t testing.TB) *scene {
	t.Helper()
	return &scene{harness.NewScene(t, "tests/victim")}
}

// attempt runs the victim in a session of its own to its end.
func (s *scene) attempt(e *harness.Editor, actions ...string) result {
	s.T.Helper()
	return s.attemptFrom(e, protocol.SpawnParams{}, actions...)
}

// attemptFrom is attempt with parameters of the session.
func (s *scene) attemptFrom(e *harness.Editor, params protocol.SpawnParams, actions ...string) result {
	s.T.Helper()
	params.Command, params.Args = s.Victim, actions
	session, status := e.Run(params)
	return result{output: session.Output(), status: status, reply: session.SpawnResult}
}

// result is the result of the victim's actions.
type result struct {
	output string
	status int
	reply  protocol.SpawnResult
}

// done reports whether every action was done.
func (r result) done() bool { return r.status == 0 }

// refused reports whether the kernel refused an action with the given errno.
func (r result) refused(errno string) bool {
	return r.status == 1 && strings.Contains(r.output, "refused: ") &&
		strings.HasSuffix(strings.TrimSpace(r.output), ": "+errno)
}

// refusedOf is refused for an action on a process by its files in /proc. A process
// that still runs may be missing there (hidepid, proc(5)).
func (r result) refusedOf(pid int, errno string) bool {
	return r.refused(errno) || r.refused("ENOENT") && harness.Alive(pid)
}

// refusalOfChange is the kernel's answer to a change outside the grants. If the
// session has a file tree of its own, a read-only mount answers before Landlock.
func refusalOfChange(r result) string {
	if r.reply.Sandbox.Protections["file_tree"].Status == protocol.Enforced {
		return "EROFS"
	}
	return "EACCES"
}

// attack is a sequence of actions. The sandbox must refuse one of them.
type attack struct {
	// grants are settings added to those of harness.Settings; nil: none.
	grants func(s *scene) harness.Sandbox
	// prepare makes what the attack needs; nil: nothing.
	prepare func(s *scene)
	// from are parameters of the session; nil: none.
	from func(s *scene) protocol.SpawnParams
	// actions are the victim's arguments.
	actions func(s *scene) []string
	// refusal is the kernel's answer in the sandbox; empty for refusalOfChange.
	refusal string
	// harm reports whether the attack has had its effect; output is what the
	// victim printed.
	harm func(s *scene, output string) bool
}

// mustFail makes sure that the attack works, in a scene without a sandbox, and
// then that the sandbox refuses it.
func (a attack) mustFail(t *testing.T) {
	t.Helper()
	harness.Require(t, "filesystem")
	if control, harm := a.carryOut(t, func(*scene) string {
		return harness.Off()
	}); !control.done() || !harm || control.reply.Sandbox.Applied {
		t.Fatalf("control: without a sandbox the attack must work: status %d, harm done: %v, sandbox applied: %v, "+
			"output:\n%s",
			control.status, harm, control.reply.Sandbox.Applied, control.output)
	}
	result, harm := a.carryOut(t, func(s *scene) string {
		if a.grants == nil {
			return harness.Settings(nil)
		}
		return harness.Settings(a.grants(s))
	})
	if !result.reply.Sandbox.Applied {
		t.Errorf("the reply says that no sandbox is applied: %+v", result.reply.Sandbox)
	}
	if harm {
		harness.Breach(t, "THE ATTACK WORKS: status %d, output:\n%s", result.status, result.output)
	}
	refusal := a.refusal
	if refusal == "" {
		refusal = refusalOfChange(result)
	}
	if !result.refused(refusal) {
		t.Errorf("want a refusal with %s, got status %d, output:\n%s", refusal, result.status, result.output)
	}
}

func (a attack) carryOut(t testing.TB, settings func(*scene) string) (result, bool) {
	t.Helper()
	s := newScene(t)
	if a.prepare != nil {
		a.prepare(s)
	}
	e := s.Start(settings(s))
	var from protocol.SpawnParams
	if a.from != nil {
		from = a.from(s)
	}
	result := s.attemptFrom(e, from, a.actions(s)...)
	return result, a.harm(s, result.output)
}

// secretText is what no session may read.
const secretText = "the-secret-of-the-outside"

// secretOutside prepares a file that no session may read or change.
func secretOutside(s *scene) { harness.Write(s.T, s.OutsidePath("secret"), secretText) }

// leaked is the harm of reading the secret.
func leaked(_ *scene, output string) bool { return strings.Contains(output, secretText) }

// changed is the harm of changing what secretOutside made: its content, its
// name, or its existence.
func changed(s *scene, _ string) bool {
	return harness.Read(s.T, s.OutsidePath("secret")) != secretText
}
