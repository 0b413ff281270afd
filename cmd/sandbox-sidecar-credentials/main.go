//go:build unix

// Command sandbox-sidecar-credentials has the secrets that a session uses
// without having them. sandbox-sidecar starts it, and it ends with its session.
// It holds what the program that confines must not: TLS, HTTP and the formats
// of files.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/service"
)

// version is set by the linker, except for "go install".
var version string

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Printf("%s %s\n", credentials.Program, versionName())
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", credentials.Program, err)
		os.Exit(1)
	}
}

// passed is the descriptor of the channel to the sidecar.
const passed = 3

func serve() error {
	var stat unix.Stat_t
	if err := unix.Fstat(passed, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fmt.Errorf("it is started by sandbox-sidecar, and of no use by itself")
	}
	if err := hideMemory(); err != nil {
		return err
	}
	unix.CloseOnExec(passed)
	channel, err := credentials.FromFile(os.NewFile(passed, "sidecar"))
	if err != nil {
		return err
	}
	defer channel.Close()
	return service.Run(channel)
}

func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
