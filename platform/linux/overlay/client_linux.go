package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay/message"
)

// Cache is a cache that gets an overlay.
type Cache struct {
	// Path is the real path of the cache.
	Path string
	// Empty is true if sessions must not see the real cache: only its place is
	// used.
	Empty bool
}

// Client is a sidecar's connection to the user's holder. It may be used from
// several goroutines. The end of the process closes it.
type Client struct {
	// Dir is the directory of the overlays.
	Dir string
	// Start starts this program again as the holder.
	Start func(*os.ProcAttr) error

	mu       sync.Mutex // guards the fields below
	socket   int        // 0: not connected
	use      []int      // the useLock, once a holder was used
	sessions bool       // a session has caches from the holder
	silent   time.Time  // until then a holder that has not answered is not asked again
	held     time.Time  // until then a startLock that was kept is tried, and not awaited
}

// ProbePath is a directory over which an overlay can be made to try whether any
// can be made.
func (c *Client) ProbePath() string {
	dir := c.Dir
	if file, err := openDir(c.Dir); err == nil {
		dir = file.Name()
		file.Close()
	}
	return probePath(dir)
}

func probePath(dir string) string { return filepath.Join(dir, probeName, emptyName) }

// Probed lets the holder end that only a probe has used. The next Prepare starts
// another.
func (c *Client) Probed() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions || c.socket == 0 {
		return
	}
	unix.Close(c.socket)
	message.CloseAll(c.use)
	c.socket, c.use = 0, nil
}

// Prepared says which caches have an overlay.
type Prepared struct {
	// Dir is for message.Clone.
	Dir string
	// Impossible says why this machine or file system cannot have overlays;
	// empty if it can.
	Impossible string
	// Failed says why a cache has none, by its index.
	Failed map[int]string
}

var errTooMany = fmt.Errorf("there are more than %d caches", message.MaxCaches)

// Prepare has the holder make the overlays of caches, or refresh them. user
// says that this takes a user namespace. After an error no cache has one.
func (c *Client) Prepare(caches []Cache, user bool) (Prepared, error) {
	if c == nil {
		return Prepared{}, errNoDir
	}
	if len(caches) > message.MaxCaches {
		return Prepared{}, errTooMany
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.silent) {
		return Prepared{}, errSilent
	}
	dir, err := openDir(c.Dir)
	if err != nil {
		return Prepared{}, err
	}
	defer dir.Close()
	r, asked, failed := message.Request{Prepare: []message.Cache{}}, []int{}, map[int]string{}
	for i, cache := range caches {
		c.sessions = c.sessions || cache.Path != probePath(dir.Name())
		if err := fsguard.Answers(cache.Path); err != nil { // the holder would wait for it
			failed[i] = err.Error()
			continue
		}
		r.Prepare = append(r.Prepare, message.Cache{Path: handshake.RawString(cache.Path), Empty: cache.Empty})
		asked = append(asked, i)
	}
	for attempts := 0; ; attempts++ {
		if c.socket == 0 {
			if c.socket, err = c.connected(dir, user); err != nil {
				c.socket = 0
				return Prepared{}, err
			}
		}
		a, fds, err := message.Ask(c.socket, r)
		if err == nil {
			c.keep(fds)
			for i, why := range a.Failed {
				failed[asked[i]] = why
			}
			return Prepared{Dir: dir.Name(), Impossible: a.Impossible, Failed: failed}, nil
		}
		unix.Close(c.socket)
		c.socket = 0
		if errors.Is(err, unix.EAGAIN) {
			c.silent = time.Now().Add(silence)
			return Prepared{}, errSilent
		}
		if attempts > 0 {
			return Prepared{}, fmt.Errorf("ask the holder of caches: %w", err)
		}
	}
}

// silence is how long a holder that has not answered is not asked again, and a lock
// that was kept is not awaited: each session would wait for it.
const silence = time.Minute

