package stage

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

// keptCapabilities are those of root's capabilities that cannot undo a sandbox:
// they override the ownership of files and processes, on which Landlock does not
// depend. All others are removed from the bounding set (mounting, tracing,
// modules, raw I/O, device nodes, network administration, opening files by
// handle, the audit log …). No program inside can get them back. CAP_SETFCAP is
// among them: Landlock has no rule for extended attributes, so a session could
// give any program outside a capability, for every user who runs it. See
// capabilities(7).
var keptCapabilities = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
	unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT,
}

// dropCapabilities removes all other capabilities from the calling thread, for
// good. An ordinary user in a user namespace loses all: they were only for the
// stage's work. The bounding set is not changed then. If it were smaller,
// programs with file capabilities would not start at all. With no_new_privs
// alone they start without the capabilities.
func dropCapabilities(setup *namespace.Setup) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	var kept [2]uint32
	borrowed := setup != nil && setup.User && os.Geteuid() != 0
	if !borrowed {
		for _, capability := range keptCapabilities {
			kept[capability/32] |= 1 << (capability % 32)
		}
	}
	// Only a process with CAP_SETPCAP can lower the bounding set. Without that
	// capability, no_new_privs is enough.
	if !borrowed && data[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		if err := lowerBoundingSet(kept); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	for i := range data {
		data[i].Effective &= kept[i]
		data[i].Permitted &= kept[i]
		data[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

func lowerBoundingSet(kept [2]uint32) error {
	// The kernel may have more capabilities than this program knows. After the
	// last one it answers EINVAL.
	for capability := range 64 {
		if kept[capability/32]&(1<<(capability%32)) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && capability > unix.CAP_LAST_CAP {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d from the bounding set: %w", capability, err)
		}
	}
	return nil
}
