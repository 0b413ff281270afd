//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// attempts are the actions of doctor's attacks, by name. Each does one thing
// that a session must not be able to do, and returns nil if it could. They run
// in a process of their own, once without a sandbox and once in a session.
var attempts = map[string]func(argument string) error{
	"read":    func(path string) error { return opened(os.Open(path)) },
	"write":   func(path string) error { return opened(os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)) },
	"execute": execUnknown,
	"tcp":     func(address string) error { return dialled(net.Dial("tcp", address)) },
	"socket":  func(address string) error { return dialled(net.Dial("unix", address)) },
	"terminate": func(pid string) error {
		return withPID(pid, func(pid int) error { return unix.Kill(pid, unix.SIGTERM) })
	},
	"stay": stay,
}

// runAttempts is the main function of the process that tries. Each argument is
// "name=argument"; for each it prints a line "name=result".
func runAttempts(arguments []string) int {
	known := maps.Clone(attempts)
	maps.Copy(known, systemAttempts)
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		switch {
		case name == "wait":
			_, _ = io.Copy(io.Discard, os.Stdin)
		case name == "linger":
			linger(value)
		case known[name] == nil:
			return 2
		default:
			answer := "works"
			if err := known[name](value); err != nil {
				answer = rootCause(err).Error()
			}
			fmt.Printf("%s=%s\n", name, answer)
		}
	}
	return 0
}

// rootCause is the errno in an error, without the paths that the layers above
// add.
func rootCause(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func opened(file *os.File, err error) error {
	if err != nil {
		return err
	}
	return file.Close()
}

func dialled(conn net.Conn, err error) error {
	if err != nil {
		return err
	}
	return conn.Close()
}

func withPID(text string, do func(pid int) error) error {
	pid, err := strconv.Atoi(text)
	if err != nil || pid < 2 { // 0 and negative numbers mean many processes, 1 is init
		return fmt.Errorf("not a process id: %q", text)
	}
	return do(pid)
}

// execUnknown executes a file that is not a program. The kernel checks
// permissions first. ENOEXEC therefore means that it would have run a program.
func execUnknown(path string) error {
	err := exec.Command(path).Run()
	if errors.Is(err, unix.ENOEXEC) {
		return nil
	}
	return err
}

// stayTime bounds the life of a process that a session failed to end.
const stayTime = 20 * time.Second

// stay leaves a process behind in a process session of its own (setsid(2)), and
// returns once that process holds the lock of the file.
func stay(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self, "attempt", "linger="+path)
	command.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	for range 500 {
		if held, err := lockHeld(path); err != nil || held {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.New("the process did not start in time")
}

// linger holds the lock of a file for a while.
func linger(path string) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	if unix.Flock(int(file.Fd()), unix.LOCK_EX) != nil {
		return
	}
	if _, err := fmt.Fprint(file, os.Getpid()); err != nil {
		return
	}
	time.Sleep(stayTime)
}

// lockHeld reports whether a living process holds the lock of the file. It tries
// a shared lock, which does not block others that check.
func lockHeld(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
