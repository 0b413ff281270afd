//go:build unix

// Command sandbox-sidecar gives an editor terminals that the kernel confines.
// The editor starts it and talks to it over stdin and stdout. Its subcommands
// are for people and scripts; see commands.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	// runs in place of main if this process is the stage, for example
	_ "github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/roles"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/shells"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// version is set by the linker, except for "go install".
var version string

// errUsage is an invalid command line. The reason has been printed.
var errUsage = errors.New("invalid command line")

// output is standard output, and notes whether all of it could be written.
var output = &noting{to: os.Stdout}

// stdout and stderr are for people: each line is folded. What is for programs is
// written to output.
var stdout, stderr = display.Folding(output), display.Folding(os.Stderr)

// noting passes on what is written to it, and keeps the first error: most that
// is printed is printed without a look at that.
type noting struct {
	to  io.Writer
	err error
}

func (w *noting) Write(text []byte) (int, error) {
	n, err := w.to.Write(text)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// status is the exit status of a command that ends with code: what nobody could
// read is no success.
func (w *noting) status(code int) int {
	if w.err == nil {
		return code
	}
	if !errors.Is(w.err, syscall.EPIPE) { // else the reader has read enough
		cause := w.err
		var path *fs.PathError
		if errors.As(cause, &path) {
			cause = path.Err
		}
		display.Fprintf(stderr, "sandbox-sidecar: the output is not complete: %v: send it elsewhere\n", cause)
	}
	return max(code, 1)
}

// exitStatus is an error without a message that sets the exit status.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// endedBy is an error without a message: a signal by which this process is to
// end.
type endedBy unix.Signal

func (s endedBy) Error() string { return "ended by " + unix.SignalName(unix.Signal(s)) }

// lastSignal is the signal by which finish ends this process; 0: by none.
var lastSignal unix.Signal

// failureStatus is the exit status after an error. It is that of shells if the
// command itself could not be executed.
func failureStatus(err error) int {
	var failed *spawn.NotExecutedError
	switch {
	case errors.As(err, &failed) && failed.Missing:
		return 127
	case failed != nil:
		return 126
	}
	return 1
}

func main() {
	guardFileSystems()
	if name, is := shells.CalledAs(os.Args[0]); is {
		finish(exitCode(asShell(name, os.Args)))
	}
	if len(os.Args) > 2 && os.Args[1] == "attempt" {
		os.Exit(runAttempts(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == keepRole && isKeeper(os.Args[2:]) {
		finish(exitCode(keep(os.Args[2:])))
	}
	finish(run(os.Args[1:]))
}

func run(args []string) int {
	name := "serve"
	switch {
	case len(args) == 0:
		if isTerminal(os.Stdin) { // no editor starts it so
			described(false).Help(stderr)
			return 2
		}
	case len(args) == 2 && args[0] == "help" && !slices.Contains([]string{"help", "--help", "-h"}, args[1]):
		name, args = args[1], []string{"--help"}
	case args[0] == "--help" || args[0] == "-h" || args[0] == "help":
		described(false).Help(output)
		return 0
	case args[0] == "--version":
		name, args = "version", nil
	case !strings.HasPrefix(args[0], "-"):
		name, args = args[0], args[1:]
	}
	command, ok := find(name)
	if !ok {
		message := "unknown command " + quoted(name)
		if meant := described(false).Nearest(name); meant != "" {
			message += ": did you mean " + quoted(meant) + "?"
		}
		display.Fprintf(stderr, "sandbox-sidecar: %s\n"+
			"sandbox-sidecar: hint: `sandbox-sidecar help` lists the commands\n", message)
		return 2
	}
	trail.Via = name
	return exitCode(command.run(newFlags(command), args))
}

// exitCode prints an error, and returns the exit status for it.
func exitCode(err error) int {
	var status exitStatus
	var ended endedBy
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &ended):
		lastSignal = unix.Signal(ended)
		return 128 + int(ended) // as shells report it
	case errors.Is(err, errUsage):
		return 2
	case output.err != nil && errors.Is(err, output.err): // see noting.status
		return 1
	default:
		printError(stderr, err)
		return failureStatus(err)
	}
}

// trail is the audit trail of this process. Nothing is written unless settings
// ask for it.
var trail = audit.Trail{Failed: func(err error) {
	display.Fprintf(stderr, "sandbox-sidecar: warning: %s: %v\n", trailLost, err)
}}

const (
	trailLost = "the audit trail loses lines"
	// trailTimeout bounds the wait for its last lines.
	trailTimeout = time.Second
)

// finish ends this process, once the audit trail has everything.
func finish(code int) {
	code = output.status(code)
	trail.Close(trailTimeout)
	if lastSignal != 0 {
		caller.EndBy(lastSignal)
	}
	os.Exit(code)
}
