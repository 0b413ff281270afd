//go:build unix

// Command sandbox-sidecar-mcp serves sandboxed tools to an agent by MCP. It
// confines nothing itself: it starts sandbox-sidecar, and speaks the protocol of
// editors with it. "sandbox-sidecar mcp" becomes this program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/mcp"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

const name = "sandbox-sidecar-mcp"

// version is set by the linker, except for "go install".
var version string

// options are what the command line says.
type options struct {
	sidecar, project, kind, settings string
	version                          bool
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	given, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		display.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	case given.version:
		fmt.Printf("%s %s\n", name, versionName())
		return 0
	}
	ctx, stop := ending.BySignal()
	defer stop()
	ctx, stopUnread := ending.Unread(ctx)
	defer stopUnread()
	ending.KeepOnPipe()
	err = serve(ctx, given)
	var ended ending.Signalled
	switch {
	case errors.As(context.Cause(ctx), &ended):
		return ended.Status()
	case err != nil:
		display.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// parse reads the command line, and fills in what it leaves out.
func parse(args []string) (given options, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&given.sidecar, "sidecar", "", "`FILE`: the sidecar; without it, sandbox-sidecar beside "+
		"this program")
	flags.StringVar(&given.project, "project", "", "`DIR`: project directory; without it, the current directory")
	flags.StringVar(&given.kind, "kind", string(protocol.Tool), "`terminal|tool`: kind of session")
	flags.StringVar(&given.settings, "settings", "", "`FILE`: settings to read instead of your own")
	flags.BoolVar(&given.version, "version", false, "print the version")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Printf("Agents start %s by \"sandbox-sidecar mcp\".\n\nFlags:\n", name)
			flags.SetOutput(os.Stdout)
			flags.PrintDefaults()
		}
		return given, err
	}
	if flags.NArg() > 0 {
		return given, fmt.Errorf("unexpected argument %s", display.Quote(flags.Arg(0)))
	}
	if kind := protocol.Kind(given.kind); kind != protocol.Terminal && kind != protocol.Tool {
		return given, fmt.Errorf(`--kind: expected "terminal" or "tool", found %s`, display.Quote(given.kind))
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" {
			err = fmt.Errorf("--%s: expected a path, found an empty name", f.Name)
		}
	})
	if err != nil {
		return given, err
	}
	if given.sidecar == "" {
		if given.sidecar, err = beside("sandbox-sidecar"); err != nil {
			return given, err
		}
	}
	for _, path := range []*string{&given.project, &given.sidecar, &given.settings} {
		if *path == "" && path != &given.project {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return given, err
		}
	}
	return given, nil
}

// beside is the path of a program in the directory of this one. Another
// directory, such as one of PATH, may be a project's.
func beside(program string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return filepath.Join(filepath.Dir(self), program), nil
}

// endTimeout bounds the wait for the sidecar's end. It takes long only if a
// process cannot be killed.
const endTimeout = 20 * time.Second

// serve starts a sidecar, and serves an agent until it ends. All commands have
// ended when it returns.
func serve(ctx context.Context, given options) error {
	args := []string{"serve", "--sandbox", "--log-level", "warn"}
	if given.settings != "" {
		args = append(args, "--settings", given.settings)
	}
	command := exec.Command(given.sidecar, args...)
	command.Stderr = os.Stderr
	sidecar, err := client.Start(command)
	if err != nil {
		return err
	}
	defer end(sidecar, command.Process)
	server, err := mcp.New(ctx, sidecar, mcp.Options{
		Version: versionName(), Project: given.project, Kind: protocol.Kind(given.kind),
	})
	if err != nil {
		return err
	}
	return server.Serve(ctx, os.Stdin, os.Stdout)
}

// end ends the sidecar. If it does not answer, it is killed; its watchdog then
// ends the sessions.
func end(sidecar *client.Client, process *os.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	kill := time.AfterFunc(endTimeout, func() { _ = process.Kill() })
	defer kill.Stop()
	if sidecar.Quit(ctx) != nil {
		_ = sidecar.HangUp()
	}
}

// versionName is the version of this program. "go install MODULE@VERSION" leaves
// it in the build information.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // "(devel)" in a checkout
	}
	return "unknown"
}
