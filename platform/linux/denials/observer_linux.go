package denials

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
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
	// Policy is the policy that is in force. Rules without effect on this
	// machine must be left out.
	Policy *policy.Policy
	// Signals is true if the sandbox denies signals to processes outside.
	Signals bool
	// Report is called for each denial. It must not block.
	Report func(platform.Denial)
	// Ask, if not nil, is called before a file access is denied; see
	// platform.Hooks.
	Ask func(context.Context, platform.Denial) platform.Answer
	// Canary is a path that the stage tries to open for writing before it
	// executes its target. The observer must notice that denial.
	Canary string
	// Missing are protected paths that do not exist. Calls that would create one
	// are refused; see Missing.
	Missing []policy.Protected
	// GitConfigs are the files of GitConfigs whose changes are judged.
	GitConfigs []string
	// Configured, if not nil, is called after a session has changed such a file,
	// with the keys.
	Configured func(path string, keys []string)
	// Own, if valid, has addresses of the session's own, beside the loopback
	// addresses.
	Own netip.Prefix
	// Learn is true if Ask answers at once, and about everything.
	Learn bool
}

// Observer predicts the denials of one session. Its methods may be called from
// several goroutines. Methods that take a call do not answer it, unless they
// say so.
type Observer struct {
	options Options
	// started is true once the stage executes its target. Calls before that are
	// the stage's own checks.
	started atomic.Bool
	// begun is not 0 if started is true, for Decider.
	begun uint32
	// changed is not 0 if the session may have changed something; see
	// NoteChange. Decider sets it, too.
	changed uint32
	// noticed is true once the canary's denial was noticed by the ordinary
	// path.
	noticed atomic.Bool
	pathCache
	questions
	given   given
	missing *missing
}

// New returns an observer. The caller closes it.
func New(options Options) *Observer {
	names := missingNames(options.Missing, options.Policy)
	options.Missing = nil // not needed any more
	return &Observer{
		options: options, pathCache: newPathCache(), missing: names,
		questions: questions{open: map[question]*pending{}, answers: map[question]platform.Answer{}},
	}
}

// Calls lists the names of the system calls that FastPath and SlowPath handle.
func Calls() []string {
	var names []string
	for name := range pathArgs() {
		names = append(names, name)
	}
	return names
}

// SlowPath returns a handler that answers every call of that name which
// FastPath has not answered. The name must be one of Calls.
func SlowPath(o *Observer, name string) func(*notify.Call) {
	list := pathArgs()[name]
	return func(call *notify.Call) {
		if !o.handle(call, name, list) {
			call.Continue()
		}
	}
}

// handle checks a call, and reports whether it has answered it.
func (o *Observer) handle(call *notify.Call, name string, list []pathArg) bool {
	root, err := rootOf(call.TID)
	if err != nil {
		return o.mayCreate(call, name, list) && o.refuseUnrooted(call, err)
	}
	defer unix.Close(root)
	ownRoot := !mayHaveOtherRoot || !otherRoot(call.TID)
	if ownRoot {
		o.holdRoot(root)
	}
	if ownRoot && o.changeGit(call, root, name, list) {
		return true
	}
	if o.refuseMissing(call, root, ownRoot, name, list) || o.refuseInGit(call, root, name) {
		return true
	}
	var opened []*finding
	for _, u := range list {
		f, absent := o.inspect(call, root, ownRoot, name, u)
		if f == nil {
			if absent && u.op == opRemove {
				return false // a rename without a source fails anyway
			}
			continue
		}
		defer f.loc.close()
		if o.ask(call, root, f) {
			return true
		}
		switch allowed, answered := o.askName(call, root, name, f); {
		case answered:
			return true
		case !allowed:
			o.report(call, f.refusal)
			return false
		}
		opened = append(opened, f)
	}
	return len(opened) > 0 && o.changeName(call, root, ownRoot, name, opened)
}

