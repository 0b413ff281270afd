package denials

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Options of an observer.
type Options struct {
	// Policy is what holds in the session: a rule that has no effect here is
	// none.
	Policy *policy.Policy
	// Signals is true where processes outside cannot be signalled.
	Signals bool
	// ChangesOnly is true where refused readings are told by somebody else.
	ChangesOnly bool
	// Report is told of each denial. It must not block.
	Report func(platform.Denial)
	// Ask, where it is not nil, is asked before a file is refused; see
	// platform.Hooks.
	Ask func(context.Context, platform.Denial) platform.Answer
	// Canary is a path that the stage opens for writing before it executes its
	// target, which must be refused, and noticed.
	Canary string
	// Learn is true where Ask answers at once, and about everything.
	Learn bool
}

// Observer looks at the calls of one session. Its methods may be called from
// several goroutines; those that take a call answer none.
type Observer struct {
	options Options
	// begun is true from when the stage executes its target: what it does
	// before, it does to prove itself.
	started atomic.Bool
	// noticed is true once the canary's refusal was found out as any other is.
	noticed atomic.Bool
	pathCache
	questions
}

// New makes an observer, which is to be closed.
func New(options Options) *Observer {
	return &Observer{
		options: options, pathCache: newPathCache(),
		questions: questions{open: map[question]*pending{}, answers: map[question]platform.Answer{}},
	}
}

// Calls lists the calls on paths that Look knows.
func Calls() []string {
	var names []string
	for name := range pathArgs {
		names = append(names, name)
	}
	return names
}

// Answer returns what answers calls of that name, which Calls lists, where
// First does not.
func SlowPath(o *Observer, name string) func(*notify.Call) {
	list := pathArgs[name]
	return func(call *notify.Call) {
		if !o.handle(call, name, list) {
			call.Continue()
		}
	}
}

// handle looks at a call, and reports whether it has answered it.
func (o *Observer) handle(call *notify.Call, name string, list []pathArg) bool {
	root, err := rootOf(call.TID)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	own := !mayHaveOtherRoot || !otherRoot(call.TID)
	if own {
		o.holdRoot(root)
	}
	for _, u := range list {
		f, absent := o.inspect(call, root, own, name, u)
		if f == nil {
			if absent && u.op == opRemove {
				return false // loc is nothing to be moved
			}
			continue
		}
		defer f.loc.close()
		if o.ask(call, root, f) {
			return true
		}
		o.report(call, f.refusal)
		return false
	}
	return false
}

// refusal is what is about to be refused.
type refusal struct {
	access platform.Refused
	target string
}

// finding is a refusal with what it is about.
type finding struct {
	refusal
	request
	loc  *location
	mode uint32 // of a file that is made
}

// look decides about one path of a call. What cannot be found out (the caller's
// memory is hidden, it is gone) is not reported. The place of a finding is to
// be closed. own is true where the caller's root is the session's; absent is
// that nothing is there.
func (o *Observer) inspect(call *notify.Call, root int, own bool, name string, u pathArg) (f *finding, absent bool) {
	begun := time.Now()
	text, err := call.Text(call.Args[u.path])
	if err != nil || text == "" {
		return nil, false // with AT_EMPTY_PATH it is about an open file
	}
	flags, mode, err := flagsOf(call, name, u)
	if err != nil {
		return nil, false
	}
	w := newRequest(u.op, flags)
	if w.exempt {
		return nil, false
	}
	dir := unix.AT_FDCWD
	if u.dir != workDir {
		dir = int(int32(call.Args[u.dir]))
	}
	loc, err := locate(call, root, dir, text, w.follow)
	if err != nil {
		return nil, false // the caller gets this very error
	}
	access, refused := o.decide(w, loc)
	if !refused || access == platform.RefusedRead && o.options.ChangesOnly || !o.permitted(call, root, w, loc, access) {
		if own {
			o.remember(root, w, loc, begun)
		}
		loc.close()
		return nil, !loc.exists()
	}
	return &finding{refusal: refusal{access: access, target: display(loc.path)}, request: w, loc: loc, mode: mode},
		false
}

// flagsOf are the flags of an opening, and the permissions of a file that it
// makes, wherever the call has them.
func flagsOf(call *notify.Call, name string, u pathArg) (flags openFlags, mode uint32, err error) {
	switch {
	case name == "creat":
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, uint32(call.Args[1]), nil
	case name == "openat2":
		var how [24]byte // struct open_how
		if err := call.Read(call.Args[2], how[:]); err != nil {
			return 0, 0, err
		}
		if binary.NativeEndian.Uint64(how[16:])&unix.RESOLVE_IN_ROOT != 0 {
			return 0, 0, errors.New("it is looked up from another root")
		}
		return openFlags(binary.NativeEndian.Uint64(how[:])), uint32(binary.NativeEndian.Uint64(how[8:])), nil
	case u.op == opOpen:
		return openFlags(uint32(call.Args[u.flags])), uint32(call.Args[u.flags+1]), nil
	case u.flags != none:
		return openFlags(uint32(call.Args[u.flags])), 0, nil
	}
	return 0, 0, nil
}

// wish is what a call needs of a path.
type request struct {
	op     operation
	flags  openFlags
	follow bool
	exempt bool // that anybody could refuse
}