// errSilent is about a holder that does not answer, as one that is stopped.
var errSilent = errors.New("the process that holds caches (cache-holder in ps) does not answer: continue or end it")

// keep keeps the useLock until this process ends.
func (c *Client) keep(fds []int) {
	if len(fds) == 0 {
		return
	}
	if len(c.use) > 0 {
		message.CloseAll(fds)
		return
	}
	c.use = fds
}

// connected connects to the holder, or starts one. Nobody else starts one, and
// none ends, meanwhile. c.mu is held.
func (c *Client) connected(dir *os.File, user bool) (int, error) {
	start, err := openLock(dir, startLock)
	if err != nil {
		return -1, err
	}
	defer start.Close()
	turns := startTurns
	if time.Now().Before(c.held) {
		turns = 0
	}
	if err := lockIn(start, turns); errors.Is(err, unix.EWOULDBLOCK) {
		c.held = time.Now().Add(silence)
		return -1, errHeld
	} else if err != nil {
		return -1, fmt.Errorf("lock caches: %w", err)
	}
	socket, err := message.Connect(dir)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) {
		return c.startHolder(dir, user)
	}
	return socket, err
}

// startHolder starts a holder and returns the first connection to it.
func (c *Client) startHolder(dir *os.File, user bool) (int, error) {
	use, err := openLock(dir, useLock)
	if err != nil {
		return -1, err
	}
	defer use.Close()
	if err := lockIn(use, useTurns); err != nil {
		// The kernel would allow another overlay over the same directories, and
		// not keep the two apart.
		return -1, fmt.Errorf("the process that holds them has ended while sessions use them; restart your editor: %w",
			err)
	}
	listener, err := listen(dir)
	if err != nil {
		return -1, fmt.Errorf("listen for sessions: %w", err)
	}
	defer listener.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "first connection")
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		attr := &os.ProcAttr{
			Dir: "/", Files: []*os.File{null, null, null, dir, listener, theirs, use},
			// Keys such as Ctrl-C must not signal it.
			Sys: &syscall.SysProcAttr{Setsid: true},
		}
		if user {
			enterUserNamespace(attr.Sys)
		}
		err = errors.Join(message.Bound(pair[0]), c.Start(attr))
	}
	if err != nil {
		unix.Close(pair[0])
		return -1, fmt.Errorf("start the process that holds caches: %w", err)
	}
	return pair[0], nil
}

const (
	// useTurns is how often a lock is tried that nobody has. A child that is being
	// started holds the descriptors of its parent until it executes, also those that
	// the parent has closed meanwhile.
	useTurns = 40
	// startTurns is how often a lock is tried that others have while they start a
	// holder. One that somebody has stopped has it until it goes on.
	startTurns = 600
)

// errHeld is about a startLock that another process keeps.
var errHeld = errors.New("another process keeps the lock of caches: it clears them, or is stopped (ps shows T)")

// lockIn tries to take a lock that many times, with pauses. The error is
// EWOULDBLOCK if another process keeps it.
func lockIn(file *os.File, most int) error {
	const pause = 5 * time.Millisecond
	for attempts := 0; ; attempts++ {
		err := lock(file, unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || attempts == most {
			return err
		}
		time.Sleep(pause)
	}
}

// enterUserNamespace lets a process have all rights over the user's files, and
// over mounts of its own.
func enterUserNamespace(attr *syscall.SysProcAttr) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// The kernel changes the layers with the rights of the process that has
	// mounted the overlay: it copies what only a user's other programs may
	// change.
	attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER,
		unix.CAP_CHOWN, unix.CAP_FSETID, unix.CAP_MKNOD)
}

// listen makes the holder's socket.
func listen(dir *os.File) (*os.File, error) {
	if err := unix.Unlinkat(int(dir.Fd()), message.SocketName, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	listener := os.NewFile(uintptr(fd), message.SocketName)
	if err = unix.Bind(fd, message.Address(dir)); err == nil {
		err = unix.Listen(fd, maxConnections)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}
