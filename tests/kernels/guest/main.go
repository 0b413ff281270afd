//go:build linux

// Command guest is the first process of a test machine. It mounts the file
// systems of a Linux system, runs the suites in each context, writes the
// results to the second serial port, and powers the machine off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/kernels/result"
)

func main() {
	switch {
	case os.Getpid() == 1:
		first()
	case len(os.Args) == 2 && os.Args[1] == "work":
		work()
	case len(os.Args) > 2 && os.Args[1] == "enter":
		fail("enter", enter(os.Args[2:]))
	case len(os.Args) > 2 && os.Args[1] == "container":
		fail("container", enterContainer(os.Args[2:]))
	default:
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a test machine, and would power this one off")
		os.Exit(2)
	}
}

func fail(what string, err error) {
	complain(what, err)
	os.Exit(125)
}

// first is what the first process does: it sets up the machine, and reaps
// orphans. Another process does the work, because tests expect a parent that is
// not the first process.
func first() {
	if err := mountProc(); err != nil {
		complain("mount /proc", err)
		powerOff()
	}
	o := readOrder()
	notes := mountAll(o)
	if err := unix.Sethostname([]byte("guest")); err != nil {
		notes = append(notes, fmt.Sprintf("give the machine a name: %v", err))
	}
	send := o.openPort()
	for _, note := range notes {
		send(result.Line{Note: note})
	}
	send(result.Line{Begin: begin(o)})
	worker, err := os.StartProcess("/init", []string{"/init", "work"},
		&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		complain("start the work", err)
		powerOff()
	}
	for ended := 0; ended != worker.Pid; {
		if ended, err = unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			complain("reap", err)
			break
		}
	}
	powerOff()
}

func work() {
	o := readOrder()
	send := o.openPort()
	for i, c := range contexts() {
		c.order = o
		c.share = (o.share + i) % o.shares
		if c.possible() {
			c.run(send)
		}
	}
	send(result.Line{End: true})
}

// openPort opens the serial port for results, and returns a function that
// writes a line to it.
func (o order) openPort() (send func(result.Line)) {
	port, err := os.OpenFile(o.port, os.O_WRONLY, 0)
	if err != nil {
		complain("open the port for results", err)
	}
	return func(line result.Line) {
		data, err := json.Marshal(line)
		if err == nil {
			_, err = port.Write(slices.Concat([]byte{'\n'}, data, []byte{'\n'}))
		}
		if err != nil {
			complain("send", err)
		}
	}
}

// complain writes to the console, the only remaining output.
func complain(what string, err error) { fmt.Fprintf(os.Stderr, "guest: %s: %v\n", what, err) }

func begin(o order) *result.Begin {
	var name unix.Utsname
	_ = unix.Uname(&name)
	abi, err := landlock.LandlockGetABIVersion()
	if err != nil {
		abi = 0
	}
	errata, err := landlock.LandlockGetErrata()
	if err != nil {
		errata = 0
	}
	read := func(path string) string {
		text, _ := os.ReadFile(path)
		return strings.TrimSpace(string(text))
	}
	uptime, _, _ := strings.Cut(read("/proc/uptime"), " ")
	seconds, _ := strconv.ParseFloat(uptime, 64)
	return &result.Begin{
		Release: unix.ByteSliceToString(name.Release[:]), ABI: abi, Errata: errata,
		LSM:         read("/sys/kernel/security/lsm"),
		Controllers: read(filepath.Join(o.cgroups(), "cgroup.controllers")), Seconds: seconds,
	}
}

func powerOff() {
	unix.Sync()
	time.Sleep(50 * time.Millisecond) // for the serial port's last bytes
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}
