package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how long a part has to end after SIGTERM before it is killed.
const grace = 20 * time.Second

// ran is a part that has run.
type ran struct {
	part
	*results
	err       error // of the command
	took      time.Duration
	processor time.Duration // of all processes that were waited for
}

// toTheEnd is the variable that makes every part run to its end, also if the run is
// certainly red: on a machine that is seldom at hand, one run has to find all.
const toTheEnd = "SIDECAR_TO_THE_END"

// runLanes runs lanes side by side, and the parts of each lane one after the
// other. It returns the parts that have run, in the order of their ends, and why
// the run is red whatever runs again; "" if that is not certain. Then the other
// parts are ended, unless all of them run to their end.
func runLanes(ctx context.Context, out io.Writer, lanes [][]part, toEnd bool) (all []*ran, certain string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // guards all, out and certain
	isCertain := func(p part, why string) {
		if !toEnd {
			cancel(errors.New(p.name + ": " + why))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if certain == "" {
			certain = p.name + ": " + why
		}
	}
	var ending sync.WaitGroup
	for _, lane := range lanes {
		ending.Go(func() {
			for _, p := range lane {
				if ctx.Err() != nil {
					return
				}
				done := run(ctx, p, func(why string) { isCertain(p, why) }, func(text string) {
					mu.Lock()
					defer mu.Unlock()
					fmt.Fprintf(out, "%s: %s", p.name, text)
				})
				mu.Lock()
				all = append(all, done)
				fmt.Fprintln(out, done)
				mu.Unlock()
			}
		})
	}
	ending.Wait()
	if cause := context.Cause(ctx); cause != nil {
		certain = cause.Error()
	}
	return all, certain
}

// String is the line that a run prints when a part ends.
func (r *ran) String() string {
	counts := r.counts()
	result := fmt.Sprintf("%d passed, %d failed, %d skipped", counts["pass"], counts["fail"], counts["skip"])
	switch {
	case len(counts) == 0 && r.err == nil:
		result = "passed"
	case len(r.outcome) == 0 && r.err != nil:
		result = fmt.Sprintf("failed: %v", r.err)
	}
	for _, line := range r.lacks {
		result += "; " + line
	}
	return fmt.Sprintf("%s: %s in %s, %d processor seconds", r.name, result, r.took.Round(time.Second),
		int(r.processor.Seconds()))
}

// run runs a part to its end. say gets what it prints for people.
func run(ctx context.Context, p part, certain, say func(string)) *ran {
	r := &ran{part: p, results: newResults(certain)}
	begun := time.Now()
	r.err = start(ctx, p.command, p.env, func(line []byte) {
		if text := r.line(line); text != "" && (!p.quiet || strings.HasPrefix(text, "failed: ")) {
			say(text)
		}
	}, &r.processor)
	r.took = time.Since(begun)
	if all := r.seconds[""]; all > r.processor.Seconds() {
		r.processor = time.Duration(all * float64(time.Second))
	}
	if ctx.Err() == nil {
		r.mustHaveRun(p.packages)
		r.ended(r.err, p.again != nil)
	}
	return r
}

// start runs a command in a process group of its own, and calls each for every
// line that it prints.
func start(ctx context.Context, args, env []string, each func([]byte), processor *time.Duration) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = append(os.Environ(), env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = grace
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	command.Stdout, command.Stderr = write, write
	if err := command.Start(); err != nil {
		return errors.Join(err, write.Close())
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		// What it has left running could hold the pipe open. If it was ended, others
		// of its group are cleaning up.
		for end := time.Now().Add(grace); ctx.Err() != nil && time.Now().Before(end); {
			if syscall.Kill(-command.Process.Pid, 0) != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		ended <- err
		_ = write.Close()
		_ = read.SetReadDeadline(time.Now().Add(grace))
	}()
	lines := bufio.NewReader(read)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			each(line)
		}
		if err != nil {
			break
		}
	}
	err = <-ended
	*processor = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return err
}
