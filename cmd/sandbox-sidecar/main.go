// Command sandbox-sidecar gives an editor terminals that the kernel confines.
// The editor starts it and talks to it over stdin and stdout. Its subcommands
// are for people and scripts; see usage.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	// runs in place of main if this process is the stage, for example
	_ "github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/roles"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// version is set by the linker.
var version = "0.1.0-dev"

const usage = `sandbox-sidecar gives an editor terminals that the kernel confines.

usage: sandbox-sidecar [serve]                      serve the protocol on stdin and stdout
       sandbox-sidecar exec [flags] -- CMD [ARG…]   run a command under the settings, in this terminal
       sandbox-sidecar learn [flags] -- CMD [ARG…]  run a command and print the settings that it needs
       sandbox-sidecar policy [flags]               print what a session in a project may do
       sandbox-sidecar explain [flags] ACCESS TARGET
                                                    print whether a session may do something, and why
       sandbox-sidecar trust [flags] [DIR]          let a project's settings count as they are written
       sandbox-sidecar untrust [DIR]                stop trusting them: they can only restrict
       sandbox-sidecar cache [clear [NAME…]]        list what sessions keep in caches of toolchains, or clear it
       sandbox-sidecar doctor [flags]               try attacks and print what this machine enforces
       sandbox-sidecar schema                       print the JSON Schema of the settings
       sandbox-sidecar version                      print the version

"sandbox-sidecar help COMMAND" lists the flags of a command.
`

// errUsage is an invalid command line. The reason has been printed.
var errUsage = errors.New("invalid command line")

// exitStatus is an error without a message that sets the exit status.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

var commands = map[string]func(args []string) error{
	"serve":   serve,
	"cache":   cache,
	"exec":    execute,
	"explain": explain,
	"learn":   learn,
	"policy":  printPolicy,
	"doctor":  doctor,
	"schema":  schema,
	"trust":   trust,
	"untrust": untrust,
	"version": printVersion,
}

func main() {
	guardFileSystems()
	if len(os.Args) > 2 && os.Args[1] == "attempt" {
		os.Exit(runAttempts(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:], os.Stderr))
}

func run(args []string, stderr io.Writer) int {
	name := "serve"
	if len(args) == 2 && args[0] == "help" && commands[args[1]] != nil {
		args = []string{args[1], "--help"}
	}
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
		fmt.Print(usage)
		return 0
	}
	if len(args) > 0 && args[0][:min(1, len(args[0]))] != "-" {
		name, args = args[0], args[1:]
	}
	command, ok := commands[name]
	if !ok {
		display.Fprintf(stderr, "sandbox-sidecar: unknown command %s\n", quoted(name))
		fmt.Fprint(stderr, usage)
		return 2
	}
	err := command(args)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, errUsage):
		return 2
	default:
		printError(stderr, err)
		return 1
	}
}
