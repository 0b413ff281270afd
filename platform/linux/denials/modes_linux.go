package denials

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// A file that an answer opened is in the sidecar's own mounts, where its mode
// could be changed. The filter sends the calls that set a mark: set-user-id,
// set-group-id or sticky. See docs/design/questions.md.

// maxGiven bounds the files that are remembered of one session. A session that
// learns settings opens any number. Beyond the bound no file gets a mark.
const maxGiven = 1 << 16

// given are the files that answers have opened for a session. The number of one
// that is removed may become another file's, which then gets no mark either.
type given struct {
	mu    sync.Mutex // guards the fields below
	files map[fileID]bool
	full  bool // there were more
}

type fileID struct{ device, inode uint64 }

func idOf(fd int) (fileID, error) {
	var stat unix.Stat_t
	err := unix.Fstat(fd, &stat)
	return fileID{stat.Dev, stat.Ino}, err
}

// add notes a file before the session gets it.
func (g *given) add(fd int) error {
	id, err := idOf(fd)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.files == nil:
		g.files = map[fileID]bool{id: true}
	case len(g.files) < maxGiven:
		g.files[id] = true
	case !g.files[id]:
		g.full = true
	}
	return nil
}

// has reports whether an answer has opened the file, or that cannot be told.
func (g *given) has(fd int) bool {
	id, err := idOf(fd)
	g.mu.Lock()
	defer g.mu.Unlock()
	return err != nil || g.full || g.files[id]
}

// ChangeMode returns a handler that answers every call of that name: chmod,
// fchmod, fchmodat or fchmodat2. mode is the number of the argument that has the
// mode. The handler changes the mode itself, as the caller: if the call went on,
// another thread could put a file that an answer opened in the place of the one
// that was looked at.
func ChangeMode(o *Observer, name string, mode int) func(*notify.Call) {
	return func(call *notify.Call) {
		if !o.started.Load() || o.options.Ask == nil {
			call.Continue()
			return
		}
		switch err := o.changeMode(call, name, mode); {
		case errors.Is(err, notify.ErrGone):
		case err != nil:
			call.Fail(errnoOf(err))
		default:
			call.Succeed()
		}
	}
}

// Unmarked returns a fast path that lets a change of a mode continue if it sets no
// mark.
func Unmarked(mode int) func(*notify.Call) bool {
	return func(call *notify.Call) bool {
		if call.Args[mode]&modeMarks != 0 {
			return false
		}
		call.Continue()
		return true
	}
}

func (o *Observer) changeMode(call *notify.Call, name string, arg int) error {
	caller, err := call.Identity()
	if err != nil {
		return err
	}
	fd, err := openForMode(call, name, arg-1)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !call.Valid() {
		return notify.ErrGone
	}
	if o.given.has(fd) {
		if name, err := os.Readlink(fdPath(fd)); err == nil {
			o.report(call, refusal{access: platform.RefusedWrite, target: name})
		}
		return unix.EPERM
	}
	mode := uint32(call.Args[arg]) & modeBits
	var failed error
	err = caller.As(func() { failed = unix.Chmod(fdPath(fd), mode) })
	return errors.Join(err, failed)
}

// modeMarks are S_ISUID, S_ISGID and S_ISVTX.
const modeBits, modeMarks = 0o7777, 0o7000

// openForMode opens, without side effects, the file whose mode a call changes.
// path is the number of the argument with its path, if the call has one.
func openForMode(call *notify.Call, name string, path int) (int, error) {
	c := creation{dir: unix.AT_FDCWD, follow: true}
	switch name {
	case "fchmod":
		return openDescriptor(call, int(int32(call.Args[0])))
	case "fchmodat", "fchmodat2":
		c.dir = int(int32(call.Args[0]))
	}
	var flags uint32
	if name == "fchmodat2" {
		flags = uint32(call.Args[3])
		c.follow = flags&unix.AT_SYMLINK_NOFOLLOW == 0
	}
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return -1, unix.EINVAL
	}
	text, err := call.Text(call.Args[path])
	switch {
	case err != nil:
		return -1, err
	case text == "" && flags&unix.AT_EMPTY_PATH == 0:
		return -1, unix.ENOENT
	case text == "" && c.dir != unix.AT_FDCWD:
		return openDescriptor(call, c.dir)
	case text == "":
		text = "."
	}
	if err := fsguard.Answers(text); err != nil {
		return -1, err
	}
	c.text = text
	return openWalked(call, c)
}

// openDescriptor opens the file of a descriptor of the caller's.
func openDescriptor(call *notify.Call, number int) (int, error) {
	if number < 0 {
		return -1, unix.EBADF
	}
	fd, err := openat(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/fd/%d", call.TID, number), unix.O_PATH|unix.O_CLOEXEC)
	if errors.Is(err, unix.ENOENT) {
		err = unix.EBADF
	}
	return fd, err
}

// openWalked opens what a path leads to for the caller.
func openWalked(call *notify.Call, c creation) (int, error) {
	root, err := rootOf(call.TID)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	at := walk{call: call, root: root, fd: -1}
	defer at.close()
	if err := at.start(c); err != nil {
		return -1, err
	}
	if err := at.walk(c.text, c.follow); err != nil {
		return -1, err
	}
	if at.name != "" {
		return openat(at.fd, at.name, onlyPath)
	}
	fd := at.fd
	at.fd = -1
	return fd, nil
}
