// Macos finds everything that is wrong on a Mac in one run of CI, and loses no
// evidence of it.
//
//	macos step NAME     run a step of the CI job, and compare with its golden
//	macos story TABLE   run everyday commands outside and in sandboxes
//	macos records TABLE write what a machine says of itself
//	macos workflow      print the job, .github/workflows/macos.yml
//
// Steps write to the directory that SIDECAR_EVIDENCE names, which the job uploads.
// Each runs whatever became of the others. docs/design/evidence-on-macos.md says
// why.
//
// The exit status is 0 if everything is as the golden says, 1 if not, and 2 if the
// command line is wrong.
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "macos:", err)
		os.Exit(1)
	}
}

var (
	errUsage = errors.New("usage: macos step NAME | story [flags] TABLE | records TABLE | workflow")
	// errDiffers is a step whose result is not its golden's; the rows are printed.
	errDiffers = errors.New("not everything is as expected")
)

func command(ctx context.Context, args []string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "step" && len(args) == 1:
		for _, s := range steps {
			if s.name == args[0] {
				return s.run(ctx, evidenceDir(), os.Stdout)
			}
		}
		return fmt.Errorf("no step is called %q", args[0])
	case verb == "story":
		return storyCommand(ctx, args)
	case verb == "records" && len(args) == 1:
		return recordsCommand(ctx, args[0], evidenceDir())
	case verb == "workflow" && len(args) == 0:
		_, err := os.Stdout.WriteString(workflow())
		return err
	}
	return errUsage
}

// evidenceDir is where a step leaves what it has found.
func evidenceDir() string {
	if dir := os.Getenv("SIDECAR_EVIDENCE"); dir != "" {
		return dir
	}
	return "evidence"
}
