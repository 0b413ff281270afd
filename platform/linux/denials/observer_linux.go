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
	begun atomic.Bool
	// noticed is true once the canary's refusal was found out as any other is.
	noticed atomic.Bool
	views
	questions
}

// New makes an observer, which is to be closed.
func New(options Options) *Observer {
	return &Observer{
		options: options, views: newViews(),
		questions: questions{open: map[question]*pending{}, answers: map[question]platform.Answer{}},
	}
}

// Calls lists the calls on paths that Look knows.
func Calls() []string {
	var names []string
	for name := range uses {
		names = append(names, name)
	}
	return names
}

// Answer returns what answers calls of that name, which Calls lists, where
// First does not.
func Answer(o *Observer, name string) func(*notify.Call) {
	list := uses[name]
	return func(call *notify.Call) {
		if !o.handle(call, name, list) {
			call.Continue()
		}
	}
}

// handle looks at a call, and reports whether it has answered it.
func (o *Observer) handle(call *notify.Call, name string, list []use) bool {
	root, err := rootOf(call.TID)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	own := !mayHaveOtherRoot || !otherRoot(call.TID)
	if own {
		o.hold(root)
	}
	for _, u := range list {
		f, absent := o.look(call, root, own, name, u)
		if f == nil {
			if absent && u.deed == removing {
				return false // there is nothing to be moved
			}
			continue
		}
		defer f.there.close()
		if o.ask(call, root, f) {
			return true
		}
		o.tell(call, f.refusal)
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
	wish
	there *place
	mode  uint32 // of a file that is made
}

// look decides about one path of a call. What cannot be found out (the caller's
// memory is hidden, it is gone) is not reported. The place of a finding is to
// be closed. own is true where the caller's root is the session's; absent is
// that nothing is there.
func (o *Observer) look(call *notify.Call, root int, own bool, name string, u use) (f *finding, absent bool) {
	begun := time.Now()
	text, err := call.Text(call.Args[u.path])
	if err != nil || text == "" {
		return nil, false // with AT_EMPTY_PATH it is about an open file
	}
	flags, mode, err := flagsOf(call, name, u)
	if err != nil {
		return nil, false
	}
	w := want(u.deed, flags)
	if w.nothing {
		return nil, false
	}
	dir := unix.AT_FDCWD
	if u.dir != workDir {
		dir = int(int32(call.Args[u.dir]))
	}
	there, err := locate(call, root, dir, text, w.follow)
	if err != nil {
		return nil, false // the caller gets this very error
	}
	access, refused := o.decide(w, there)
	if !refused || access == platform.RefusedRead && o.options.ChangesOnly || !o.permitted(call, root, w, there, access) {
		if own {
			o.remember(root, w, there, begun)
		}
		there.close()
		return nil, !there.exists()
	}
	return &finding{refusal: refusal{access: access, target: display(there.path)}, wish: w, there: there, mode: mode},
		false
}

// flagsOf are the flags of an opening, and the permissions of a file that it
// makes, wherever the call has them.
func flagsOf(call *notify.Call, name string, u use) (flags openFlags, mode uint32, err error) {
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
	case u.deed == opening:
		return openFlags(uint32(call.Args[u.flags])), uint32(call.Args[u.flags+1]), nil
	case u.flags != none:
		return openFlags(uint32(call.Args[u.flags])), 0, nil
	}
	return 0, 0, nil
}

// wish is what a call needs of a path.
type wish struct {
	deed    deed
	flags   openFlags
	follow  bool
	nothing bool // that anybody could refuse
}

func want(d deed, flags openFlags) wish {
	w := wish{deed: d, flags: flags}
	switch d {
	case opening:
		w.follow, w.nothing = flags.follows(), flags.has(unix.O_PATH)
	case executing:
		w.follow = flags&unix.AT_SYMLINK_NOFOLLOW == 0
	case cutting:
		w.follow = true
	}
	return w
}

// decide says what Landlock, or the mounts that protect paths, will answer,
// where the kernel does not answer something else before.
func (o *Observer) decide(w wish, there *place) (access platform.Refused, refused bool) {
	p := o.options.Policy
	if ours(there.path) {
		return "", false
	}
	at := p.At(there.path)
	switch w.deed {
	case making, placing, removing:
		access = platform.RefusedCreate
		if w.deed == removing {
			access = platform.RefusedRemove
		}
		if there.exists() == (w.deed == making) && w.deed != placing {
			return "", false // EEXIST, ENOENT
		}
		_, kept := p.ProtectedAt(there.path)
		return access, kept || !p.At(there.parentPath).Has(policy.Write)
	case cutting:
		return platform.RefusedWrite, there.kind() == unix.S_IFREG && !at.Has(policy.Write)
	case executing:
		return platform.RefusedExecute, there.kind() == unix.S_IFREG && !at.Has(policy.Execute)
	}
	return o.decideOpening(w.flags, there, at)
}

func (o *Observer) decideOpening(flags openFlags, there *place, at policy.Access) (access platform.Refused,
	refused bool) {
	switch {
	case !there.exists():
		return platform.RefusedCreate, flags.has(unix.O_CREAT) && !o.options.Policy.At(there.parentPath).Has(policy.Write)
	case flags.has(unix.O_TMPFILE):
		return platform.RefusedCreate, !at.Has(policy.Write)
	case flags.has(unix.O_CREAT | unix.O_EXCL), there.kind() == unix.S_IFLNK, there.kind() == unix.S_IFSOCK:
		return "", false // EEXIST, ELOOP, ENXIO
	case there.kind() == unix.S_IFDIR && (flags.writes() || flags.has(unix.O_CREAT)):
		return "", false // EISDIR
	case there.kind() != unix.S_IFDIR && flags.has(unix.O_DIRECTORY):
		return "", false // ENOTDIR
	case flags.writes() && !at.Has(policy.Write):
		return platform.RefusedWrite, true
	case flags.reads() && !at.Has(policy.Read):
		return platform.RefusedRead, !Unasked(there.path)
	}
	return "", false
}

// ours reports whether a path is granted by something that is no rule: the
// session's terminals, by their descriptors or their mount.
func ours(name string) bool { return policy.Contains("/dev/pts", name) }

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
func (o *Observer) permitted(call *notify.Call, root int, w wish, there *place, access platform.Refused) bool {
	mode, fd := uint32(unix.R_OK), there.fd
	switch access {
	case platform.RefusedCreate, platform.RefusedRemove:
		mode = unix.W_OK | unix.X_OK
		if w.flags.has(unix.O_TMPFILE) {
			break
		}
		if there.holdParent(root) != nil {
			return false
		}
		fd = there.parent
	case platform.RefusedWrite:
		mode = unix.W_OK
		if w.deed == opening && w.flags.reads() {
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
	_, kept := o.options.Policy.ProtectedAt(there.path)
	return err == nil && (answer == nil || errors.Is(answer, unix.EROFS) && kept)
}

// tell reports a refusal.
func (o *Observer) tell(call *notify.Call, r refusal) {
	switch {
	case o.begun.Load():
		o.report(o.describe(call, r))
	case r == refusal{access: platform.RefusedWrite, target: o.options.Canary}:
		o.noticed.Store(true)
	}
}

// Noticed reports whether the refusal of the canary was noticed.
func (o *Observer) Noticed() bool { return o.noticed.Load() }

func (o *Observer) report(denial platform.Denial) { o.options.Report(denial) }

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
	o.tell(call, refusal{access: platform.RefusedConnectUnix, target: target})
}
