package tripwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// hub distributes the events of one inotify instance to the tripwires. The
// first tripwire creates the instance, and it stays until this process ends:
// to close an instance that has watches takes the kernel some 15 ms
// (fsnotify_wait_marks_destroyed waits for SRCU), and the end of a session
// would wait for that.
type hub struct {
	mu      sync.Mutex // guards the fields below
	fd      int        // -1 if there is no instance
	file    *os.File   // holds the descriptor open
	reader  sync.WaitGroup
	watches map[int]map[*Tripwire]string
	// markers are closed when the last event of their watch was read; see
	// settle.
	markers map[int]chan struct{}
}

var shared = hub{fd: -1}

// open creates the instance if there is none.
func (h *hub) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fd >= 0 {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("watch directories: %w", err)
	}
	h.fd, h.file = fd, os.NewFile(uintptr(fd), "inotify")
	h.watches, h.markers = map[int]map[*Tripwire]string{}, map[int]chan struct{}{}
	file := h.file
	h.reader.Go(func() { h.read(file) })
	return nil
}

// Detach returns the inotify instance, for a caller that closes it where nobody
// waits; nil if there is none. No tripwire may be left. The next one makes
// another instance.
func Detach() *os.File { return shared.detach() }

func (h *hub) detach() *os.File {
	h.mu.Lock()
	file := h.file
	h.fd, h.file = -1, nil
	h.mu.Unlock()
	if file != nil { // a reader would hold the descriptor beyond Close
		_ = file.SetReadDeadline(time.Now())
		h.reader.Wait()
	}
	return file
}

// watch delivers the events of a directory to a tripwire, with dir as the
// directory's path.
func (h *hub) watch(t *Tripwire, dir string, mask uint32) error {
	slow := fsguard.Kind(dir) != ""
	h.mu.Lock()
	defer h.mu.Unlock()
	fd := h.fd
	if slow {
		// Other tripwires must not wait for a slow file system. Events that
		// arrive before the watch is recorded are lost; Close finds the change.
		h.mu.Unlock()
	}
	// Another tripwire may watch other events of the same directory
	// (IN_MASK_ADD).
	wd, err := fsguard.AddWatch(fd, dir, mask|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW|unix.IN_EXCL_UNLINK|unix.IN_MASK_ADD)
	if slow {
		h.mu.Lock()
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	if h.watches[wd] == nil {
		h.watches[wd] = map[*Tripwire]string{}
	}
	h.watches[wd][t] = dir
	return nil
}

// settleTime bounds the wait for queued events. Reading a full queue takes
// less.
const settleTime = time.Second

// settle waits until every event that the kernel has queued so far was
// delivered. It watches a private file and removes the watch: that queues an
// event behind all others (IN_IGNORED, inotify(7)).
func (h *hub) settle() {
	file, err := unix.MemfdCreate("sandbox-sidecar-marker", unix.MFD_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(file)
	read := make(chan struct{})
	h.mu.Lock()
	wd, err := unix.InotifyAddWatch(h.fd, fmt.Sprintf("/proc/self/fd/%d", file), unix.IN_DELETE_SELF)
	if err == nil {
		h.markers[wd] = read
		_, err = unix.InotifyRmWatch(h.fd, uint32(wd))
	}
	h.mu.Unlock()
	if err != nil {
		return // the user has no watch left; Close checks every path anyway
	}
	timeout := time.NewTimer(settleTime)
	defer timeout.Stop()
	select {
	case <-read:
	case <-timeout.C:
	}
}

// remove removes a tripwire from all directories.
func (h *hub) remove(t *Tripwire) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for wd, users := range h.watches {
		delete(users, t)
		if len(users) == 0 {
			delete(h.watches, wd)
			_, _ = unix.InotifyRmWatch(h.fd, uint32(wd)) // the directory may be gone
		}
	}
}

// read delivers events until detach.
func (h *hub) read(file *os.File) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := file.Read(buffer)
		if err != nil {
			return
		}
		for events := buffer[:n]; len(events) >= unix.SizeofInotifyEvent; {
			wd := int(int32(binary.NativeEndian.Uint32(events)))
			mask := binary.NativeEndian.Uint32(events[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			if end > len(events) {
				return
			}
			name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
			events = events[end:]
			h.deliver(wd, mask, name)
		}
	}
}

// deliver passes one event to the tripwires that watch its directory. After an
// overflow every tripwire gets it, to check its paths.
func (h *hub) deliver(wd int, mask uint32, name string) {
	type recipient struct {
		tripwire *Tripwire
		dir      string
	}
	var recipients []recipient
	h.mu.Lock()
	for t, dir := range h.watches[wd] {
		recipients = append(recipients, recipient{t, dir})
	}
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for t := range h.tripwires() {
			recipients = append(recipients, recipient{t, ""})
		}
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(h.watches, wd)
		if read := h.markers[wd]; read != nil {
			delete(h.markers, wd)
			defer close(read)
		}
	}
	h.mu.Unlock()
	for _, r := range recipients {
		r.tripwire.handle(r.dir, name, mask)
	}
}

// tripwires are those that watch something. h.mu is held.
func (h *hub) tripwires() map[*Tripwire]bool {
	all := map[*Tripwire]bool{}
	for _, users := range h.watches {
		for t := range users {
			all[t] = true
		}
	}
	return all
}

// missing reports whether an error means that there is no such directory.
func missing(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
