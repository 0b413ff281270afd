package harness

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readOnlyCgroups remounts the given number of paths read-only, in its own
// mount namespace, and then executes the program behind them.
const readOnlyCgroups = `
left=$1
shift
while [ "$left" -gt 0 ]; do
	mount -o remount,bind,ro "$1" || exit 125
	left=$((left - 1))
	shift
done
exec "$@"
`

// HasCgroups reports whether a sidecar that is started without a Wrap can make
// cgroups.
func HasCgroups(t testing.TB) bool {
	t.Helper()
	status, _ := doctor(t, "process_tracking")
	return status == "enforced"
}

// WithoutCgroups returns a Wrap for Options that leaves a sidecar without
// cgroups, as in most containers and in login sessions without systemd. The
// hierarchy is read-only in a mount namespace. If the user has no delegated
// cgroup, nothing needs to be done. If neither is possible, the test is skipped
// as Require does it.
func WithoutCgroups(t testing.TB) func(*exec.Cmd) {
	t.Helper()
	if !HasCgroups(t) {
		return func(*exec.Cmd) {}
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		Skip(t, "mount_namespace", err.Error())
	}
	mounts := cgroupMounts(t)
	wrapper := slices.Concat([]string{
		unshare, "--mount", "/bin/sh", "-c", readOnlyCgroups, "sh",
		strconv.Itoa(len(mounts)),
	}, mounts)
	if out, err := exec.Command(unshare, append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
		Skip(t, "mount_namespace", err.Error()+": "+string(out))
	}
	return func(command *exec.Cmd) {
		command.Args = slices.Concat(wrapper, []string{command.Path}, command.Args[1:])
		command.Path = unshare
	}
}

func cgroupMounts(t testing.TB) []string {
	t.Helper()
	table, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a system that has no cgroups
	}
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var mounts []string
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, 1<<20) // overlay mounts have lines of many kilobytes
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if strings.Contains(lines.Text(), " - cgroup2 ") && len(fields) > 4 {
			mounts = append(mounts, strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`,
				`\`).Replace(fields[4]))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return mounts
}
