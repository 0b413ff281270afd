//go:build unix

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is stale")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./cmd/gen [-check]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(!*check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(write bool) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	root, err := moduleRoot(dir)
	if err != nil {
		return err
	}
	return generate(root, write)
}
