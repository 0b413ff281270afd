package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// ownGroup is the name of no group: the session has a sandbox of its own.
const ownGroup = "own"

// maxGroupName bounds a group's name, in bytes.
const maxGroupName = 256

// groups is the table of the sandboxes that sessions share.
type groups struct {
	mu      sync.Mutex // guards the fields below
	open    map[groupKey]*openGroup
	closing bool // no more groups may be started
}

// groupKey is what sessions must have in common to share a sandbox.
type groupKey struct {
	name, projectDir string
	kind             protocol.Kind
	around           string // see spawn.Request.Around
	policyID         string
}

// openGroup is a group that is being started, or has started.
type openGroup struct {
	key   groupKey
	ready chan struct{} // closed once the fields below are set
	group *spawn.Group
	err   error

	closed bool // by the editor, or at the sidecar's end; guarded by groups.mu
}

// started reports whether the group has started. It may have ended since.
func (g *openGroup) started() bool {
	select {
	case <-g.ready:
		return g.group != nil
	default:
		return false
	}
}

func newGroups() *groups { return &groups{open: map[groupKey]*openGroup{}} }

// groupOf is the name of the group that params ask for; "" for none.
func groupOf(params protocol.SpawnParams) string {
	if params.Group == ownGroup {
		return ""
	}
	return params.Group
}

// projectOf is what groups know a project by, however its directory is named.
func projectOf(dir string) string {
	if real, err := fsguard.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir) // it is gone, or its file system does not answer
}

// checkGroup refuses a name that cannot be a group's, and a group where there are
// none.
func (s *Server) checkGroup(name string) error {
	switch {
	case name == "" || name == ownGroup:
		return nil
	case len(name) > maxGroupName || strings.ContainsRune(name, 0):
		return invalidParams("group", "expected at most %d bytes and no NUL byte", maxGroupName)
	case !s.options.Spawner.CanShare():
		return invalidParams("group", `expected "own": this platform has no groups; see capabilities.groups`)
	}
	return nil
}

// startInGroup starts a session in the group with a key, which is started if
// there is none. A group that had ended before it got the request is replaced once;
// no command is started twice. If the group is closed meanwhile, the session is not
// started.
func (s *Server) startInGroup(ctx context.Context, key groupKey, request spawn.Request) (*spawn.Session, error) {
	// A group that others wait for, too, must not be started for nothing.
	if err := request.Check(); err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		g, err := s.groups.get(ctx, key, func() (*spawn.Group, error) {
			return s.options.Spawner.StartGroup(s.ctx, request) // others may wait for it, too
		})
		if err != nil {
			return nil, err
		}
		session, err := g.group.Start(ctx, request)
		if !errors.Is(err, spawn.ErrGroupEnded) {
			return session, err
		}
		switch {
		case s.groups.isClosed(g):
			err = errGroupClosed
		case !again:
			<-g.group.Done()
			continue
		}
		return nil, &spawn.Error{Attempt: "join group", Cause: err}
	}
}

// errGroupClosed is the error of a session whose group was closed before it
// started.
var errGroupClosed = errors.New("it was closed meanwhile")

