package darwin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// procargs prints what sysctl(3) by numbers tells about a process: the number of
// the node, and the process id.
const procargs = `my $mib = pack("i3", 1, $ARGV[0], $ARGV[1]); my $buffer = "\0" x 1048576;
	my $size = pack("Q", length $buffer);
	syscall(202, $mib, 3, $buffer, $size, 0, 0) == 0 ? print($buffer) : exit 1;`

// The environment of a process outside holds a token. It is read without the
// sandbox, and not with it.
func TestCanary_EnvironmentsOfOthers(t *testing.T) {
	t.Parallel()
	const token = "SIDECAR_CANARY=of-a-process-outside"
	order := platformtest.Order(t, platformtest.Act{Verb: platformtest.Await})
	outside := exec.Command(order.Program, order.Argv[1:]...)
	outside.Env = []string{token}
	stdin, err := outside.StdinPipe()
	if err == nil {
		err = outside.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close(); _ = outside.Wait() }()
	p := defaultPolicy(t, realDir(t), realDir(t), realDir(t))
	runs := platformtest.Confined(t, backend(t), p)
	runs.Program, runs.Argv = "/usr/bin/perl", []string{"perl", "-e", "print 7"}
	if output, _, err := platformtest.Output(backend(t), runs); err != nil || string(output) != "7" {
		t.Errorf("control: perl in a session: %q, %v", output, err)
	}
	for name, node := range map[string]int{"kern.procargs": kernArgs, "kern.procargs2": kernArgsEnv} {
		arguments := []string{"-e", procargs, fmt.Sprint(node), fmt.Sprint(outside.Process.Pid)}
		open, err := exec.Command("/usr/bin/perl", arguments...).Output()
		if err != nil || name == "kern.procargs2" && !strings.Contains(string(open), token) {
			t.Errorf("%s: control: the canary is not there: %v", name, err)
		}
		job := platformtest.Confined(t, backend(t), p)
		job.Program, job.Argv = "/usr/bin/perl", append([]string{"perl"}, arguments...)
		if output, _, err := platformtest.Output(backend(t), job); err == nil || len(output) > 0 {
			t.Errorf("%s: a session reads %d bytes of a process outside", name, len(output))
		}
	}
}

// A clone of a closed file would be one that the session may read.
func TestCanary_Clones(t *testing.T) {
	t.Parallel()
	home, project := realDir(t), realDir(t)
	secret, taken := filepath.Join(home, "secret"), filepath.Join(project, "taken")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("/bin/cp", "-c", secret, secret+"2").CombinedOutput(); err != nil {
		t.Fatalf("control: %v: %s", err, output)
	}
	own := filepath.Join(project, "own")
	if err := os.WriteFile(own, []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := platformtest.Confined(t, backend(t), defaultPolicy(t, home, project, realDir(t)))
	job.Program, job.Argv = "/bin/cp", []string{"cp", "-c", own, own + "2"}
	if _, _, err := platformtest.Output(backend(t), job); err != nil {
		t.Errorf("control: a session clones no file of its project: %v", err)
	}
	job = platformtest.Confined(t, backend(t), defaultPolicy(t, home, project, realDir(t)))
	job.Program, job.Argv = "/bin/cp", []string{"cp", "-c", secret, taken}
	_, _, err := platformtest.Output(backend(t), job)
	if content, _ := os.ReadFile(taken); err == nil || len(content) > 0 {
		t.Errorf("a session has %q by a clone: %v", content, err)
	}
}