// refusal is an access that is about to be denied.
type refusal struct {
	access   platform.Refused
	target   string
	datagram bool // see platform.Denial
}

// finding is a refusal with the request and the file it concerns.
type finding struct {
	refusal
	request
	loc  *location
	mode uint32 // of a file that is created
}

// inspect checks one path argument of a call. If something cannot be found out
// (the caller hides its memory, or is gone), nothing is reported. The caller
// closes the location of the finding. ownRoot says that the caller has the
// session's root; absent, that nothing exists at the path.
func (o *Observer) inspect(
	call *notify.Call, root int, ownRoot bool, name string, u pathArg,
) (f *finding, absent bool) {
	begun := time.Now()
	text, err := call.Text(call.Args[u.path])
	if err != nil || text == "" {
		return nil, false // with AT_EMPTY_PATH the call concerns an open file
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
	absent = err == nil && !loc.exists()
	var hidden *location
	if ownRoot && (absent || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
		hidden = o.hidden(call, root, dir, text, w.follow)
	}
	switch {
	case hidden != nil:
		if loc != nil {
			loc.close()
		}
		loc = hidden
	case err != nil:
		return nil, false // the caller gets this very error from the kernel
	}
	access, refused := o.decide(w, loc)
	if !refused || !o.permitted(call, root, w, loc, access) {
		if ownRoot && hidden == nil {
			o.remember(root, w, loc, begun)
		}
		loc.close()
		return nil, absent
	}
	return &finding{refusal: refusal{access: access, target: displayed(loc.path)}, request: w, loc: loc, mode: mode},
		false
}

// hidden returns what is outside at a path that leads into a hidden directory;
// nil if it does not, or if that cannot be told. The caller closes it.
func (o *Observer) hidden(call *notify.Call, root, dir int, name string, follow bool) *location {
	if len(o.options.Policy.Hidden) == 0 {
		return nil
	}
	name, err := absolute(call, root, dir, name)
	if err != nil {
		return nil
	}
	if _, is := o.options.Policy.HiddenAt(path.Clean(name)); !is {
		return nil
	}
	outside, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(outside)
	loc, err := resolve(outside, name, follow)
	if err != nil {
		return nil
	}
	if _, is := o.options.Policy.HiddenAt(loc.path); !is {
		loc.close()
		return nil
	}
	return loc
}

// flagsOf returns the flags of an open and the permissions of a file that it
// creates, wherever the call has them.
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
			return 0, 0, errors.New("it is resolved from another root")
		}
		return openFlags(binary.NativeEndian.Uint64(how[:])), uint32(binary.NativeEndian.Uint64(how[8:])), nil
	case u.op == opOpen:
		return openFlags(uint32(call.Args[u.flags])), uint32(call.Args[u.flags+1]), nil
	case u.flags != none:
		return openFlags(uint32(call.Args[u.flags])), 0, nil
	}
	return 0, 0, nil
}

