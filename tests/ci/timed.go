package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// timing are the flags of "go test" that have it start each package's tests by
// timed, if the program for that is built.
func timing() []string {
	programs := os.Getenv("SIDECAR_PROGRAMS")
	if programs == "" {
		return nil
	}
	return []string{"-exec", "'" + filepath.Join(programs, "tests/ci") + "' timed"} // it is split at blanks
}

// withOrphans is a command that is timed with all of its descendants: those of
// an editor's tests do not wait for each other.
func withOrphans(command []string) []string {
	self, err := os.Executable()
	if err != nil {
		return command
	}
	return append([]string{self, "timed", orphansFlag}, command...)
}

const orphansFlag = "-orphans"

// limitVariable is a time limit for timed; "" for none. It is prolonged by the time
// for which the program and its descendants wait for a processor.
const limitVariable = "SIDECAR_TIMED_LIMIT"

// endTimeout is how long a program may take to print its stacks.
const endTimeout = time.Minute

// limitOf reads a value of limitVariable; 0 is no limit.
func limitOf(value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	limit, err := time.ParseDuration(value)
	if err == nil && limit <= 0 {
		err = errors.New("not above 0")
	}
	if err != nil {
		return 0, fmt.Errorf("%s=%q: %w", limitVariable, value, err)
	}
	return limit, nil
}

// secondsFormat is how timed prints processor seconds.
const secondsFormat = "processor seconds: %f\n"

// timed runs a package's test program, and prints the processor seconds that it and
// the processes that it waited for have taken, and what it has read of other
// packages. After orphansFlag it runs any program, and prints the seconds of all
// descendants whose parents have ended too. It ends the way the program ends.
func timed(args []string) error {
	reads := func() ([]string, error) { return nil, nil }
	var err error
	if args[0] == orphansFlag {
		args = args[1:]
		err = adoptOrphans()
	} else {
		args, reads, err = readLog(args)
	}
	if err != nil {
		return err
	}
	limit, err := limitOf(os.Getenv(limitVariable))
	if err != nil {
		return err
	}
	// "go test" asks a program that hangs for its stacks by SIGQUIT. SIGTERM comes
	// to the whole process group: the program may have to clean up.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // whose end is the parent's for endWithParent
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: endWithParent(),
	})
	if err != nil {
		return err
	}
	if limit > 0 {
		go func() {
			<-deadline.After(limit)
			fmt.Printf("panic: test timed out after %v\n", limit) // as "go test" has it
			_ = process.Signal(syscall.SIGQUIT)
			<-deadline.After(endTimeout)
			_ = process.Kill() // it does not hear that
		}()
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGQUIT {
				_ = process.Signal(s)
			}
		}
	}()
	seconds := 0.0
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, 0, &used)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for _, spent := range []syscall.Timeval{used.Utime, used.Stime} {
			seconds += float64(spent.Nano()) / 1e9
		}
		if pid != process.Pid {
			continue
		}
		fmt.Printf("\n"+secondsFormat, seconds)
		names, err := reads()
		if err != nil && status.ExitStatus() == 0 {
			return fmt.Errorf("what the tests have read: %w", err)
		}
		for _, name := range names {
			fmt.Printf(readFormat, name)
		}
		if status.Signaled() {
			fmt.Fprintln(os.Stderr, "signal:", status.Signal())
			os.Exit(128 + int(status.Signal()))
		}
		os.Exit(status.ExitStatus())
	}
}
