package main

import (
	"fmt"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

func schema(args []string) error {
	flags := newFlags("schema", "schema")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	_, err := os.Stdout.Write(settings.Schema())
	return err
}

func printVersion(args []string) error {
	flags := newFlags("version", "version")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	fmt.Printf("sandbox-sidecar %s\n", version)
	return nil
}
