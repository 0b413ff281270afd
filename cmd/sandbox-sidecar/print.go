package main

import (
	"fmt"
	"os"

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

func showVersion() { fmt.Printf("sandbox-sidecar %s\n", version) }
