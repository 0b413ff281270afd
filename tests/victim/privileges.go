//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

var privilegeActions = map[string]action{
	"exec":        execute,
	"mount-tmpfs": one(func(dir string) error { return unix.Mount("victim", dir, "tmpfs", 0, "") }),
	"bind": two(func(from, to string) error {
		return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
	}),
	"own-mounts":         ownMounts,
	"chroot":             one(unix.Chroot),
	"privileges":         privileges,
	"raise":              raise,
	"file-capability":    one(fileCapability),
	"without-landlock":   withoutLandlock,
	"without-namespaces": withoutNamespaces,
	"without-pidfd":      withoutPidfd,
	"as-container":       asContainer,
	"as-podman":          asPodman,
	"as-ubuntu":          asUbuntu,
	"with-fuse":          withFuse,
}

// execute becomes another program.
func execute(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no program", errMisuse)
	}
	return unix.Exec(args[0], args, os.Environ())
}

// ownMounts carries out the given actions in new user and mount namespaces,
// where this program has every capability.
func ownMounts(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i, arg := range args {
		if arg == "+" { // "then" would end this action
			args[i] = "then"
		}
	}
	command := exec.Command(self, args...)
	command.Stdout = os.Stdout
	// Without a mapping the new process is nobody, and execve(2) would take its
	// capabilities if they were not ambient. A mapping cannot be written from
	// inside, because /proc is read-only there.
	command.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode()) // it has printed its own report
	}
	return err
}

// privileges prints the lines of /proc/self/status about this process's rights.
func privileges([]string) error {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		for _, name := range []string{"Uid:", "Cap", "NoNewPrivs:", "Seccomp"} {
			if strings.HasPrefix(line, name) {
				fmt.Print(line)
			}
		}
	}
	return nil
}

// raise tries to regain CAP_SYS_ADMIN, which only the bounding set prevents.
func raise([]string) error {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	bit := uint32(1) << unix.CAP_SYS_ADMIN
	data[0].Effective |= bit
	data[0].Permitted |= bit
	return unix.Capset(&header, &data[0])
}

// fileCapability gives a file CAP_SYS_ADMIN, permitted and effective (struct
// vfs_cap_data, linux/capability.h).
func fileCapability(path string) error {
	const revision2, effective = 0x02000000, 1
	data := make([]byte, 0, 20)
	for _, word := range []uint32{revision2 | effective, 1 << unix.CAP_SYS_ADMIN, 0, 0, 0} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	return unix.Setxattr(path, "security.capability", data, 0)
}
