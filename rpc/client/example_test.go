package client_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// Run a command in a sandbox, and print its output.
func Example() {
	if err := run("sandbox-sidecar", "/home/user/project", "make test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func run(sidecar, project, command string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Start(exec.Command(sidecar, "serve"))
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	client.On(c, protocol.Output, func(o protocol.OutputParams) { _, _ = os.Stdout.Write(o.Data) })
	client.On(c, protocol.Exited, func(protocol.ExitedParams) { close(ended) })
	if _, err := client.Call(ctx, c, protocol.Initialize, protocol.InitializeParams{}); err != nil {
		return err
	}
	session, err := client.Call(ctx, c, protocol.Spawn, protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: project, Command: command,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "sandbox:", session.Sandbox.Status)
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.Quit(ctx)
}
