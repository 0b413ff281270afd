package harness

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// HiddenProcesses returns a Wrap for Options that gives a sidecar a /proc of
// its own with an option of proc(5), such as "hidepid=2". The test itself still
// sees the sidecar. If the user may not mount, a /proc that already has the
// option will do. Otherwise the test is skipped as Require does it.
func HiddenProcesses(t testing.TB, option string) func(*exec.Cmd) {
	t.Helper()
	// Processes of the group in "gid", by default root's, would see all others.
	const mount = `mount -t proc -o "$0,gid=65533" proc /proc && exec "$@"`
	wrapper := []string{"unshare", "--mount", "/bin/sh", "-c", mount, option}
	if out, err := exec.Command(wrapper[0], append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
		mounts, readErr := os.ReadFile("/proc/self/mounts")
		if readErr != nil {
			t.Fatal(readErr)
		}
		name, value, _ := strings.Cut(option, "=")
		spelt := map[string]string{"1": "noaccess", "2": "invisible", "4": "ptraceable"}[value] // since Linux 5.8
		for line := range strings.Lines(string(mounts)) {
			has := strings.Contains(line, option) || spelt != "" && strings.Contains(line, name+"="+spelt)
			if has && strings.Contains(line, " /proc proc ") {
				return func(*exec.Cmd) {}
			}
		}
		lacking := "mount_namespace"
		if os.Geteuid() != 0 {
			lacking = "root" // an ordinary user mounts no /proc of its own
		}
		Skip(t, lacking, err.Error()+": "+string(out))
	}
	return func(command *exec.Cmd) {
		path, err := exec.LookPath(wrapper[0])
		if err != nil {
			t.Fatal(err)
		}
		command.Args = append(append([]string{}, wrapper...), append([]string{command.Path}, command.Args[1:]...)...)
		command.Path = path
	}
}