// get returns the group with a key, and starts it if there is none. It waits for
// the end of one that is closed.
func (t *groups) get(ctx context.Context, key groupKey, start func() (*spawn.Group, error)) (*openGroup, error) {
	for {
		g, err := t.find(key, start)
		if err != nil {
			return nil, err
		}
		select {
		case <-g.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if g.group == nil {
			return nil, g.err
		}
		if !g.group.Ending() {
			return g, nil
		}
		select {
		case <-g.group.Done():
			t.forget(g) // find must start another
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// find returns the group with a key, or one that is being started.
func (t *groups) find(key groupKey, start func() (*spawn.Group, error)) (*openGroup, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return nil, errEnding
	}
	g := t.open[key]
	if g != nil {
		return g, nil
	}
	g = &openGroup{key: key, ready: make(chan struct{})}
	t.open[key] = g
	go func() {
		defer close(g.ready)
		if g.group, g.err = start(); g.err != nil {
			t.forget(g)
			return
		}
		go func() {
			<-g.group.Done()
			t.forget(g)
		}()
		t.retireOthers(key)
	}()
	return g, nil
}

func (t *groups) isClosed(g *openGroup) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return g.closed
}

// forget takes a group that has ended out of the table.
func (t *groups) forget(g *openGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[g.key] == g {
		delete(t.open, g.key)
	}
}

// retireOthers ends the groups that differ from a key in nothing but their policy
// and what is around it, as soon as nothing runs in them.
func (t *groups) retireOthers(key groupKey) {
	for _, g := range t.matching(func(other groupKey) bool {
		differs := other != key
		other.policyID, other.around = key.policyID, key.around
		return differs && other == key
	}) {
		go func() {
			if <-g.ready; g.group != nil {
				g.group.Retire()
			}
		}()
	}
}

func (t *groups) matching(wanted func(groupKey) bool) (list []*openGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, g := range t.open {
		if wanted(key) {
			list = append(list, g)
		}
	}
	return list
}

// groupsEnd is what the end of some groups has shown.
type groupsEnd struct {
	spawn.Closed
	groups   int
	findings []spawn.Finding
}

// end ends groups, and returns once none of their processes is left. The error
// names survivors.
func (t *groups) end(wanted func(groupKey) bool) (groupsEnd, error) {
	list := t.matching(wanted)
	t.mu.Lock()
	for _, g := range list {
		g.closed = true
	}
	t.mu.Unlock()
	var mu sync.Mutex // guards the two below
	var total groupsEnd
	var failures []error
	var ending sync.WaitGroup
	for _, g := range list {
		ending.Go(func() {
			if <-g.ready; g.group == nil {
				return
			}
			closed, err := g.group.Close()
			t.forget(g) // before the answer says that it has ended
			mu.Lock()
			defer mu.Unlock()
			total.groups++
			total.Killed += closed.Killed
			total.Remaining += closed.Remaining
			total.findings = append(total.findings, g.group.Findings()...)
			failures = append(failures, err)
		})
	}
	ending.Wait()
	return total, errors.Join(failures...)
}

// closeAll ends every group and refuses new ones.
func (t *groups) closeAll() error {
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	_, err := t.end(func(groupKey) bool { return true })
	return err
}

func (s *Server) listGroups(context.Context, protocol.Empty) (protocol.ListGroupsResult, error) {
	result := protocol.ListGroupsResult{Groups: s.groups.list()}
	slices.SortFunc(result.Groups, func(a, b protocol.GroupInfo) int {
		return cmp.Or(strings.Compare(a.StartedAt, b.StartedAt), strings.Compare(a.Group, b.Group))
	})
	return result, nil
}

// list describes the groups that have started and not ended.
func (t *groups) list() []protocol.GroupInfo {
	t.mu.Lock()
	open := maps.Clone(t.open)
	t.mu.Unlock()
	list := []protocol.GroupInfo{}
	for key, g := range open {
		if !g.started() {
			continue // nothing runs in it yet
		}
		sessions, processes, ended := g.group.Running()
		if ended {
			continue
		}
		list = append(list, protocol.GroupInfo{
			Group: key.name, ProjectDir: key.projectDir, Kind: key.kind, PolicyID: key.policyID,
			Sessions: sessions, Processes: processes, StartedAt: g.group.StartedAt().Format(time.RFC3339Nano),
		})
	}
	return list
}

func (s *Server) closeGroup(_ context.Context, params protocol.CloseGroupParams) (protocol.CloseGroupResult, error) {
	begun := time.Now()
	named, err := s.groupsNamed(params.Group, params.ProjectDir)
	if err != nil {
		return protocol.CloseGroupResult{}, err
	}
	ended, err := s.groups.end(named)
	if ended.groups == 0 {
		return protocol.CloseGroupResult{}, groupNotFound(params.Group)
	}
	result := protocol.CloseGroupResult{
		Killed: ended.Killed, Remaining: ended.Remaining, ElapsedMs: int(time.Since(begun).Milliseconds()),
		Review: presentation.Findings(ended.findings),
	}
	if err != nil {
		s.log.Error("processes survived the end of their group", "group", params.Group, "error", err)
	}
	return result, nil
}

// groupsNamed matches the groups with a name, of one project or of all.
func (s *Server) groupsNamed(name, projectDir string) (func(groupKey) bool, error) {
	if name == "" {
		return nil, invalidParams("group", "expected the name of a group, found none")
	}
	if err := s.checkGroup(name); err != nil {
		return nil, err
	}
	project := ""
	if projectDir != "" {
		if err := absolute("projectDir", projectDir); err != nil {
			return nil, err
		}
		project = projectOf(projectDir)
	}
	return func(key groupKey) bool {
		return key.name == name && (project == "" || key.projectDir == project)
	}, nil
}

// groupNotFound is the answer for a group without a sandbox.
func groupNotFound(name string) *wireError {
	return &wireError{
		code: protocol.CodeSessionNotFound, message: fmt.Sprintf("group %s: not found", display.Quote(name)),
		data: &protocol.ErrorData{Reason: "no session has joined it, or it was closed"},
	}
}