// request is what a call wants to do with a path.
type request struct {
	op     operation
	flags  openFlags
	follow bool
	exempt bool // nothing about the request can be denied (O_PATH)
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

// decide predicts the answer of Landlock, or of the mounts that protect paths,
// unless the kernel gives another error first.
func (o *Observer) decide(w request, loc *location) (access platform.Refused, refused bool) {
	p := o.options.Policy
	if isTerminal(loc.path) {
		return "", false
	}
	at := p.At(loc.path)
	needed, _ := needs(w.op, w.flags)
	switch w.op {
	case opCreate, opLink, opRemove:
		access = platform.RefusedCreate
		if w.op == opRemove {
			access = platform.RefusedRemove
		}
		if loc.exists() == (w.op == opCreate) && w.op != opLink {
			return "", false // EEXIST, ENOENT
		}
		_, protected := p.ProtectedAt(loc.path)
		return access, protected || !p.At(loc.parentPath).Has(policy.Write)
	case opTruncate:
		return platform.RefusedWrite, loc.kind() == unix.S_IFREG && !at.Has(needed)
	case opExecute:
		return platform.RefusedExecute, loc.kind() == unix.S_IFREG && !at.Has(needed)
	}
	return o.decideOpening(w.flags, loc, at)
}

func (o *Observer) decideOpening(flags openFlags, loc *location, at policy.Access) (access platform.Refused,
	refused bool,
) {
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

// isTerminal reports whether a path is one of the session's terminals. They are
// granted by descriptor or by mount, and no rule covers them.
func isTerminal(name string) bool { return policy.Contains("/dev/pts", name) }

// displayed replaces the sidecar's own /proc directory, in which the path was
// resolved, by /proc/self.
func displayed(name string) string {
	own := fmt.Sprintf("/proc/%d", os.Getpid())
	if name == own || strings.HasPrefix(name, own+"/") {
		return "/proc/self" + strings.TrimPrefix(name, own)
	}
	return name
}

// permitted reports whether the file's own permissions allow the access, asked
// as the caller from outside the sandbox. If they do not, the denial is not the
// sandbox's. access(2) cannot check a sandbox, because Landlock does not hook
// it; here only the file's permissions matter.
func (o *Observer) permitted(call *notify.Call, root int, w request, loc *location, access platform.Refused) bool {
	mode, fd, name := uint32(unix.R_OK), loc.fd, loc.path
	switch access {
	case platform.RefusedCreate, platform.RefusedRemove:
		mode = unix.W_OK | unix.X_OK
		if w.flags.has(unix.O_TMPFILE) {
			break
		}
		if loc.openParent(root) != nil {
			return false
		}
		fd, name = loc.parent, loc.parentPath
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
	permitted := false
	_, protected := o.options.Policy.ProtectedAt(loc.path)
	from, flags := "", unix.AT_EMPTY_PATH|unix.AT_EACCESS
	if _, hidden := o.options.Policy.HiddenAt(loc.path); hidden {
		// Something else is there inside.
		fd, from, flags, protected = unix.AT_FDCWD, name, unix.AT_EACCESS, true
	}
	err = caller.As(func() {
		answer := unix.Faccessat2(fd, from, mode, flags)
		permitted = answer == nil || errors.Is(answer, unix.EROFS) && (protected || !readOnlyOutside(fd, name))
	})
	return err == nil && permitted
}

// report reports a refusal, or notes that the canary was noticed.
func (o *Observer) report(call *notify.Call, r refusal) {
	switch {
	case o.started.Load():
		o.options.Report(o.describe(call, r))
	case r == refusal{access: platform.RefusedWrite, target: o.options.Canary}:
		o.noticed.Store(true)
	}
}

// Noticed reports whether the denial of the canary was noticed.
func (o *Observer) Noticed() bool { return o.noticed.Load() }

// describe turns a refusal into a denial and names the caller's process.
func (o *Observer) describe(call *notify.Call, r refusal) platform.Denial {
	denial := platform.Denial{Access: r.access, Target: r.target, Datagram: r.datagram, Count: 1}
	if pid, name, err := call.Process(); err == nil {
		denial.PID, denial.Process = pid, name
		switch r.access {
		case platform.RefusedCreate, platform.RefusedWrite, platform.RefusedRemove:
			if name == "git" {
				denial.Worktree = o.worktreeOf(pid, r.target)
			}
		}
	}
	return denial
}

// ConnectHost reports a connection to a host that package network has denied.
func (o *Observer) ConnectHost(denial platform.Denial) {
	if o.started.Load() {
		o.options.Report(denial)
	}
}

// ConnectUnix reports a connection that package sockets has denied. An abstract
// address is written "abstract:" and its name.
func (o *Observer) ConnectUnix(call *notify.Call, target string) {
	if strings.HasPrefix(target, "/") {
		target = path.Clean(target)
	}
	o.report(call, refusal{access: platform.RefusedConnectUnix, target: target})
}
