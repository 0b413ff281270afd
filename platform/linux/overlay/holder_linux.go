package overlay

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay/message"
)

// The descriptors that a holder is started with.
const (
	holderDir = iota + 3
	holderListener
	holderFirst
	holderUse
)

// maxConnections bounds the sidecars and stages that are connected at once.
const maxConnections = 1024

// RunHolder is the holder: a process that mounts the overlays in a mount
// namespace of its own and hands out copies. It ends when nobody is connected
// any more. The exit status is 1 if it could not start.
func RunHolder() int {
	runtime.LockOSThread() // the mount namespace is this thread's
	h := &holder{
		dir: os.NewFile(holderDir, "overlays"), use: os.NewFile(holderUse, useLock),
		listener: holderListener, connections: []int{holderFirst}, mounts: map[string]mounted{},
	}
	path, err := os.Readlink(message.FDPath(holderDir))
	if err == nil {
		err = unix.Unshare(unix.CLONE_NEWNS)
	}
	if err == nil {
		// Disks that are mounted outside appear here, and nothing from here
		// appears outside.
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	}
	if err == nil {
		// The directory is opened again: overlays can only be made of mounts in
		// this namespace.
		h.dir, err = openMade(path)
	}
	if err != nil {
		return 1
	}
	if err := unix.SetNonblock(h.listener, true); err != nil {
		return 1
	}
	h.user = inUserNamespace()
	if err := probe(h.dir, h.user); err != nil {
		if cannot(err) {
			h.impossible = err.Error()
		} else {
			h.failure = err.Error()
		}
	}
	h.serve()
	return 0
}

// inUserNamespace reports whether this process has its rights from a user
// namespace in which not every id is mapped.
func inUserNamespace() bool {
	content, err := os.ReadFile("/proc/self/uid_map")
	var inside, outside, count uint64
	if err == nil {
		_, err = fmt.Sscan(string(content), &inside, &outside, &count)
	}
	return err != nil || inside != 0 || outside != 0 || count != 1<<32-1
}

// holder is the state of a holder. Everything happens on one thread.
type holder struct {
	dir         *os.File
	user        bool // see newOverlay
	listener    int
	connections []int
	use         *os.File
	start       *os.File           // held when the holder ends
	done        bool               // it was asked to end
	mounts      map[string]mounted // by the path of the cache
	impossible  string             // why there are no overlays
	failure     string             // why there are none at the moment
}

// serve answers requests until nobody is connected.
func (h *holder) serve() {
	for !h.done {
		timeout := -1
		if len(h.connections) == 0 {
			switch err := h.end(); {
			case errors.Is(err, unix.EWOULDBLOCK):
				timeout = retryMilliseconds
			case err != nil || h.done:
				return
			}
		}
		ready := []unix.PollFd{{Fd: int32(h.listener), Events: unix.POLLIN}}
		for _, c := range h.connections {
			ready = append(ready, unix.PollFd{Fd: int32(c), Events: unix.POLLIN})
		}
		if _, err := unix.Poll(ready, timeout); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return
		}
		var kept []int
		for _, c := range ready[1:] {
			if c.Revents == 0 || h.answer(int(c.Fd)) == nil {
				kept = append(kept, int(c.Fd))
			} else {
				unix.Close(int(c.Fd))
			}
		}
		h.connections = kept
		if ready[0].Revents != 0 {
			h.accept()
		}
	}
}

// retryMilliseconds is the time after which a holder that nobody is connected to
// tries again to end, if somebody has the startLock: whoever has it connects, or
// releases it.
const retryMilliseconds = 50

// end ends the holder, unless somebody is about to connect. Nobody connects
// without the startLock. The error is EWOULDBLOCK if somebody has it.
func (h *holder) end() error {
	start, err := openFile(h.dir, startLock, 0) // not made anew: the user may be removing the directory
	if err != nil {
		return err
	}
	if err := lock(start, unix.LOCK_NB); err != nil {
		start.Close()
		return err
	}
	if h.accept(); len(h.connections) > 0 {
		start.Close()
		return nil
	}
	h.release()
	h.start, h.done = start, true // the end of this process releases the lock
	return nil
}

// release gives up the overlays, so that another holder may make them.
func (h *holder) release() {
	for _, m := range h.mounts {
		_ = unmount(m)
		m.close()
	}
	_ = unix.Unlinkat(int(h.dir.Fd()), message.SocketName, 0)
	h.use.Close()
}

// accept accepts a connection of this user, if there is one.
func (h *holder) accept() {
	c, _, err := unix.Accept4(h.listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	peer, err := unix.GetsockoptUcred(c, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || int(peer.Uid) != os.Geteuid() || len(h.connections) >= maxConnections || message.Bound(c) != nil {
		unix.Close(c)
		return
	}
	h.connections = append(h.connections, c)
}

// answer answers one request. An error means that the connection has ended.
func (h *holder) answer(c int) error {
	var r message.Request
	fds, err := message.Receive(c, &r)
	message.CloseAll(fds)
	if err != nil {
		return err
	}
	if r.End {
		if h.done = len(h.connections) == 1; h.done {
			h.release()
		}
		return message.Send(c, message.Answer{Used: !h.done})
	}
	if len(r.Clone) > 0 {
		mounts, err := h.clones(r.Clone)
		defer message.CloseAll(mounts)
		if err != nil {
			return message.Send(c, message.Answer{Error: err.Error()})
		}
		return message.Send(c, message.Answer{}, mounts...)
	}
	return message.Send(c, h.prepare(r.Prepare), int(h.use.Fd()))
}

// prepare makes the overlays that do not exist yet, and refreshes the others.
func (h *holder) prepare(caches []message.Cache) message.Answer {
	if h.impossible != "" || h.failure != "" {
		return message.Answer{Impossible: h.impossible, Error: h.failure}
	}
	failed := map[int]string{}
	for i, c := range caches {
		path := string(c.Path)
		m, known := h.mounts[path]
		var err error
		if known {
			err = m.refresh()
		} else if m, err = mountOverlay(h.dir, nameOf(path), Cache{Path: path, Empty: c.Empty}, h.user); err == nil {
			h.mounts[path] = m
		}
		if err != nil {
			failed[i] = err.Error()
		}
	}
	return message.Answer{Failed: failed}
}

var errNotPrepared = errors.New("the cache has no overlay")

func (h *holder) clones(paths []handshake.RawString) (mounts []int, err error) {
	for _, path := range paths {
		m, known := h.mounts[string(path)]
		if !known || len(mounts) == message.MaxCaches {
			return mounts, fmt.Errorf("%s: %w", path, errNotPrepared)
		}
		mount, err := m.clone()
		if err != nil {
			return mounts, fmt.Errorf("%s: copy mount: %w", path, err)
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}
