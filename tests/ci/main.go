// Ci runs the tests that decide whether a change lands.
//
//	go run ./tests/ci         run what .ci/run runs: the tests that the change can
//	                          matter to
//	go run ./tests/ci all     run everything, whatever has changed (make test-all)
//	go run ./tests/ci only PART...
//	                          run parts by their names; see parts.go
//	go run ./tests/ci list    print what runs where, with processor seconds
//	go run ./tests/ci begins
//	                          note that this commit is judged anew; see notes.go
//	go run ./tests/ci passed TREE
//	                          note that the run of a tree was green
//
// It runs the parts of parts.go side by side. When all have ended, it runs the
// failed tests again, one after the other with nothing beside them. A test that
// passes then is flaky: it is reported and noted, and the run is green. Some
// failures are certain, and end the run at once; see results.go.
// docs/design/what-ci-runs.md says why.
//
// The exit status is 0 if the run is green, 1 if it is red, and 2 if the command
// line is wrong or nothing could be run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := command(ctx, os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, errRed):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "tests/ci:", err)
		os.Exit(2)
	}
}

var errUsage = errors.New("usage: go run ./tests/ci [all | only PART... | list | begins | passed TREE]")

func command(ctx context.Context, args []string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "timed" && len(args) > 0: // tests of a package; see timed.go
		return timed(args)
	case verb == "only" && len(args) > 0:
		return only(ctx, args)
	case verb == "passed" && len(args) == 1:
		if !runsEverything() {
			fmt.Printf("no %s: everything runs only as root on Debian\n", passedFile)
		}
		return passed(ctx, ".", args[0], runsEverything())
	case len(args) > 0:
		return errUsage
	case verb == "" || verb == "all":
		return judge(ctx, verb == "all")
	case verb == "begins":
		return forget(ctx, ".")
	case verb == "list":
		return list(ctx, os.Stdout)
	}
	return errUsage
}
