//go:build linux

package attack

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Uses descriptors that the editor leaks into the sidecar: a file with a
// secret, and an open directory outside. The stage marks everything above
// stderr close-on-exec, so none arrives. The control is a program that the same
// parent starts the same way.
func TestDescriptorsLeakedToTheSidecarDoNotArrive(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	secretOutside(s)
	leak := func(command *exec.Cmd) {
		for _, path := range []string{s.OutsidePath("secret"), s.Outside} {
			file, err := os.Open(path)
			harness.Must(t, err)
			t.Cleanup(func() { file.Close() })
			command.ExtraFiles = append(command.ExtraFiles, file)
		}
	}
	plain := exec.Command(s.Victim, "descriptors", "then", "read-fd", "3")
	leak(plain)
	output, err := plain.Output()
	if err != nil || bytes.Count(output, []byte("descriptor ")) < 2 || !bytes.Contains(output, []byte(secretText)) {
		t.Fatalf("control: a program that is started plainly must get the descriptors: %v\n%s", err, output)
	}
	for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "not sandboxed": harness.Off()} {
		e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: leak})
		result := s.attempt(e, "descriptors")
		if !result.done() || strings.Contains(result.output, "descriptor ") {
			harness.Breach(t, "%s: the session has descriptors above stderr: status %d\n%s", name, result.status, result.output)
		}
	}
}

// Searches a terminal and a tool for descriptors of the sidecar: its pipes to
// the editor, the handshake, the terminal's master. Other sessions run
// meanwhile. A session has three.
func TestASessionHasThreeDescriptors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.Start("")
	for range 3 {
		e.Shell().Await(`[#$] `)
	}
	if result := s.attempt(e, "descriptors"); !result.done() || strings.Contains(result.output, "descriptor ") {
		harness.Breach(t, "a tool has more: status %d\n%s", result.status, result.output)
	}
	shell := e.Shell()
	shell.Type("'" + s.Victim + "' descriptors; echo stat''us $?\n")
	shell.Await(`status 0`)
	if strings.Contains(shell.Output(), "descriptor ") {
		harness.Breach(t, "a terminal has more:\n%s", shell.Output())
	}
}
