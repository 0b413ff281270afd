package spawn

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// Listed describes a session that runs, or a sandbox that sessions share.
type Listed struct {
	ID string
	// Shared: it is a sandbox that sessions join, and no session itself.
	Shared bool
	// In is the ID of the shared sandbox that a session is in; "" if it has a
	// sandbox of its own.
	In string
	// Group is the name that the sessions of a shared sandbox join by; "" for a
	// sandbox of its own.
	Group string
	// Joined: another process of the user than its agent has started it, by
	// Spawner.Join.
	Joined bool
	// Tool is false for a session of kind "terminal".
	Tool bool
	// Project and Dir are directories.
	Project, Dir string
	// Argv is the command, without what looks like a secret, and shortened; nil for
	// a shared sandbox.
	Argv      []string
	PID       int
	StartedAt time.Time
	// Restricted: the policy asks for a sandbox.
	Restricted bool
	Outcome    Outcome
	// Background is how many processes of a shared sandbox belong to no session
	// that runs.
	Background int
}

const (
	// maxListedArgs bounds the arguments of a command that is listed, and
	// maxListedArg the bytes of each.
	maxListedArgs = 64
	maxListedArg  = 512
	// maxKeptArgv bounds the bytes of arguments that are kept to be listed. Longer
	// ones are shortened when the session starts, which takes a while.
	maxKeptArgv = 4 << 10
)

// listing knows what runs. Its zero value is empty.
type listing struct {
	mu      sync.Mutex
	entries map[*running]*listEntry
}

// listEntry is a session or a shared sandbox that runs. It is not changed.
type listEntry struct {
	Listed
	group    *Group // the shared sandbox itself; nil for a session
	redacted bool
}

// add has a session listed until its end.
func (l *listing) add(r *running, request *Request, in *Group) {
	e := &listEntry{Listed: Listed{
		ID: request.ID, Group: request.Group, Joined: request.joined,
		Tool:    request.Tool || request.NoInput || request.Pipe,
		Project: request.Policy.Project, Dir: request.Dir, PID: r.process.PID(), StartedAt: r.startedAt,
		Restricted: request.Policy.Restricted, Outcome: r.outcome,
	}, group: request.shared}
	switch {
	case e.group != nil:
		e.Shared, e.Tool = true, e.group.tool
	case in != nil:
		e.In = in.id
	}
	if !e.Shared {
		e.Argv = request.Argv
		size := 0
		for _, arg := range e.Argv {
			size += len(arg) + 1
		}
		if size > maxKeptArgv {
			e.Argv, e.redacted = listedArgv(e.Argv), true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[*running]*listEntry{}
	}
	l.entries[r] = e
	r.unlist = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.entries, r)
	}
}

// listedArgv is a command as it is shown.
func listedArgv(argv []string) []string {
	list := audit.Redact(argv)
	if len(list) > maxListedArgs {
		list = append(list[:maxListedArgs:maxListedArgs], "[…]")
	}
	for i, arg := range list {
		list[i] = audit.Shorten(arg, maxListedArg)
	}
	return list
}

// List describes what runs, in no order.
func (s *Spawner) List() []Listed {
	s.listing.mu.Lock()
	var entries []*listEntry
	for _, e := range s.listing.entries {
		entries = append(entries, e)
	}
	s.listing.mu.Unlock()
	list := make([]Listed, 0, len(entries))
	for _, e := range entries {
		listed := e.Listed
		if e.group != nil {
			listed.Background = e.group.background()
		}
		if !e.redacted && !e.Shared {
			listed.Argv = listedArgv(listed.Argv)
		}
		list = append(list, listed)
	}
	return list
}

// background counts the processes that belong to no session that runs.
func (g *Group) background() int {
	g.mu.Lock()
	var leaders []int
	for _, m := range g.members {
		if m.call.process != nil {
			leaders = append(leaders, m.call.process.PID())
		}
	}
	g.mu.Unlock()
	count, err := lifecycle.Call{Init: g.running.process.PID()}.LeftBeside(leaders)
	if err != nil {
		g.running.log.Warn("the processes of a group cannot be counted", "error", err)
	}
	return count
}

// Joining is a command that is to run in a shared sandbox.
type Joining struct {
	// Program, Argv, Env and Dir are as in Request. Without a program it is the
	// first of Argv.
	Program   string
	Argv, Env []string
	Dir       string
	// Files are the standard streams; nil asks for a terminal of a size.
	Files *[3]*os.File
	Size  Size
	// ByLink: a link that is a shell asks for it, for a command of its agent.
	ByLink bool
}

// ErrNoSuchSandbox means that no shared sandbox has an ID, or none any more.
var ErrNoSuchSandbox = errors.New("no such shared sandbox runs")

// Join starts a command in the shared sandbox with an ID, under its policy. The
// caller closes the files. The errors are those of Group.Start.
func (s *Spawner) Join(ctx context.Context, id string, j Joining) (*Background, error) {
	var group *Group
	s.listing.mu.Lock()
	for _, e := range s.listing.entries {
		if e.Shared && e.ID == id {
			group = e.group
		}
	}
	s.listing.mu.Unlock()
	if group == nil {
		return nil, ErrNoSuchSandbox
	}
	request := group.request
	request.ID, request.Program, request.Argv = NewID(), cmp.Or(j.Program, j.Argv[0]), j.Argv
	request.Env, request.Dir = j.Env, j.Dir
	request.Size, request.NoInput, request.Pipe, request.Full = j.Size, false, j.Files != nil, false
	request.Ask, request.Learn, request.joined, request.foreground = nil, nil, !j.ByLink, true
	return group.Background(ctx, request, j.Files)
}
