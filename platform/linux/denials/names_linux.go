package denials

import (
	"errors"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// An answer can open a directory. Its files are opened as any other that an answer
// allows. Names in it are made, removed and renamed here, by the sidecar: no
// descriptor that a session gets would let it do so. See docs/design/questions.md.

// nameCall says how a call that changes names is made again. The numbers are those
// of its arguments; none if it has no such argument.
type nameCall struct {
	flags, mode int8
	// always are flags of the call that does the same with descriptors, and known
	// those that a caller may set.
	always, known int
	// from is the name that a hard link is made of. It is judged, too: under another
	// name nobody would know what the file holds.
	from *pathArg
}

// renaming is held while names are changed for a session.
var renaming sync.Mutex

// nameCalls are the calls that are made again, by name. What makes symlinks and
// devices is not among them: programs outside would follow those.
var nameCalls = map[string]nameCall{
	"mkdir":     {flags: none, mode: 1},
	"mkdirat":   {flags: none, mode: 2},
	"unlink":    {flags: none, mode: none},
	"unlinkat":  {flags: 2, mode: none, known: unix.AT_REMOVEDIR},
	"rmdir":     {flags: none, mode: none, always: unix.AT_REMOVEDIR},
	"rename":    {flags: none, mode: none},
	"renameat":  {flags: none, mode: none},
	"renameat2": {flags: 4, mode: none, known: unix.RENAME_NOREPLACE | unix.RENAME_EXCHANGE},
	// No symlink is followed: it may lead to what nobody was asked about.
	"link":   {flags: none, mode: none, from: &pathArg{opRemove, workDir, 0, none}},
	"linkat": {flags: 4, mode: none, from: &pathArg{opRemove, 0, 1, none}},
}

// askName asks the user about the directory of a name that is about to be changed.
// answered is true if the call needs no other answer any more.
func (o *Observer) askName(call *notify.Call, root int, name string, f *finding) (allowed, answered bool) {
	if _, known := nameCalls[name]; !known || !o.Asks() || !o.started.Load() {
		return false, false
	}
	_, hidden := o.options.Policy.HiddenAt(f.loc.path)
	if hidden || f.loc.isRemoved() || !f.loc.isNamed() || f.loc.openParent(root) != nil {
		return false, false
	}
	if dir, err := os.Readlink(fdPath(f.loc.parent)); err != nil || dir != f.loc.parentPath {
		return false, false // a symlink has taken its place
	}
	denial := o.describe(call, f.refusal)
	denial.Directory, denial.Change = f.loc.parentPath, true
	return o.wait(call, denial, "name")
}

// changeName makes a call as the caller whose names are all in directories that an
// answer has opened, and answers it. Where one is elsewhere the names are on
// different file systems, as the caller sees it, so that it copies. Directories
// are not moved: what is protected in them would get other names.
func (o *Observer) changeName(call *notify.Call, root int, ownRoot bool, name string, opened []*finding) bool {
	how := nameCalls[name]
	names := len(pathArgs()[name])
	if how.from != nil {
		names++
		f, absent := o.inspect(call, root, ownRoot, name, *how.from)
		if absent {
			call.Fail(unix.ENOENT)
			return true
		}
		if f != nil {
			defer f.loc.close()
			// The answer that has opened the directory holds, so nobody is asked.
			if f.loc.parentPath == opened[0].loc.parentPath {
				allowed, answered := o.askName(call, root, name, f)
				if answered {
					return true
				}
				if allowed {
					opened = []*finding{f, opened[0]}
				}
			}
		}
	}
	flags := how.always
	if how.flags != none {
		flags = int(uint32(call.Args[how.flags]))
	}
	switch err := o.makeAgain(call, name, opened, names, flags); {
	case errors.Is(err, notify.ErrGone):
	case err != nil:
		call.Fail(errnoOf(err))
	default:
		call.Succeed()
	}
	return true
}

// makeAgain makes the call, whose names are in the order of its arguments. Only
// regular files are renamed and linked.
func (o *Observer) makeAgain(call *notify.Call, name string, opened []*finding, names, flags int) error {
	unknown := flags &^ (nameCalls[name].always | nameCalls[name].known)
	switch {
	case unknown != 0 && names == 1:
		return unix.EINVAL
	case unknown != 0, len(opened) < names:
		return unix.EXDEV
	}
	var mode uint32
	if at := nameCalls[name].mode; at != none {
		mask, err := call.Umask()
		if err != nil {
			return err
		}
		mode = uint32(call.Args[at]) & 0o777 &^ mask // nobody was shown a mark
	}
	caller, err := call.Identity()
	if err != nil {
		return err
	}
	first, last := opened[0].loc, opened[len(opened)-1].loc
	change := func(from, to int) error {
		old, made := path.Base(first.path), path.Base(last.path)
		switch name {
		case "mkdir", "mkdirat":
			return makeDirectory(to, made, mode)
		case "link", "linkat":
			return unix.Linkat(from, old, to, made, flags)
		case "rename", "renameat", "renameat2":
			return unix.Renameat2(from, old, to, made, uint(flags))
		}
		return unix.Unlinkat(to, made, flags)
	}
	for _, f := range opened {
		if err := fsguard.Answers(f.loc.parentPath); err != nil {
			return err
		}
	}
	// No other session of this sidecar changes names meanwhile, so that what was
	// looked at is what is changed.
	renaming.Lock()
	defer renaming.Unlock()
	if !call.Valid() {
		return notify.ErrGone
	}
	if names == 2 {
		for _, f := range opened {
			if !f.loc.isPlain() {
				return unix.EXDEV
			}
		}
	}
	var failed error
	err = caller.As(func() {
		if failed = change(first.parent, last.parent); !errors.Is(failed, unix.EROFS) {
			return
		}
		from, err := outside(first.parent, first.parentPath)
		if err != nil {
			return
		}
		defer unix.Close(from)
		to, err := outside(last.parent, last.parentPath)
		if err != nil {
			return
		}
		defer unix.Close(to)
		failed = change(from, to)
	})
	return errors.Join(err, failed)
}

// isPlain reports whether the location's name still leads to what was found there: a
// regular file, or nothing.
func (p *location) isPlain() bool {
	var now, was unix.Stat_t
	err := unix.Fstatat(p.parent, path.Base(p.path), &now, unix.AT_SYMLINK_NOFOLLOW)
	if !p.exists() {
		return errors.Is(err, unix.ENOENT)
	}
	return err == nil && unix.Fstat(p.fd, &was) == nil && now.Dev == was.Dev && now.Ino == was.Ino &&
		now.Mode&unix.S_IFMT == unix.S_IFREG
}

// makeDirectory makes a directory without the sidecar's own umask. It inherits the
// set-group-id bit of the one above it.
func makeDirectory(parent int, name string, mode uint32) error {
	if err := unix.Mkdirat(parent, name, mode); err != nil {
		return err
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if err != nil {
		return nil // it is made, with fewer permissions at most
	}
	defer unix.Close(fd)
	var made unix.Stat_t
	if unix.Fstat(fd, &made) == nil {
		_ = unix.Chmod(fdPath(fd), mode|made.Mode&unix.S_ISGID)
	}
	return nil
}
