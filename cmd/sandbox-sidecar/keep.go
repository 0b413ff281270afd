//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/logqueue"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/meeting"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/owner"
	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
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

// mostEnded bounds the sandboxes of an agent that have ended and are still known.
const mostEnded = 32

// finishTime bounds how long a keeper waits, once its sandbox has ended, until the
// last commands were answered.
const finishTime = 10 * time.Second

// keeperAnswer is the line that a keeper writes once it is ready, or has failed.
type keeperAnswer struct {
	Error string `json:"error,omitempty"`
}

// keeper keeps one sandbox.
type keeper struct {
	agent    owner.Process
	place    meeting.Place
	project  *projectFlags
	store    *settings.Store
	snapshot *compile.Snapshot
	kind     settings.Kind
	plan     *session.Admitted
	group    *spawn.Group

	why     string       // the sandbox is new, though the agent had one before; "" for its first
	told    atomic.Bool  // a command has said that
	lost    atomic.Int64 // lines of the audit trail whose loss a command has said
	retired atomic.Bool  // a newer sandbox takes its place
	surplus atomic.Bool  // its agent has too many, and has used the others since

	silent     chan struct{} // closed once nothing more can be started in the sandbox
	silentOnce sync.Once
}

// detached is the last argument of the keeper itself.
const detached = "detached"

// lockFile is the number of the descriptor of the place's lock.
const lockFile = 3

// keep is the keeper's main function. Its arguments are the agent's process id and
// start time, and the name of the place. It has the directory and the variables of
// the command that has started it. It starts itself once more and ends, so that the
// keeper leaves the tree of the command's processes: a caller that ends a command
// with all of its children must not end the keeper.
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
		giveOutputUp()
	})
	if err != nil {
		return exitStatus(1)
	}
	return nil
}

// isKeeper reports whether another process of ours has started this one as a keeper
// with these arguments: the file of the place's lock is open at a number that nobody
// who types them has in use. That it is locked is not asked.
func isKeeper(args []string) bool {
	if len(args) != 3 && (len(args) != 4 || args[3] != detached) {
		return false
	}
	flags, err := unix.FcntlInt(lockFile, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 { // one of this process's own
		return false
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", lockFile))
	if err != nil {
		return false
	}
	name, is := meeting.LockedPlace(path)
	return is && name == args[2]
}

// giveOutputUp closes the pipe at descriptor 1. Another file would be an output to
// Go's runtime if it got that number.
func giveOutputUp() {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		os.Stdout.Close()
		return
	}
	defer null.Close()
	if unix.Dup2(int(null.Fd()), unix.Stdout) == nil {
		unix.CloseOnExec(unix.Stdout)
	}
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
	logger := keeperLog(pid)
	trail.Failed = func(err error) { logger.Warn(trailLost, "error", err) }
	ctx, stop := ending.BySignal()
	defer stop()
	ending.KeepOnPipe() // the command that has started it may be killed before it answers
	agentEnded, err := lifecycle.WatchProcess(ctx, pid)
	if err != nil {
		return err
	}
	k := &keeper{silent: make(chan struct{})}
	if k.agent, err = owner.Look(pid); err != nil || k.agent.Birth != birth {
		return fmt.Errorf("process %d is not the agent any more", pid)
	}
	admitted, dir, err := k.admit()
	if err != nil {
		return err
	}
	defer k.store.Close()
	place, like, err := placeOf(k.agent, admitted, k.snapshot.ProjectDir, os.Environ())
	if err == nil && place.Name() != args[2] {
		err = errors.New("its settings have just changed")
	}
	if err != nil {
		return err
	}
	k.place = place
	place.Tidy(func(pid int, birth uint64) bool { return owner.Lives(pid, birth, owner.Look) })
	k.why = whyNew(leftAt(place), like)
	place.Prune(mostEnded, func(text string) bool { return !namesSandbox(text) })

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
	k.group = group
	if !group.Outcome().Confined {
		return errors.New("the machine cannot confine it") // a session of its own says so
	}
	listener, err := k.listen(tracker, spawner, logger)
	if err != nil {
		return err
	}
	defer listener.Close()
	defer listener.Finish(finishTime)
	this := kept{Socket: listener.Socket(), Sandbox: group.ID(), Began: time.Now().UnixNano(), Like: like}
	text, err := json.Marshal(this)
	if err == nil {
		err = place.Write(string(text))
	}
	if err != nil {
		return err
	}
	defer func() { // before the listener ends, so that a link which is refused finds that
		gone := func() bool { return isClosed(agentEnded) || !owner.Lives(pid, birth, owner.Look) }
		if !gone() {
			k.leave(place, this)
		}
		if gone() { // the agent may have ended just then
			place.Forget()
		}
	}()
	lock.Close()
	_ = os.Chdir("/") // or the directory's file system could not be unmounted
	reply(keeperAnswer{})
	go func() {
		retireOlder(place, this)
		endSurplus(place, this)
	}()
	select {
	case <-agentEnded:
	case <-ctx.Done():
	case <-group.Done():
	case <-k.silent:
		logger.Warn("a sandbox is ended: the process that starts its commands does not answer")
	}
	_, _ = group.Close() // what survives, the watchdog goes on to end
	k.logRest(logger)
	return nil
}

// leave says where the agent's commands meet that the sandbox has ended, and why. If
// it cannot, they find that no process listens.
func (k *keeper) leave(place meeting.Place, this kept) {
	text, err := json.Marshal(this)
	if err != nil {
		return
	}
	switch {
	case isClosed(k.silent):
		this.Ended = endedSilent
	case !k.group.Idle():
		this.Ended = endedOther
	case k.surplus.Load():
		this.Ended = endedSurplus
	case k.retired.Load():
		this.Ended = endedRetired
	default:
		this.Ended = endedIdle
	}
	if by, err := json.Marshal(this); err == nil {
		_ = place.End(string(text), string(by))
	}
}

// keeperLog is the log of the keepers of a user: nobody reads what they print.
func keeperLog(agent int) *slog.Logger {
	discarded := slog.New(slog.DiscardHandler)
	path := places.Of(os.Getenv).KeeperLog()
	if path == "" {
		return discarded
	}
	logger, err := newLoggerTo(logqueue.File(path), "warn", "text")
	if err != nil {
		return discarded
	}
	return logger.With("keeper", os.Getpid(), "agent", agent)
}

// logRest logs what was changed in the background since the last command has ended,
// unless an audit trail has it.
func (k *keeper) logRest(logger *slog.Logger) {
	alarms, findings := k.group.Rest()
	const since = "changed after the agent's last command: check it before programs outside the sandbox use it"
	for _, alarm := range alarms[:min(len(alarms), mostListed)] {
		logger.Warn(since, "what", presentation.AlarmLine(alarm))
	}
	for _, finding := range findings[:min(len(findings), mostListed)] {
		logger.Warn(since, "what", presentation.FindingLine(finding))
	}
	if more := max(0, len(alarms)-mostListed) + max(0, len(findings)-mostListed); more > 0 {
		logger.Warn(since, "more", more)
	}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
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
		Admit: k.belongs, Retire: k.retire,
		Silent: func(string) {
			k.group.Refuse()
			k.silentOnce.Do(func() { close(k.silent) })
		},
		Narrate: func(joining spawn.Joining) control.Narrator {
			lost, _ := trail.Losses()
			return &narrator{keeper: k, argv: joining.Argv, before: lost}
		},
	})
	if err != nil {
		giveBack()
	}
	return listener, err
}

