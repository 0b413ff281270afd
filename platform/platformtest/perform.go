//go:build unix

package platformtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// timeout bounds every wait. It only matters if a test fails.
const timeout = 30 * time.Second

// Self is the real path of the test binary.
func Self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Policy returns a policy that lets an actor run and adds the given rules. The
// network is allowed, and terminals are private.
func Policy(t testing.TB, rules ...policy.Rule) *policy.Policy {
	t.Helper()
	runnable := policy.Read | policy.Execute
	all := []policy.Rule{{
		Path: Self(t), Access: runnable,
		Origin: policy.Origin{File: policy.OriginBuiltIn, Key: "actor"},
	}}
	// A test binary with the race detector is linked dynamically.
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			all = append(all, policy.Rule{
				Path: real, Access: runnable,
				Origin: policy.Origin{File: policy.OriginBuiltIn, Key: "libraries"},
			})
		}
	}
	return &policy.Policy{
		Restricted: true, PrivateTerminals: true, Rules: append(all,
			rules...), Network: policy.Network{Allowed: true}, OnDenied: policy.Ignore,
	}
}

// Job is an order and its confinement.
type Job struct {
	platform.Order
	Confinement platform.Confinement
}

// Order returns an order to run an actor in the root directory with an empty
// environment, unconfined.
func Order(t testing.TB, acts ...Act) Job {
	t.Helper()
	script, err := json.Marshal(append([]Act{}, acts...)) // never null, which prints no results
	if err != nil {
		t.Fatal(err)
	}
	self := Self(t)
	return Job{Order: platform.Order{
		Program: self, Argv: []string{self, actorName, string(script)}, Env: []string{},
		Dir: "/",
	}}
}

// Confined returns the order of Order under a policy. A backend that cannot
// confine fails the test.
func Confined(t testing.TB, backend platform.Backend, p *policy.Policy, acts ...Act) Job {
	t.Helper()
	order := Order(t, acts...)
	var err error
	if order.Confinement, err = backend.Confine(p, platform.Hooks{}); err != nil {
		t.Fatalf("confine: %v", err)
	}
	return order
}

// Perform runs an order whose program is an actor, waits for its end, and
// returns a result for each act and the stage's report. If the actor did not
// run, the test fails.
func Perform(t testing.TB, backend platform.Backend, order Job) ([]Result, platform.Enforcement) {
	t.Helper()
	output, enforcement, err := Output(backend, order)
	if err != nil {
		t.Fatal(err)
	}
	results := decode(output)
	if results == nil {
		t.Fatalf("the actor of %s left no results: %q", order.Program, output)
	}
	return results, enforcement
}

// decode parses an actor's output; it returns nil if that is not a list of
// results.
func decode(output []byte) []Result {
	var results []Result
	if json.Unmarshal(output, &results) != nil {
		return nil
	}
	return results
}

// Output runs an order with the null device as stdin, waits for the program's
// end, and returns its stdout. An exit status other than 0 is an error.
func Output(backend platform.Backend, order Job) ([]byte, platform.Enforcement, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, platform.Enforcement{}, err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, platform.Enforcement{}, err
	}
	defer read.Close()
	ctx, cancel := deadline.Context(context.Background(), timeout)
	defer cancel()
	launched, err := platform.Launch(ctx, backend, platform.Target{
		Order: order.Order, Confinement: order.Confinement, Streams: [3]*os.File{null, write, os.Stderr},
		Attr: &syscall.SysProcAttr{Setsid: true}, Start: lifecycle.Start,
	})
	write.Close() // else the output would never end
	if err != nil {
		return nil, platform.Enforcement{}, err
	}
	enforcement := launched.Enforcement
	if launched.Supervision != nil {
		defer launched.Supervision.Close()
	}
	stop := context.AfterFunc(ctx, func() { _ = launched.Process.Signal(syscall.SIGKILL) })
	defer stop()
	output, readErr := io.ReadAll(read)
	status, err := launched.Process.Wait(false)
	switch {
	case err != nil:
		return output, enforcement, err
	case readErr != nil:
		return output, enforcement, readErr
	case status != 0:
		return output, enforcement, fmt.Errorf("run %s: wait status %#x", order.Program, int(status))
	}
	return output, enforcement, nil
}

// Bystander is an unconfined process outside every sandbox, which waits until
// the test ends.
type Bystander struct {
	command *exec.Cmd
	stdin   io.Closer
}

// NewBystander starts one.
func NewBystander(t testing.TB) *Bystander {
	t.Helper()
	order := Order(t, Act{Verb: Await})
	command := exec.Command(order.Program, order.Argv[1:]...)
	stdin, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &Bystander{command: command, stdin: stdin}
	t.Cleanup(func() { _ = b.End() })
	return b
}

// PID is its process id.
func (b *Bystander) PID() int { return b.command.Process.Pid }

// End ends it, and returns an error if it had not been running normally.
func (b *Bystander) End() error {
	_ = b.stdin.Close()
	return b.command.Wait()
}
