package namespace

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Prepare adds what the sidecar knows and the stage cannot find out. It is
// called in the sidecar.
func (s *Setup) Prepare() (err error) {
	if s.OutsideIPC, err = ipcNamespace(); err != nil {
		return err
	}
	if s.User {
		s.Limits = sessionLimits()
	}
	return nil
}

// StandbyKey names what Attach does; see platform.Confinement.
func (s *Setup) StandbyKey() string { return fmt.Sprintf("user %t, network %t", s.User, s.Network) }

// Attach lets a process be started in the namespaces.
func (s *Setup) Attach(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if s.Network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if !s.User {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	// One id is all that an unprivileged process may map (user_namespaces(7));
	// every other shows as the overflow id, "nobody".
	uid, gid := os.Geteuid(), os.Getegid()
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// Ambient, because the stage is executed by a user that is not root, who
	// would lose all others.
	attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE)
}

// ipcNamespace names that of this process.
func ipcNamespace() (string, error) {
	name, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		return "", fmt.Errorf("look at the IPC namespace: %w", err)
	}
	return name, nil
}

// Enter makes everything. Nothing of it reaches the namespaces of others.
func (s *Setup) Enter(order *platform.Order) (Result, error) {
	var result Result
	if inside, err := ipcNamespace(); err != nil {
		return result, err
	} else if inside == s.OutsideIPC {
		return result, errors.New("make an IPC namespace: the stage is in that of the sidecar")
	}
	// The copy of the mounts still receives and, as root's, sends changes. It
	// goes on receiving: a disk that the user plugs in appears.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return result, fmt.Errorf("keep mounts to the session: %w", err)
	}
	if s.User {
		result.NoLimits = applyLimits(s.Limits)
	}
	var err error
	if result.Mounts, err = s.Mounts.mount(); err != nil {
		return result, err
	}
	if s.User && os.Geteuid() != 0 {
		if err := copySSHConfig(); err != nil {
			return result, fmt.Errorf("make ssh's configuration usable: %w", err)
		}
	}
	if s.Terminals {
		if err := result.setTerminals(order.Terminal); err != nil {
			return result, fmt.Errorf("make terminals of the session's own: %w", err)
		}
	}
	if s.Network {
		if err := startLoopback(); err != nil {
			return result, fmt.Errorf("start loopback interface: %w", err)
		}
	}
	if err := reopenStreams(s.Mounts.Protected); err != nil {
		return result, err
	}
	if order.Dir != "" {
		// Where it lies below a new mount, the working directory is still what
		// the mount covers.
		if err := unix.Chdir(order.Dir); err != nil {
			return result, fmt.Errorf("change directory: %s: %w", order.Dir, err)
		}
	}
	return result, nil
}
