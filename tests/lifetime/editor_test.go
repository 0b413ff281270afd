//go:build linux

package lifetime

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// roles are what the test binary can be started for instead of tests, by its
// first argument. Each returns an exit status.
var roles = map[string]func(args []string) int{
	"editor": playEditor,
	"reaper": playReaper,
	"tracer": playTracer,
	"parent": playParent,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			os.Exit(role(os.Args[2:]))
		}
	}
	harness.Main(m)
}

// inRole makes a command start as the child of this test binary in a role.
func inRole(t testing.TB, command *exec.Cmd, role ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command.Args = append(append([]string{self}, role...), command.Args...)
	command.Path = self
}

// playEditor starts a sidecar as an editor does that alone holds the pipes, and
// passes on the test's input. To kill it is the death of an editor in every
// respect.
func playEditor(args []string) int {
	command := exec.Command(args[0], args[1:]...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return 2
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return 2
	}
	if err := command.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		_, _ = io.Copy(in, os.Stdin)
		in.Close()
	}()
	_, _ = io.Copy(os.Stdout, out)
	_ = command.Wait()
	return command.ProcessState.ExitCode()
}

// sidecarOf is the only child of a process in the role of an editor.
func sidecarOf(t testing.TB, editor int) int {
	t.Helper()
	for pid := range children(editor) {
		return pid
	}
	t.Fatalf("editor %d has no sidecar", editor)
	return 0
}

// An editor that is gone before the sidecar begins to watch it is noticed too.
func TestAnEditorThatIsGoneAlready(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	w := harness.NewWorld(t)
	command := exec.Command(harness.Binary(t), "serve")
	command.Env = harness.Environ(w)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close() // the pipe stays open: its end must not be what ends the sidecar
	command.Stdin = in
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":%d}}`, gone.Process.Pid)
	if _, err := fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-deadline.After(harness.Timeout):
		t.Fatal("the sidecar waits for an editor that is gone")
	}
	if got := command.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit status %d, expected 1", got)
	}
}
