//go:build linux

// Command victim tries what explanations are about. Each argument is an access
// and a target, as "read /etc/passwd". It prints one line for each: "done", or
// the name of the error.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	for _, act := range os.Args[1:] {
		access, target, _ := strings.Cut(act, " ")
		if err := try(access, target); err != nil {
			fmt.Printf("result %s\n", nameOf(err))
			continue
		}
		fmt.Println("result done")
	}
}

func nameOf(err error) string {
	if errno, is := errors.AsType[unix.Errno](err); is {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// connect connects to an address or a name, by TCP.
func connect(target string) error {
	conn, err := net.Dial("tcp", target)
	if err != nil {
		return err
	}
	return conn.Close()
}

// errPart says that the secret of a file was left out.
var errPart = errors.New("a part")

// secret reads a file that holds a token.
func secret(target string) error {
	text, err := os.ReadFile(target)
	if err == nil && !strings.Contains(string(text), "_authToken") {
		err = errPart
	}
	return err
}

// try makes the attempt with the calls that programs make. Nothing that exists
// changes, but for the names that "create" makes, and the files that "append" makes
// longer.
func try(access, target string) error {
	open := func(flags int) error {
		fd, err := unix.Open(target, flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	switch access {
	case "read":
		return open(unix.O_RDONLY)
	case "write":
		return open(unix.O_WRONLY)
	case "create":
		return open(unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL)
	case "append":
		file, err := os.OpenFile(target, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = file.WriteString("more\n")
		return errors.Join(err, file.Close())
	case "secret":
		return secret(target)
	case "execute":
		process, err := os.StartProcess(target, []string{target, "--version"}, &os.ProcAttr{})
		if err != nil {
			return err
		}
		_, err = process.Wait()
		return err
	case "connect_unix":
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrUnix{Name: target})
	case "bind":
		listener, err := net.Listen("tcp", target)
		if err != nil {
			return err
		}
		return listener.Close()
	case "connect", "connect_name":
		return connect(target)
	case "connect_own":
		listener, err := net.Listen("tcp", target)
		if err != nil {
			return err
		}
		defer listener.Close()
		return connect(target)
	}
	return fmt.Errorf("misused: %q", access)
}
