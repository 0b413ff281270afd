package denials

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Options of an observer.
type Options struct {
	// Policy is what holds in the session: a rule that has no effect here is none.
	Policy *policy.Policy
	// Signals is true where processes outside cannot be signalled.
	Signals bool
	// Report is told of each denial. It must not block.
	Report func(platform.Denial)
}

// Observer looks at the calls of one session. Its methods may be called from several goroutines; those that take a call answer none.
type Observer struct {
	options Options
	// begun is true from when the stage executes its target: what it does before, it does to prove itself.
	begun atomic.Bool
	views
}

// New makes an observer, which is to be closed.
func New(options Options) *Observer {
	return &Observer{options: options, views: views{looks: make(chan struct{}, mostLater), plain: map[string]bool{}, rootFD: -1}}
}

// Calls lists the calls on paths that Look knows.
func Calls() []string {
	var names []string
	for name := range uses {
		names = append(names, name)
	}
	return names
}

// Look returns what looks at a call of that name, which Calls lists.
func Look(o *Observer, name string) func(*notify.Call) {
	list := uses[name]
	return func(call *notify.Call) {
		if name == "execve" && o.begun.CompareAndSwap(false, true) {
			return // who starts the session learns from the stage why it does not start
		}
		for _, u := range list {
			if refused, is := o.look(call, name, u); is {
				o.tell(call, refused)
				return
			}
		}
	}
}

// refusal is what is about to be refused.
type refusal struct {
	access platform.Refused
	target string
}

// look decides about one path of a call. What cannot be found out (the caller's memory is hidden, it is gone) is not reported.
func (o *Observer) look(call *notify.Call, name string, u use) (refusal, bool) {
	text, err := call.Text(call.Args[u.path])
	if err != nil || text == "" {
		return refusal{}, false // with AT_EMPTY_PATH it is about an open file
	}
	flags, err := flagsOf(call, name, u)
	if err != nil {
		return refusal{}, false
	}
	w := want(u.deed, flags)
	if w.nothing {
		return refusal{}, false
	}
	dir := unix.AT_FDCWD
	if u.dir != workDir {
		dir = int(int32(call.Args[u.dir]))
	}
	root, err := rootOf(call.TID)
	if err != nil {
		return refusal{}, false
	}
	defer unix.Close(root)
	there, err := locate(call, root, dir, text, w.follow)
	if err != nil {
		return refusal{}, false // the caller gets this very error
	}
	defer there.close()
	access, refused := o.decide(w, there)
	if !refused || !o.permitted(call, root, w, there, access) {
		return refusal{}, false
	}
	return refusal{access: access, target: display(there.path)}, true
}

// flagsOf are the flags of an opening, wherever the call has them.
func flagsOf(call *notify.Call, name string, u use) (openFlags, error) {
	switch {
	case name == "creat":
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, nil
	case name == "openat2":
		var how [8]byte // the first member of struct open_how
		if err := call.Read(call.Args[2], how[:]); err != nil {
			return 0, err
		}
		return openFlags(binary.NativeEndian.Uint64(how[:])), nil
	case u.flags != none:
		return openFlags(uint32(call.Args[u.flags])), nil
	}
	return 0, nil
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

// decide says what Landlock, or the mounts that protect paths, will answer, where the kernel does not answer something else before.
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

func (o *Observer) decideOpening(flags openFlags, there *place, at policy.Access) (access platform.Refused, refused bool) {
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
		return platform.RefusedRead, true
	}
	return "", false
}

// ours reports whether a path is granted by something that is no rule: the session's terminals, by their descriptors or their mount.
func ours(name string) bool { return policy.Contains("/dev/pts", name) }

// display names files of the caller's process as every process names its own: they were looked up by us.
func display(name string) string {
	own := fmt.Sprintf("/proc/%d", os.Getpid())
	if name == own || strings.HasPrefix(name, own+"/") {
		return "/proc/self" + strings.TrimPrefix(name, own)
	}
	return name
}

// permitted reports whether the file's own permissions allow what the policy does not. access(2) is a poor question about a sandbox, as
// Landlock does not hear it; here it is the right one, because it is all that is to be left out: a refusal that would have come without a
// sandbox too is not the sandbox's. We ask from outside, as the caller.
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

// tell reports a refusal. A caller that is gone by now, after a call that went on, may have left its number to another; that is rare.
func (o *Observer) tell(call *notify.Call, r refusal) {
	if !o.begun.Load() {
		return
	}
	denial := platform.Denial{Access: r.access, Target: r.target, Count: 1}
	if pid, name, err := call.Process(); err == nil {
		denial.PID, denial.Process = pid, name
	}
	o.options.Report(denial)
}

// ConnectUnix reports a connection that somebody else has refused. An abstract address is written "abstract:" and its name.
func (o *Observer) ConnectUnix(call *notify.Call, target string) {
	if strings.HasPrefix(target, "/") {
		target = path.Clean(target)
	}
	o.tell(call, refusal{access: platform.RefusedConnectUnix, target: target})
}
