//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/owner"
	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// keepRole is the argument that makes this program the keeper: the process that
// keeps the sandbox which the commands of an agent share.
const keepRole = "keep"

// mostJoined bounds the commands that run in a kept sandbox at a time.
const mostJoined = 1024

// keeperAnswer is the line that a keeper writes once it is ready, or has failed.
type keeperAnswer struct {
	Error string `json:"error,omitempty"`
}

// keeper keeps one sandbox.
type keeper struct {
	agent    owner.Process
	project  *projectFlags
	store    *settings.Store
	snapshot *compile.Snapshot
	kind     settings.Kind
	plan     *session.Admitted
}

// detached is the last argument of the keeper itself.
const detached = "detached"

// lockFile is the number of the descriptor of the place's lock.
const lockFile = 3

// keep is the keeper's main function. Its arguments are the agent's process id and
// start time, and the name of the place. It has the directory and the variables of
// the command that has started it. It starts itself once more, and ends: a caller
// that ends a command with all of its children must not end the keeper.
func keep(args []string) error {
	if args[len(args)-1] != detached {
		path, argv := reexec(keepRole)()
		keeper := exec.Command(path)
		keeper.Args = append(append(argv, args...), detached)
		keeper.Stdout, keeper.ExtraFiles = os.Stdout, []*os.File{os.NewFile(lockFile, "lock")}
		return keeper.Start()
	}
	err := keepFor(args[:len(args)-1], func(answer keeperAnswer) {
		line, _ := json.Marshal(answer) // a string
		_, _ = os.Stdout.Write(append(line, '\n'))
		os.Stdout.Close()
	})
	if err != nil {
		return exitStatus(1)
	}
	return nil
}

func keepFor(args []string, reply func(keeperAnswer)) (err error) {
	defer func() {
		if err != nil {
			reply(keeperAnswer{Error: err.Error()})
		}
	}()
	lock := os.NewFile(lockFile, "lock")
	unix.CloseOnExec(lockFile)
	defer lock.Close()
	if len(args) != 3 {
		return errors.New("expected three arguments")
	}
	pid, pidErr := strconv.Atoi(args[0])
	birth, birthErr := strconv.ParseUint(args[1], 10, 64)
	if err := errors.Join(pidErr, birthErr); err != nil {
		return err
	}
	if inSession() {
		return errInSession
	}
	trail.Via = "shell"
	logger := slog.New(slog.DiscardHandler) // nobody reads what it says
	ctx, stop := ending.BySignal()
	defer stop()
	agentEnded, err := lifecycle.WatchProcess(ctx, pid)
	if err != nil {
		return err
	}
	k := keeper{}
	if k.agent, err = owner.Look(pid); err != nil || k.agent.Birth != birth {
		return fmt.Errorf("process %d is not the agent any more", pid)
	}
	admitted, dir, err := k.admit()
	if err != nil {
		return err
	}
	defer k.store.Close()
	place, err := placeOf(k.agent, admitted, k.snapshot.ProjectDir, os.Environ())
	if err == nil && place.Name() != args[2] {
		err = errors.New("its settings have just changed")
	}
	if err != nil {
		return err
	}
	place.Tidy(func(pid int, birth uint64) bool {
		process, err := owner.Look(pid)
		return process.Birth == birth || err != nil && !errors.Is(err, fs.ErrNotExist)
	})

	reserveThreads(endingThreads + answeringThreads())
	tracker := openTracker(logger)
	defer tracker.Close()
	spawner := newSpawner(tracker, logger)
	defer spawner.Close()
	group, err := session.Start(admitted, spawn.Request{
		Env: os.Environ(), Dir: dir, Group: k.agent.String(),
	}, func(request spawn.Request) (*spawn.Group, error) {
		return spawner.StartGroup(context.Background(), request)
	})
	if err != nil {
		return err
	}
	defer group.Close()
	if !group.Outcome().Confined {
		return errors.New("the machine cannot confine it") // a session of its own says so
	}
	listener, err := k.listen(tracker, spawner, logger)
	if err != nil {
		return err
	}
	defer listener.Close()
	text, err := json.Marshal(kept{Socket: listener.Socket(), Sandbox: group.ID()})
	if err == nil {
		err = place.Write(string(text))
	}
	if err != nil {
		return err
	}
	defer func() { _ = place.End(string(text)) }() // if it cannot, a later keeper tidies up
	lock.Close()
	_ = os.Chdir("/") // or the directory's file system could not be unmounted
	reply(keeperAnswer{})
	select {
	case <-agentEnded:
	case <-ctx.Done():
	case <-group.Done():
	}
	_, _ = group.Close() // what survives, the watchdog goes on to end
	return nil
}

// admit compiles the settings as the command has that has started this process.
func (k *keeper) admit() (*session.Admitted, string, error) {
	command, _ := find("exec")
	flags := newFlags(command)
	k.project = addProjectFlags(flags, settings.KindTool)
	var err error
	if k.store, k.snapshot, k.kind, err = k.project.open(flags); err != nil {
		return nil, "", err
	}
	dir, err := workingDir()
	if err != nil {
		return nil, "", err
	}
	plan := session.New(k.store, k.snapshot, jobOfLink().wish(k.kind, false, dir))
	admitted, err := plan.Admit()
	if err != nil {
		return nil, "", inDoubt(err)
	}
	if !admitted.Shareable() {
		return nil, "", errors.New("its settings have just changed")
	}
	k.plan = admitted
	return admitted, dir, nil
}

// listen lets the agent's commands join.
func (k *keeper) listen(
	tracker *lifecycle.Tracker, spawner *spawn.Spawner, logger *slog.Logger,
) (*control.Listener, error) {
	dir, remove, err := tracker.MakeDir()
	if err != nil {
		return nil, err
	}
	giveBack := func() { _ = remove() } // else the user's next sidecar does
	listener, err := control.Listen(dir, giveBack, control.Options{
		By: trail.Via, Client: k.agent.String, Spawner: spawner, Logger: logger, Connections: mostJoined,
		Admit: k.belongs,
		Narrate: func(command *spawn.Background, joining spawn.Joining) control.Narrator {
			return narrator{k, command, joining.Argv}
		},
	})
	if err != nil {
		giveBack()
	}
	return listener, err
}

// belongs refuses the commands of other agents.
func (k *keeper) belongs(pid int) error {
	return k.agent.IsAbove(pid, owner.Look)
}

// narrator describes a command to who has started it by a link.
type narrator struct {
	*keeper
	command *spawn.Background
	argv    []string
}

func (n narrator) Began() string {
	var text strings.Builder
	printUnheld(&text, &n.plan.Result, n.command.Outcome(), true)
	return text.String()
}

func (n narrator) Ended() string {
	exit, _ := n.command.Exit()
	hints := hintsAfter(n.command, exit, n.argv, &n.plan.Result, n.store)
	snapshot := n.snapshot
	if denials, _ := n.command.Denials(); len(denials) > 0 {
		snapshot = n.store.Snapshot(snapshot.ProjectDir)
	}
	var text strings.Builder
	printEnd(&text, n.command, hints, refusedSummary{
		store: n.store, snapshot: snapshot, kind: n.kind, line: n.project.under(),
	})
	return text.String()
}
