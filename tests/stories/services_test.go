//go:build linux

package stories

import (
	"fmt"
	"net"
	"os/exec"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A database of the machine, as a container has one, is not reached at first.
// What is on the screen names the command that opens it, and it alone.
func TestADatabaseOfTheMachine(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "redis-check-rdb", "redis-cli")
	u := newUser(t, "")
	own, other := startRedis(t), startRedis(t)
	ask := fmt.Sprintf("sandbox-sidecar exec -- redis-cli -p %d ping", own)

	screen, status := u.types(t, ask)
	sees(t, screen, fmt.Sprintf(`Could not connect to Redis at 127.0.0.1:%[1]d: Permission denied
refused by the sandbox: connect "127.0.0.1:%[1]d" by "redis-cli"
to allow it: add "localhost:%[1]d" to "allowed_hosts" \(sandbox-sidecar allow 1\)
!allow_network`, own))
	if status == "0" {
		t.Errorf("the control: %s", screen)
	}
	allow := exec.Command(harness.Binary(t), "allow", "1")
	allow.Dir, allow.Env = u.Project, u.env
	terminal := harness.StartTerminal(t, allow)
	terminal.Await("Type yes, or press Enter to leave it: ") // the service is outside
	terminal.Type("yes\n")
	if status := terminal.Status(); status != 0 {
		t.Errorf("allow: status %d:\n%s", status, terminal.Screen)
	}
	if screen, status := u.types(t, ask+" | grep -x PONG"); status != "0" {
		t.Errorf("the way on leads nowhere: %s", screen)
	}
	if screen, status := u.types(t, fmt.Sprintf("sandbox-sidecar exec -- redis-cli -p %d ping", other)); status == "0" {
		harness.Breach(t, "the entry of one service opens another: %s", screen)
	}
	u.keys["localhost"] = "all"
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	if screen, status := u.types(t, ask+" | grep -x PONG"); status != "0" {
		t.Errorf("\"all\": %s", screen)
	}
}

// startRedis starts a server outside, and returns the port where it listens.
func startRedis(t *testing.T) int {
	t.Helper()
	port := harness.FreePort(t)
	server := exec.Command("redis-check-rdb", "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "",
		"--dir", t.TempDir())
	server.Args[0] = "redis-server" // it is the same program
	harness.Must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	harness.Eventually(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return port
}
