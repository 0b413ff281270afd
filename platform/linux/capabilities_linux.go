package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

// keptCapabilities are those of root that cannot undo a sandbox: they bend the
// ordinary ownership of files and processes, which Landlock does not rest on.
// All others (mounting, tracing, modules, raw I/O, device nodes, network
// administration, opening files by handle, the audit log …) leave the bounding
// set, so that no program inside gets them back. See capabilities(7).
var keptCapabilities = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_SETFCAP,
}

// dropCapabilities removes every other capability from the calling thread, for
// good. Those of an ordinary user in a user namespace were for the stage's work
// alone: they go altogether, and the bounding set is left as every other
// process of the user has it. With a smaller one, programs that have file
// capabilities would not start at all, where no_new_privs lets them start
// without.
func dropCapabilities(setup *namespace.Setup) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	var kept [2]uint32
	lent := setup != nil && setup.User && os.Geteuid() != 0
	if !lent {
		for _, capability := range keptCapabilities {
			kept[capability/32] |= 1 << (capability % 32)
		}
	}
	// The bounding set can only be lowered by a process that has CAP_SETPCAP.
	// Without it there is nothing to lower that no_new_privs does not keep out
	// anyway.
	if !lent && data[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
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
	// The kernel may know more capabilities than this program; it ends the list
	// with EINVAL.
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
