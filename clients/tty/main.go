//go:build unix

// Command tty is the smallest client of sandbox-sidecar. It opens a sandboxed
// shell in a terminal through the sidecar's protocol. Without a terminal it runs
// a few commands that show what is allowed and what is refused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

func main() {
	sidecar := flag.String("sidecar", "bin/sandbox-sidecar", "path of the sidecar")
	project := flag.String("project", ".", "project directory")
	watching := flag.Bool("watch", false, "show the notifications of changed settings instead of opening a shell")
	flag.Parse()
	status, err := run(*sidecar, *project, *watching)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tty: %v\n", err)
	}
	os.Exit(status)
}

func run(sidecar, project string, watching bool) (int, error) {
	if err := os.Chdir(project); err != nil {
		return 1, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	command := exec.Command(sidecar, "serve", "--log-level", "error")
	command.Stderr = os.Stderr
	// Ctrl-C signals the whole foreground process group, which the sidecar must
	// not be part of.
	command.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	conn, err := client.Start(command)
	if err != nil {
		return 1, err
	}
	options := &protocol.InitializationOptions{}
	var granted []string
	if !watching { // watching shows the user's own settings
		if options.Settings, granted, err = demoSettings(os.Getenv("PATH")); err != nil {
			return 1, err
		}
	}
	ctx := context.Background()
	pid := os.Getpid()
	hello, err := client.Call(ctx, conn, protocol.Initialize, protocol.InitializeParams{
		ProcessID: &pid, ClientInfo: &protocol.ClientInfo{Name: "tty"},
		WorkspaceFolders:      []protocol.WorkspaceFolder{{Path: cwd}},
		Capabilities:          protocol.ClientCapabilities{FlowControl: true, PromptLines: true},
		InitializationOptions: options,
	})
	if err != nil {
		return 1, errors.Join(err, conn.HangUp())
	}
	_ = client.Notify(conn, protocol.Initialized, protocol.Empty{})
	var status int
	if watching {
		status, err = 1, watch(ctx, conn, cwd)
	} else if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) {
		introduce(hello, cwd, granted)
		status, err = interact(ctx, conn, cwd)
	} else {
		status, err = play(ctx, conn, cwd)
	}
	return status, errors.Join(err, conn.Quit(ctx))
}

func introduce(hello protocol.InitializeResult, cwd string, granted []string) {
	fmt.Printf("This is a shell in a sandbox. It can write in %s and in temporary directories, and read the system;\n",
		cwd)
	fmt.Println("your home directory is closed, except the shell's configuration. Everything else works as before.")
	for _, path := range granted {
		fmt.Printf("It can also run programs below %s, because that is on your PATH.\n", path)
	}
	if filesystem := hello.Capabilities.Enforcement["filesystem"]; filesystem.Status != protocol.Enforced {
		fmt.Printf("Careful: files are not fully protected on this machine: %s\n", filesystem.Detail)
	}
	fmt.Println(`Try "cat ~/.ssh/id_rsa"; leave with "exit".`)
}

// interact connects this terminal to a sandboxed one until its shell ends.
func interact(ctx context.Context, conn *client.Client, cwd string) (int, error) {
	ended := make(chan protocol.ExitedParams, 1)
	client.On(conn, protocol.Exited, func(p protocol.ExitedParams) { ended <- p })
	client.On(conn, protocol.Output, func(p protocol.OutputParams) {
		_, _ = os.Stdout.Write(p.Data)
		_ = client.Notify(conn, protocol.Ack, protocol.AckParams{SessionID: p.SessionID, Bytes: len(p.Data)})
	})
	cols, rows, _ := term.GetSize(int(os.Stdout.Fd()))
	session, err := client.Call(ctx, conn, protocol.Spawn,
		protocol.SpawnParams{Cwd: cwd, Shell: plainShell(), Cols: cols, Rows: rows})
	if err != nil {
		return 1, err
	}
	for _, warning := range session.Sandbox.Warnings {
		fmt.Printf("warning: %s\n", warning)
	}
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return 1, fmt.Errorf("switch terminal to raw mode: %w", err)
	}
	defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()
	go typeInto(conn, session.SessionID)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	for {
		select {
		case <-resized:
			if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
				_ = client.Notify(conn, protocol.Resize, protocol.ResizeParams{
					SessionID: session.SessionID, Cols: cols,
					Rows: rows,
				})
			}
		case exit := <-ended:
			if exit.ExitCode != nil {
				return *exit.ExitCode, nil
			}
			return 1, fmt.Errorf("the shell was ended by %s", *exit.Signal)
		case <-conn.Gone():
			return 1, errors.New("the sidecar has ended")
		}
	}
}

// plainShell is the user's shell, but not as a login shell: its PATH comes from
// the login shell that started this process, and /etc/profile would reset it.
// Without $SHELL the sidecar chooses a shell.
func plainShell() *protocol.Shell {
	if shell := os.Getenv("SHELL"); shell != "" {
		return &protocol.Shell{Program: shell}
	}
	return nil
}

func typeInto(conn *client.Client, session string) {
	buf := make([]byte, 32<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			_ = client.Notify(conn, protocol.Input, protocol.InputParams{SessionID: session, Data: buf[:n]})
		}
		if err != nil {
			return
		}
	}
}
