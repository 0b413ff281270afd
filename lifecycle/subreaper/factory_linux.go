package subreaper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Factory makes groups below subreapers.
type Factory struct {
	command func() (path string, argv []string)
	// DomainProblem is why sessions cannot use signal domains here; nil if they
	// can.
	DomainProblem error
	Adopts        bool // orphans of a dead subreaper become children of this process
	log           *slog.Logger

	mu     sync.Mutex // guards groups
	groups map[*Group]bool
}

// Open finds out whether subreapers work here: one tries to start a program
// that does not exist.
func Open(command func() (path string, argv []string), log *slog.Logger) (*Factory, error) {
	if command == nil {
		return nil, errors.New("no subreaper is configured")
	}
	k := &Factory{command: command, log: log, groups: map[*Group]bool{}}
	if k.DomainProblem = k.try(true); k.DomainProblem == nil {
		return k, nil
	}
	return k, k.try(false)
}

func (k *Factory) try(inDomain bool) error {
	group := k.NewGroup(nil)
	group.triesDomain = inDomain
	_, err := group.Start("/proc/self/no-such-program", []string{"none"},
		&os.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if failed, ok := errors.AsType[*os.PathError](err); !ok || failed.Op != "fork/exec" ||
		!errors.Is(err, unix.ENOENT) {
		return errors.Join(fmt.Errorf("try a subreaper: %w", err), group.Close())
	}
	return group.Close()
}

// NewGroup makes an empty group. The function, which may be nil, writes to the
// journal. A subreaper is noted before it gets its order, the leader at once
// after its start.
func (k *Factory) NewGroup(note func(journal.Record) error) *Group {
	group := &Group{
		note: note, command: k.command, capable: k.DomainProblem == nil, log: k.log, forget: k.forget, answers: make(
			chan killedReport, 4),
		heldAnswers: make(chan heldReport, 4), adopts: k.Adopts,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups[group] = true
	return group
}

func (k *Factory) forget(group *Group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, group)
}

// Close ends every group.
func (k *Factory) Close() error {
	k.mu.Lock()
	groups := slices.Collect(maps.Keys(k.groups))
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	failures := make([]error, len(groups))
	var closing sync.WaitGroup
	for i, group := range groups {
		closing.Go(func() {
			if _, failures[i] = group.Kill(ctx); failures[i] == nil {
				failures[i] = group.Close()
			}
		})
	}
	closing.Wait()
	return errors.Join(failures...)
}

// kind is the kind of subreapers in a journal. The key is the process id. A
// subreaper ends its session by itself if the sidecar dies. If both are killed,
// the session's own record remains.
const kind = "subreaper"

// recordData tells a subreaper from another process that gets its process id.
type recordData struct {
	// Birth is the subreaper's start time.
	Birth uint64 `json:"birth"`
}

// Ender ends the subreapers of a dead sidecar.
var Ender = journal.ProcessEnder(kind, func(ctx context.Context, r journal.Record) (proved bool, err error) {
	var data recordData
	pid, err := strconv.Atoi(r.Key)
	if err := errors.Join(err, r.Decode(&data)); err != nil || pid <= 0 {
		return false, err
	}
	return true, endSubreaper(ctx, proc.ID{PID: pid, Birth: data.Birth})
})

// endSubreaper waits for a dead sidecar's subreaper to end its session by
// itself, and ends the session if it does not.
func endSubreaper(ctx context.Context, subreaper proc.ID) error {
	pid, birth := subreaper.PID, subreaper.Birth
	if now, err := proc.Find(pid); err != nil || now.Birth != birth || now.Dead {
		return nil
	}
	gone, err := proc.Watch(ctx, pid)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end subreaper: %w", err)
	}
	members, err := membersBelow(subreaper)
	if err != nil {
		return fmt.Errorf("end subreaper: %w", err)
	}
	// Somebody may have stopped it. To another process that got the number
	// meanwhile the signal does nothing.
	_ = unix.Kill(pid, unix.SIGCONT)
	select {
	case <-gone:
		// Somebody may have killed it before it had finished.
		return endMembers(ctx, members)
	case <-ctx.Done():
	case <-time.After(endTimeout):
	}
	_, err = endBelow(ctx, subreaper)
	if err == nil {
		err = proc.Kill(subreaper)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// membersBelow lists the descendants of a subreaper now.
func membersBelow(subreaper proc.ID) (map[proc.ID]bool, error) {
	table, err := proc.Table()
	if err != nil {
		return nil, err
	}
	members := map[proc.ID]bool{}
	ofSubreaper := func(entry proc.Entry) bool { return entry.Parent == subreaper.PID }
	for _, entry := range proc.Descendants(table, ofSubreaper) {
		members[entry.ID] = true
	}
	return members, nil
}

// endMembers kills known processes and their descendants.
func endMembers(ctx context.Context, members map[proc.ID]bool) error {
	_, err := proc.KillLoop{
		Find: func() iter.Seq2[proc.ID, error] {
			return proc.LivingDescendants(func(entry proc.Entry) bool { return members[entry.ID] })
		},
		Kill:  proc.Kill,
		Pause: proc.Sleep,
	}.Run(ctx)
	return err
}

// endBelow kills the descendants of a subreaper, from outside.
func endBelow(ctx context.Context, subreaper proc.ID) (int, error) {
	killed, err := proc.KillLoop{
		Find: func() iter.Seq2[proc.ID, error] {
			return proc.LivingDescendants(func(entry proc.Entry) bool { return entry.Parent == subreaper.PID })
		},
		Kill:  proc.Kill,
		Pause: proc.Sleep,
	}.Run(ctx)
	return len(killed), err
}
