package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "measure: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	check := flags.Bool("check", true, "fail if anything is longer than the rules allow")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	count := 0
	for _, dir := range dirs {
		p, err := measure(dir)
		if err != nil {
			return fmt.Errorf("measure %s: %w", dir, err)
		}
		for _, f := range findings(p) {
			fmt.Fprintln(out, f)
			count++
		}
	}
	if count > 0 && *check {
		return fmt.Errorf("%d over the limits (CONTRIBUTING.md has the rules)", count)
	}
	return nil
}
