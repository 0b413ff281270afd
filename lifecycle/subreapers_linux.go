package lifecycle

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
)

// subreapers makes groups that are held by subreapers.
type subreapers struct {
	command func() (path string, argv []string)
	// domainProblem says why sessions cannot use signal domains here; nil where
	// they can.
	domainProblem error
	adopts        bool // what a dead subreaper leaves becomes this process's child
	log           *slog.Logger

	mu     sync.Mutex // guards groups
	groups map[*subreaperGroup]bool
}

// openSubreapers finds out whether subreapers work here, by letting one try to
// start a program that does not exist.
func openSubreapers(command func() (path string, argv []string), log *slog.Logger) (*subreapers, error) {
	if command == nil {
		return nil, errors.New("no subreaper is known")
	}
	k := &subreapers{command: command, log: log, groups: map[*subreaperGroup]bool{}}
	if k.domainProblem = k.try(true); k.domainProblem == nil {
		return k, nil
	}
	return k, k.try(false)
}

func (k *subreapers) try(inDomain bool) error {
	group := k.newGroup(nil)
	group.triesDomain = inDomain
	_, err := group.Start("/proc/self/no-such-program", []string{"none"},
		&os.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if failed, ok := errors.AsType[*os.PathError](err); !ok || failed.Op != "fork/exec" || !errors.Is(err, unix.ENOENT) {
		return errors.Join(fmt.Errorf("try a subreaper: %w", err), group.Close())
	}
	return group.Close()
}

// newGroup makes an empty group. What it is about to start is noted first, by a
// function that may be nil.
func (k *subreapers) newGroup(note func(Record) error) *subreaperGroup {
	group := &subreaperGroup{
		note: note, command: k.command, capable: k.domainProblem == nil, log: k.log, forget: k.forget, answers: make(
			chan subreaperKilled, 4),
		heldAnswers: make(chan subreaperHeld, 4), adopts: k.adopts,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups[group] = true
	return group
}

func (k *subreapers) forget(group *subreaperGroup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, group)
}

// close ends every group.
func (k *subreapers) close() error {
	k.mu.Lock()
	groups := slices.Collect(maps.Keys(k.groups))
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
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

// kindSubreaper is the kind of subreapers in a journal. The key is the process
// id. A subreaper ends its session by itself if the sidecar dies. If both are
// killed, the session's own record is what remains.
const kindSubreaper = "subreaper"

// subreaperData tells a subreaper from a stranger that gets its process id.
type subreaperData struct {
	// Birth is the subreaper's start time.
	Birth uint64 `json:"birth"`
}

// subreaperEnder ends the subreapers of a dead sidecar.
var subreaperEnder = Ender{Kind: kindSubreaper, End: endSubreapers}

func endSubreapers(ctx context.Context, records []Record, where Place) (alone int, err error) {
	switch {
	case where.OtherBoot:
		return 0, nil // every process of that time is dead
	case !where.Same:
		return len(records), nil
	}
	var failures []error
	for _, r := range records {
		var data subreaperData
		pid, err := strconv.Atoi(r.Key)
		if errors.Join(err, r.Decode(&data)) != nil || pid <= 0 {
			alone++
			continue
		}
		failures = append(failures, endSubreaper(ctx, processID{pid: pid, birth: data.Birth}))
	}
	return alone, errors.Join(failures...)
}

// endSubreaper waits for a dead sidecar's subreaper to end its session, which
// it does by itself, and helps where it does not.
func endSubreaper(ctx context.Context, subreaper processID) error {
	pid, birth := subreaper.pid, subreaper.birth
	if now, err := findProcess(pid); err != nil || now.birth != birth || now.dead {
		return nil
	}
	gone, err := watchProcess(ctx, pid)
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
	// somebody may have stopped it; to a stranger that got the number meanwhile
	// it does nothing
	_ = unix.Kill(pid, unix.SIGCONT)
	select {
	case <-gone:
		// Somebody may have killed it before it was done.
		return endMembers(ctx, members)
	case <-ctx.Done():
	case <-time.After(closeTimeout):
	}
	_, err = endBelow(ctx, subreaper)
	if err == nil {
		err = killExactly(subreaper)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// membersBelow lists what descends from a subreaper now.
func membersBelow(subreaper processID) (map[processID]bool, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}
	members := map[processID]bool{}
	for _, entry := range descendants(table, func(entry processEntry) bool { return entry.parent == subreaper.pid }) {
		members[entry.processID] = true
	}
	return members, nil
}

// endMembers kills processes that are known, and what descends from them.
func endMembers(ctx context.Context, members map[processID]bool) error {
	_, err := killLoop{
		look: func() iter.Seq2[processID, error] {
			return lookIn(func(entry processEntry) bool { return members[entry.processID] })
		},
		kill:  killExactly,
		pause: sleep,
	}.converge(ctx)
	return err
}

// endBelow kills what descends from a subreaper, from outside.
func endBelow(ctx context.Context, subreaper processID) (int, error) {
	killed, err := killLoop{
		look: func() iter.Seq2[processID, error] {
			return lookIn(func(entry processEntry) bool { return entry.parent == subreaper.pid })
		},
		kill:  killExactly,
		pause: sleep,
	}.converge(ctx)
	return len(killed), err
}
