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
	check := flags.Bool("check", false, "print what is over the limits, and fail if anything is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	var projects []project
	for _, dir := range dirs {
		measured, err := measure(dir)
		if err != nil {
			return fmt.Errorf("measure %s: %w", dir, err)
		}
		projects = append(projects, measured)
	}
	if *check {
		return checkAll(out, projects)
	}
	return printTables(out, projects)
}

// checkAll prints the findings of every project.
func checkAll(out io.Writer, projects []project) error {
	count := 0
	for _, p := range projects {
		for _, f := range findings(p) {
			fmt.Fprintln(out, f)
			count++
		}
	}
	if count > 0 {
		return fmt.Errorf("%d over the limits (CONTRIBUTING.md has the rules)", count)
	}
	return nil
}