func newRequest(op operation, flags openFlags) request {
	w := request{op: op, flags: flags}
	switch op {
	case opOpen:
		w.follow, w.exempt = flags.follows(), flags.has(unix.O_PATH)
	case opExecute:
		w.follow = flags&unix.AT_SYMLINK_NOFOLLOW == 0
	case opTruncate:
		w.follow = true
	}
	return w
}

// decide says what Landlock, or the mounts that protect paths, will answer,
// where the kernel does not answer something else before.
func (o *Observer) decide(w request, loc *location) (access platform.Refused, refused bool) {
	p := o.options.Policy
	if isTerminal(loc.path) {
		return "", false
	}
	at := p.At(loc.path)
	switch w.op {
	case opCreate, opLink, opRemove:
		access = platform.RefusedCreate
		if w.op == opRemove {
			access = platform.RefusedRemove
		}
		if loc.exists() == (w.op == opCreate) && w.op != opLink {
			return "", false // EEXIST, ENOENT
		}
		_, kept := p.ProtectedAt(loc.path)
		return access, kept || !p.At(loc.parentPath).Has(policy.Write)
	case opTruncate:
		return platform.RefusedWrite, loc.kind() == unix.S_IFREG && !at.Has(policy.Write)
	case opExecute:
		return platform.RefusedExecute, loc.kind() == unix.S_IFREG && !at.Has(policy.Execute)
	}
	return o.decideOpening(w.flags, loc, at)
}

func (o *Observer) decideOpening(flags openFlags, loc *location, at policy.Access) (access platform.Refused,
	refused bool) {
	switch {
	case !loc.exists():
		return platform.RefusedCreate, flags.has(unix.O_CREAT) && !o.options.Policy.At(loc.parentPath).Has(policy.Write)
	case flags.has(unix.O_TMPFILE):
		return platform.RefusedCreate, !at.Has(policy.Write)
	case flags.has(unix.O_CREAT | unix.O_EXCL), loc.kind() == unix.S_IFLNK, loc.kind() == unix.S_IFSOCK:
		return "", false // EEXIST, ELOOP, ENXIO
	case loc.kind() == unix.S_IFDIR && (flags.writes() || flags.has(unix.O_CREAT)):
		return "", false // EISDIR
	case loc.kind() != unix.S_IFDIR && flags.has(unix.O_DIRECTORY):
		return "", false // ENOTDIR
	case flags.writes() && !at.Has(policy.Write):
		return platform.RefusedWrite, true
	case flags.reads() && !at.Has(policy.Read):
		return platform.RefusedRead, !ReadByRuntime(loc.path)
	}
	return "", false
}

// ours reports whether a path is granted by something that is no rule: the
// session's terminals, by their descriptors or their mount.
func isTerminal(name string) bool { return policy.Contains("/dev/pts", name) }

// display names files of the caller's process as every process names its own:
// they were looked up by us.
func display(name string) string {
	own := fmt.Sprintf("/proc/%d", os.Getpid())
	if name == own || strings.HasPrefix(name, own+"/") {
		return "/proc/self" + strings.TrimPrefix(name, own)
	}
	return name
}

// permitted reports whether the file's own permissions allow what the policy
// does not. access(2) is a poor question about a sandbox, as Landlock does not
// hear it; here it is the right one, because it is all that is to be left out:
// a refusal that would have come without a sandbox too is not the sandbox's. We
// ask from outside, as the caller.
func (o *Observer) permitted(call *notify.Call, root int, w request, loc *location, access platform.Refused) bool {
	mode, fd := uint32(unix.R_OK), loc.fd
	switch access {
	case platform.RefusedCreate, platform.RefusedRemove:
		mode = unix.W_OK | unix.X_OK
		if w.flags.has(unix.O_TMPFILE) {
			break
		}
		if loc.openParent(root) != nil {
			return false
		}
		fd = loc.parent
	case platform.RefusedWrite:
		mode = unix.W_OK
		if w.op == opOpen && w.flags.reads() {
			mode |= unix.R_OK
		}
	case platform.RefusedExecute:
		mode = unix.X_OK
	}
	caller, err := call.Identity()
	if err != nil {
		return false
	}
	var answer error
	err = caller.As(func() { answer = unix.Faccessat2(fd, "", mode, unix.AT_EMPTY_PATH|unix.AT_EACCESS) })
	_, kept := o.options.Policy.ProtectedAt(loc.path)
	return err == nil && (answer == nil || errors.Is(answer, unix.EROFS) && kept)
}

// tell reports a refusal.
func (o *Observer) report(call *notify.Call, r refusal) {
	switch {
	case o.started.Load():
		o.options.Report(o.describe(call, r))
	case r == refusal{access: platform.RefusedWrite, target: o.options.Canary}:
		o.noticed.Store(true)
	}
}

// Noticed reports whether the refusal of the canary was noticed.
func (o *Observer) Noticed() bool { return o.noticed.Load() }

// describe says who was refused.
func (o *Observer) describe(call *notify.Call, r refusal) platform.Denial {
	denial := platform.Denial{Access: r.access, Target: r.target, Count: 1}
	if pid, name, err := call.Process(); err == nil {
		denial.PID, denial.Process = pid, name
	}
	return denial
}

// ConnectUnix reports a connection that somebody else has refused. An abstract
// address is written "abstract:" and its name.
func (o *Observer) ConnectUnix(call *notify.Call, target string) {
	if strings.HasPrefix(target, "/") {
		target = path.Clean(target)
	}
	o.report(call, refusal{access: platform.RefusedConnectUnix, target: target})
}
