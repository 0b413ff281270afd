//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var detachActions = map[string]action{
	"detach": one(func(file string) error { return leave("detach-again", file) }),
	// The second of two forks: the result has neither its parent nor its
	// terminal nor its process group.
	"detach-again": one(func(file string) error { return leave("linger", file) }),
	"linger":       one(linger),
	"wait":         one(wait),
}

// lingerTime bounds a process that a failed test leaves behind.
const lingerTime = 2 * time.Minute

// leave starts this program again in a session of its own and does not wait for
// it.
func leave(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self, args...)
	command.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	return command.Start()
}

// linger ignores every signal that can be ignored, writes its process id to a
// file, and stays.
func linger(file string) error {
	signal.Ignore()
	if err := announce(file); err != nil {
		return err
	}
	<-time.After(lingerTime)
	return nil
}

// announce writes the process id; a reader sees all of it or nothing.
func announce(file string) error {
	temporary := file + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(temporary, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}

// wait stays until a file exists.
func wait(file string) error {
	for end := time.Now().Add(lingerTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %s never came", errMisuse, file)
}
