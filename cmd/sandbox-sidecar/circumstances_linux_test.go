package main

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// onThread runs a function on a thread of its own, which ends with it.
func onThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // a thread that is locked ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		onThread(do) // the main thread would not end
		runtime.UnlockOSThread()
	}()
	<-done
}

// attribute is something that a process hands down.
type attribute struct {
	// prepare is done before; nil: nothing. missing is the feature that it needs.
	prepare func() error
	missing string
	change  func() error
}

var attributes = map[string]attribute{
	"scheduling class": {change: func() error {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			return err
		}
		attr.Policy = unix.SCHED_BATCH
		return unix.SchedSetAttr(0, attr, 0)
	}},
	"priority of input and output": {change: func() error {
		const process, idle = 1, 3 << 13 // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE
		if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, process, 0, idle); errno != 0 {
			return errno
		}
		return nil
	}},
	"keyring": {
		missing: "keyrings",
		prepare: joinKeyring,
		change:  joinKeyring,
	},
	"root directory": {
		missing: "mount_namespace",
		prepare: func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		},
		// All paths lead to the same files as before, also those of /proc.
		change: func() error {
			const dir = "/tmp"
			if err := unix.Mount("/", dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("mount /: %w", err)
			}
			return unix.Chroot(dir)
		},
	},
}

// joinKeyring gives the thread a new session keyring without a name. Package unix
// has a function for that, but it passes an empty name, which the kernel refuses.
func joinKeyring() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	return err
}

// Commands share a sandbox only if they would inherit the same outside: each
// attribute that a process hands down makes other circumstances.
func TestCircumstances(t *testing.T) {
	t.Parallel()
	for name, a := range attributes {
		t.Run(name, func(t *testing.T) {
			if name == "root directory" && unix.Geteuid() != 0 {
				harness.Skip(t, "root", "only root has another root directory")
			}
			var lacks, failed error
			var before, again, after string
			onThread(func() {
				if a.prepare != nil {
					if lacks = a.prepare(); lacks != nil {
						return
					}
				}
				before, again = circumstances(), circumstances()
				failed = a.change()
				after = circumstances()
			})
			// Only a refusal says that the machine lacks something. Another error is
			// of a call that this test gets wrong.
			refused := errors.Is(lacks, fs.ErrPermission) || errors.Is(lacks, errors.ErrUnsupported)
			switch {
			case lacks != nil && !refused:
				t.Fatalf("%s cannot be prepared: %v", name, lacks)
			case lacks != nil:
				harness.Skip(t, a.missing, lacks.Error())
			case failed != nil:
				t.Fatal(failed)
			case before != again:
				t.Errorf("control: they are %q, and then %q", before, again)
			case before == after:
				t.Errorf("with another %s they are the same: %q", name, after)
			}
		})
	}
}
