//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// scene is one command of the scripted session and its expected result.
type scene struct {
	say     string
	command string
	// refusedBy is the setting whose absence makes the command fail; "" if the
	// command must succeed.
	refusedBy string
}

// play runs commands as an agent's tool would, and explains the results. It
// fails if the sandbox allows or refuses the wrong command.
func play(ctx context.Context, conn *client.Client, cwd string) (int, error) {
	closed, cleanUp, err := findClosed(ctx, conn, cwd)
	if err != nil {
		return 1, err
	}
	defer cleanUp()
	note := filepath.Join(cwd, fmt.Sprintf(".sandbox-sidecar-demo-%d", os.Getpid()))
	defer os.Remove(note)
	scenes := []scene{
		{say: "Reading a file of the project is allowed:", command: "ls"},
		{
			say:     "Writing in the project is allowed:",
			command: fmt.Sprintf("echo 'written from inside the sandbox' > %s && cat %s", quote(note), quote(note)),
		},
		{say: closed.say, command: "cat " + quote(closed.file), refusedBy: "additional_read_only_paths"},
	}
	if closed.ours {
		scenes = append(scenes, scene{
			say: "So is writing beside it:", command: fmt.Sprintf("echo gotcha > %s", quote(closed.file+".new")),
			refusedBy: "additional_read_write_paths",
		})
	}
	fmt.Printf("A tool in a sandbox, started by the real sidecar over its protocol, with %s as its project.\n", cwd)
	for i, s := range scenes {
		output, result, exit, err := runTool(ctx, conn, cwd, s.command)
		if err != nil {
			return 1, err
		}
		if i == 0 {
			describe(result)
		}
		fmt.Printf("\n%s\n  $ %s\n", s.say, s.command)
		for line := range strings.Lines(strings.ReplaceAll(output, "\r\n", "\n")) {
			fmt.Printf("  %s", line)
		}
		failed := exit.ExitCode == nil || *exit.ExitCode != 0
		switch {
		case s.refusedBy != "" && !failed:
			return 1, fmt.Errorf("the sandbox did not refuse: %s", s.command)
		case s.refusedBy == "" && failed:
			return 1, fmt.Errorf("the sandbox did not allow: %s", s.command)
		case s.refusedBy != "":
			fmt.Printf("  (refused by the kernel; the setting %q would allow it)\n", s.refusedBy)
		}
	}
	fmt.Println("\nRun this in a terminal to get a sandboxed shell of your own.")
	return 0, nil
}

func describe(result protocol.SpawnResult) {
	fmt.Printf("The sandbox is %s.\n", result.Sandbox.Status)
	for _, name := range slices.Sorted(maps.Keys(result.Sandbox.Protections)) {
		p := result.Sandbox.Protections[name]
		if p.Status == protocol.Enforced {
			fmt.Printf("  %-17s %s\n", name, p.Status)
		} else {
			fmt.Printf("  %-17s %s: %s\n", name, p.Status, p.Detail)
		}
	}
	for _, warning := range result.Sandbox.Warnings {
		fmt.Printf("warning: %s\n", warning)
	}
	if len(result.Environment.Dropped) > 0 {
		fmt.Printf("%d of your environment variables were removed, such as %s.\n", len(result.Environment.Dropped),
			result.Environment.Dropped[0])
	}
}

// runTool runs a command line to its end and returns what it printed.
func runTool(ctx context.Context, conn *client.Client, cwd, line string) (string, protocol.SpawnResult,
	protocol.ExitedParams, error,
) {
	var mu sync.Mutex // guards output
	var output strings.Builder
	ended := make(chan protocol.ExitedParams, 1)
	client.On(conn, protocol.Output, func(p protocol.OutputParams) {
		mu.Lock()
		defer mu.Unlock()
		output.Write(p.Data)
		_ = client.Notify(conn, protocol.Ack, protocol.AckParams{SessionID: p.SessionID, Bytes: len(p.Data)})
	})
	client.On(conn, protocol.Exited, func(p protocol.ExitedParams) { ended <- p })
	result, err := client.Call(ctx, conn, protocol.Spawn,
		protocol.SpawnParams{Kind: protocol.Tool, Cwd: cwd, Command: line})
	if err != nil {
		return "", result, protocol.ExitedParams{}, err
	}
	select {
	case exit := <-ended:
		mu.Lock()
		defer mu.Unlock()
		_, err := client.Call(ctx, conn, protocol.Close, protocol.CloseParams{SessionID: result.SessionID})
		return output.String(), result, exit, err
	case <-conn.Gone():
		return "", result, protocol.ExitedParams{}, fmt.Errorf("the sidecar has ended")
	}
}

func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
