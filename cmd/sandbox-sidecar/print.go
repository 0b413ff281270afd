package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

func schema(flags *flagSet, args []string) error {
	if err := parseNone(flags, args); err != nil {
		return err
	}
	_, err := os.Stdout.Write(settings.Schema())
	return err
}

func printVersion(flags *flagSet, args []string) error {
	if err := parseNone(flags, args); err != nil {
		return err
	}
	showVersion()
	return nil
}

func showVersion() { fmt.Printf("sandbox-sidecar %s\n", versionName()) }

// versionName is the version of this program. "go install MODULE@VERSION" leaves
// it in the build information.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // "(devel)" in a checkout
	}
	return "unknown"
}
