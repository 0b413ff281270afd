package namespace

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// Prepare adds what the stage cannot find out itself. The sidecar calls it.
func (s *Setup) Prepare() (err error) {
	if s.OutsideIPC, err = ipcNamespace(); err != nil {
		return err
	}
	if s.User {
		s.Limits = sessionLimits()
	}
	return nil
}

// StandbyKey identifies what Attach does; see platform.Confinement.
func (s *Setup) StandbyKey() string {
	if s.User {
		return "user namespace"
	}
	return ""
}

// Attach changes the attributes of a process so that it has the rights for
// Enter. Only a process with one thread can enter a user namespace, so the
// stage is started in it.
func (s *Setup) Attach(attr *syscall.SysProcAttr) {
	if !s.User {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	// An unprivileged process may map one id (user_namespaces(7)). All others
	// show as the overflow id, "nobody".
	uid, gid := os.Geteuid(), os.Getegid()
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// Ambient, because the user is not root: exec drops all other capabilities.
	attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE,
		unix.CAP_SYS_RESOURCE)
}

// unshare moves this thread into the namespaces, other than the user namespace.
func (s *Setup) unshare() error {
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if s.Network {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	return nil
}

// ipcNamespace identifies the IPC namespace of this process.
func ipcNamespace() (string, error) {
	name, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		return "", fmt.Errorf("identify the IPC namespace: %w", err)
	}
	return name, nil
}

// Enter moves this thread of the stage into new namespaces, and makes everything
// in them. Nothing of it is visible in other namespaces. The other threads of
// the stage stay outside; they end when this one executes the program.
func (s *Setup) Enter(order *handshake.Order) (Result, error) {
	var result Result
	if err := s.unshare(); err != nil {
		return result, err
	}
	if inside, err := ipcNamespace(); err != nil {
		return result, err
	} else if inside == s.OutsideIPC {
		return result, errors.New("make an IPC namespace: the stage is still in the sidecar's")
	}
	// The copied mounts still receive changes from the originals and, if made
	// by root, send changes to them. They must only receive: a disk that the
	// user plugs in appears inside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return result, fmt.Errorf("separate the session's mounts: %w", err)
	}
	if s.User {
		result.NoLimits = applyLimits(s.Limits)
	}
	if s.Overlays != nil {
		// Before everything that is made of the tree: it is made of the overlays.
		if err := s.Overlays.mount(); err != nil {
			return result, err
		}
	}
	if s.Tree != nil {
		if err := s.Tree.mount(); err != nil {
			return result, err
		}
	}
	if s.Temporary != nil {
		if err := s.Temporary.mount(); err != nil {
			return result, err
		}
	}
	var err error
	if result.Mounts, err = s.Mounts.mount(); err != nil {
		return result, err
	}
	if s.Hidden != nil {
		// After everything that copies mounts, which would copy the hidden paths.
		if err := s.Hidden.mount(); err != nil {
			return result, err
		}
	}
	if s.User && os.Geteuid() != 0 {
		if err := copySSHConfig(); err != nil {
			return result, fmt.Errorf("copy ssh's configuration: %w", err)
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
		passed, err := openLocal()
		result.Passed = append(result.Passed, passed...)
		if err != nil {
			return result, fmt.Errorf("open sockets of the session's localhost: %w", err)
		}
	}
	if s.Network && s.Hosts {
		passed, err := openHosts()
		if err != nil {
			return result, err
		}
		result.Passed = append(result.Passed, passed...)
	}
	if err := reopenStreams(s.Mounts.Protected); err != nil {
		return result, err
	}
	devices := []int{0, 1, 2}
	for _, one := range order.Inherited {
		devices = append(devices, one.At)
	}
	if err := reopenDevices(devices); err != nil {
		return result, err
	}
	if order.Dir != "" {
		// If the working directory is below a new mount, this process is still
		// in the directory that the mount hides.
		if err := unix.Chdir(order.Dir); err != nil {
			return result, fmt.Errorf("change directory: %s: %w", order.Dir, err)
		}
	}
	return result, nil
}
