package lifecycle

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Real processes, which leave their session and are given to init, are found
// and killed by what they carry alone: a cgroup stands for the fingerprint,
// which like it is inherited, cannot be taken off, and can be read from
// outside.
func TestMarkedGroup_KillsWhoeverCarriesTheMark(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, tree *cgroupTree) {
		for name, args := range map[string][]string{
			"wait": nil, "tree": {"10"}, "daemon": nil, "respawn": {"300", "300", "setsid"},
		} {
			cgroup := newCgroup(t, tree, "mark-"+name)
			pids := startIn(t, cgroup, helper(name, args...))
			stranger := newCgroup(t, tree, "other-"+name)
			spared := startIn(t, stranger, helper("wait"))
			g := &markedGroup{
				fingerprint: SessionFingerprint{ID: "1"}, table: processTable,
				carries: func(_ SessionFingerprint, pid int) (bool, error) {
					of, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
					if err != nil {
						return false, nil // it has ended
					}
					return strings.HasSuffix(strings.TrimSpace(string(of)), cgroup.dir[len(filepath.Dir(filepath.Dir(cgroup.dir))):]),
						nil
				},
			}
			killed, err := g.killLoop(0).converge(soon(t))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// A chain that forks and exits at full speed may outrun the looks,
			// which take far longer here than where this is for. Each further
			// kill loop must find what is left.
			left, err := cgroupMembers(cgroup.dir)
			for rounds := 1; name == "respawn" && len(left) > 0 && err == nil && rounds < 5; rounds++ {
				t.Logf("kill loop %d has left %v", rounds, left)
				if _, err = g.killLoop(0).converge(soon(t)); err == nil {
					left, err = cgroupMembers(cgroup.dir)
				}
			}
			if err != nil || len(left) > 0 {
				t.Errorf("%s: left are %v, %v", name, left, err)
			}
			if name != "respawn" && len(killed) == 0 {
				t.Errorf("%s: nobody was killed", name)
			}
			mustBeGone(t, pids)
			for _, pid := range spared {
				if !running(pid) {
					t.Errorf("%s: a stranger was killed", name)
				}
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			for _, group := range []*cgroupGroup{cgroup, stranger} {
				if _, err := group.Kill(soon(t)); err != nil {
					t.Error(err)
				}
				if err := group.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
