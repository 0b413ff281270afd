package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/placeholder"
)

// commandTime is how long a command may take: it may ask the user for a password, in
// a window of its own.
const commandTime = 2 * time.Minute

// fetched runs a command when its secret is first used, and keeps the secret. One
// that has failed is run again for the next request.
func fetched(command, env []string) func(context.Context) (string, error) {
	var mu sync.Mutex // guards kept; one runs at a time
	kept := ""
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if kept != "" {
			return kept, nil
		}
		secret, err := run(ctx, command, env)
		if err != nil {
			return "", err
		}
		if _, err := placeholder.Of(secret); err != nil {
			return "", fmt.Errorf("what its command prints is %w", err)
		}
		kept = secret
		return kept, nil
	}
}

// mostPrinted bounds what a command prints.
const mostPrinted = 64 << 10

// run returns the first line that a command prints. It has no terminal and no input.
func run(ctx context.Context, argv, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	program, err := lookUp(argv[0], env)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, program, argv[1:]...)
	command.Args[0], command.Env = argv[0], env
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second // for what it has left running
	var out, failed bounded
	command.Stdout, command.Stderr = &out, &failed
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("its command has not ended after %s", commandTime)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		first, _, _ := strings.Cut(strings.TrimSpace(failed.String()), "\n")
		return "", fmt.Errorf("its command has failed: %w: %.200s", err, first)
	}
	secret, _, _ := strings.Cut(out.String(), "\n")
	secret = strings.TrimSuffix(secret, "\r")
	if secret == "" {
		return "", errors.New("its command prints nothing")
	}
	return secret, nil
}

// lookUp finds a program by the PATH of an environment. This program's own is empty.
func lookUp(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, entry := range env {
		value, is := strings.CutPrefix(entry, "PATH=")
		for _, dir := range filepath.SplitList(value) {
			if path := filepath.Join(dir, name); is && filepath.IsAbs(path) {
				if found, err := exec.LookPath(path); err == nil {
					return found, nil
				}
			}
		}
	}
	return "", fmt.Errorf("its command %q is not in PATH", name)
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := mostPrinted - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