// belongs refuses the commands of other agents, and those that are to have another
// policy. What a place holds is not proof enough of either: a session may have
// written it.
func (k *keeper) belongs(pid int, place string) error {
	if place != k.place.Name() {
		return errOtherPlace
	}
	return k.agent.IsAbove(pid, owner.Look)
}

var errOtherPlace = errors.New("it keeps a sandbox for another policy")

// retire has the sandbox end once nothing runs in it, or else now if it is idle.
func (k *keeper) retire(sandbox string, idle bool) error {
	switch {
	case sandbox != k.group.ID():
		return control.ErrNoLinks
	case !idle:
		k.retired.Store(true)
		go k.group.Retire() // it waits for the end, if nothing runs
		return nil
	case !k.group.RefuseIfIdle():
		return control.ErrBusy
	}
	k.surplus.Store(true)
	go func() { _, _ = k.group.Close() }() // the end is seen by what waits for the group
	return nil
}

// narrator describes a command to who has started it by a link.
type narrator struct {
	*keeper
	argv   []string
	before int  // lines of the audit trail that were lost before it
	warned bool // it has said that lines are lost
}

func (n *narrator) Began(command *spawn.Background) string {
	n.place.Touch()
	var text strings.Builder
	if n.why != "" && n.told.CompareAndSwap(false, true) {
		display.Fprintf(&text, "sandbox-sidecar: note: new sandbox, without the old /tmp and processes: %s\n", n.why)
	}
	printUnheld(&text, &n.plan.Result, command.Outcome(), true)
	printLost(&text, command.Outcome(), true)
	n.printLosses(&text)
	return text.String()
}

func (n *narrator) Ended(command *spawn.Background) string {
	n.place.Touch()
	exit, _ := command.Exit()
	hints := hintsAfter(command, exit, n.argv, &n.plan.Result, n.store)
	snapshot := n.snapshot
	if denials, _ := command.Denials(); len(denials) > 0 {
		snapshot = n.store.Snapshot(snapshot.ProjectDir)
	}
	var text strings.Builder
	printEnd(&text, command, hints, refusedSummary{
		store: n.store, snapshot: snapshot, kind: n.kind, line: n.project.under(),
	})
	trail.Flush(trailTimeout) // as the command waits for it that has a sandbox of its own
	n.printLosses(&text)
	return text.String()
}

// printLosses says once that the audit trail has lost lines since the command was
// about to start, or lines of another command that could not say so.
func (n *narrator) printLosses(w io.Writer) {
	lost, why := trail.Losses()
	said := n.lost.Load()
	if n.warned || lost <= n.before && int64(lost) <= said {
		return
	}
	n.warned = true
	n.lost.Store(max(said, int64(lost)))
	display.Fprintf(w, "sandbox-sidecar: warning: %s: %v\n", trailLost, why)
}
