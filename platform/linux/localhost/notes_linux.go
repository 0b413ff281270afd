package localhost

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Notes are the sockets that the sessions of each project listen with, known by
// their cookies (SO_COOKIE). The kernel gives a cookie to no other socket until
// the machine restarts. So a note that nobody needs any more is harmless.
//
// Sidecars of one user share the notes by empty files in a directory. Notes may
// be used by several goroutines. Its zero value shares with nobody.
type Notes struct {
	dir func() string

	mu    sync.Mutex // guards what follows
	held  map[note]time.Time
	space space

	disk   sync.Mutex // guards what follows, and the files; mu is free meanwhile
	spaces map[string]*space
}

type note struct {
	project string
	cookie  uint64
}

const (
	// maxHeld is how many notes of a project there are before those of closed
	// sockets are removed. A server that restarts at each change of a file makes
	// many.
	maxHeld = 256
	// maxNotes bounds the notes of a project. A session may listen without end.
	maxNotes = 1 << 14
	// settled is the age from which a socket that does not listen never will: it
	// was noted right before listen(2).
	settled = 2 * time.Second
)

// space is room for notes. The zero value has none. So notes are listed seldom:
// after as many new ones as there were.
type space struct {
	room  int
	again time.Time // a full space is not searched before
}

// take takes the room for a note. prune removes what nobody needs, and returns
// how many are left.
func (s *space) take(prune func() int) bool {
	if s.room > 0 {
		s.room--
		return true
	}
	if time.Now().Before(s.again) {
		return false
	}
	left := prune()
	if s.room = min(max(maxHeld, left), maxNotes-left); s.room <= 0 {
		s.again = time.Now().Add(settled)
		return false
	}
	s.room--
	return true
}

// NewNotes returns notes that are shared by a directory, which no session may
// write. dir makes it and is called when it is needed first; "" shares with
// nobody.
func NewNotes(dir func() string) *Notes { return &Notes{dir: sync.OnceValue(dir)} }

// add notes a socket that is about to listen. live lists the cookies of the
// sockets that listen now. If no file can be made, other sidecars do not know of
// the socket, and refuse it.
func (n *Notes) add(project string, cookie uint64, live func() (map[uint64]bool, error)) {
	n.mu.Lock()
	if n.held == nil {
		n.held = map[note]time.Time{}
	}
	if n.space.take(func() int { return n.prune(live) }) {
		n.held[note{project, cookie}] = time.Now()
	}
	n.mu.Unlock()
	n.disk.Lock()
	defer n.disk.Unlock()
	dir := n.of(project)
	if dir == "" {
		return
	}
	if n.spaces == nil {
		n.spaces = map[string]*space{}
	}
	if n.spaces[dir] == nil {
		if fsguard.MkdirAll(dir, 0o700) != nil {
			return
		}
		if len(n.spaces) == 0 {
			pruneStarts(filepath.Dir(dir))
		}
		n.spaces[dir] = &space{}
	}
	if fsguard.Answers(dir) != nil || !n.spaces[dir].take(func() int { return pruneFiles(dir, live) }) {
		return
	}
	file, err := os.OpenFile(filepath.Join(dir, name(cookie)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		delete(n.spaces, dir) // it is made again, should somebody have removed it
		return
	}
	file.Close()
}

// has reports whether a session of the project listens with a socket.
func (n *Notes) has(project string, cookie uint64) bool {
	n.mu.Lock()
	_, held := n.held[note{project, cookie}]
	n.mu.Unlock()
	if held {
		return true
	}
	dir := n.of(project)
	if dir == "" {
		return false
	}
	_, err := fsguard.Lstat(filepath.Join(dir, name(cookie)))
	return err == nil
}

// of is the directory of a project's notes. It is another after each start of
// the machine, as cookies begin again then.
func (n *Notes) of(project string) string {
	boot := bootID()
	if n.dir == nil || boot == "" || project == "" {
		return ""
	}
	dir := n.dir()
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(dir, boot, hex.EncodeToString(sum[:16]))
}

func name(cookie uint64) string { return strconv.FormatUint(cookie, 16) }

func (n *Notes) prune(live func() (map[uint64]bool, error)) (left int) {
	if len(n.held) <= maxHeld {
		return len(n.held)
	}
	if listening, err := live(); err == nil {
		for one, at := range n.held {
			if !listening[one.cookie] && time.Since(at) > settled {
				delete(n.held, one)
			}
		}
	}
	return len(n.held)
}

func pruneFiles(dir string, live func() (map[uint64]bool, error)) (left int) {
	names, err := os.ReadDir(dir)
	if err != nil || len(names) <= maxHeld {
		return len(names)
	}
	listening, err := live()
	if err != nil {
		return len(names)
	}
	left = len(names)
	for _, entry := range names {
		cookie, err := strconv.ParseUint(entry.Name(), 16, 64)
		if err != nil || listening[cookie] {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > settled &&
			os.Remove(filepath.Join(dir, entry.Name())) == nil {
			left--
		}
	}
	return left
}

// forgotten is the age from which the notes of another start of the machine are
// removed. Until then they may be those of a machine that shares the directory.
const forgotten = 30 * 24 * time.Hour

// pruneStarts removes the notes of earlier starts of the machine, and renews the
// age of this one's.
func pruneStarts(own string) {
	now := time.Now()
	_ = os.Chtimes(own, now, now)
	starts, err := os.ReadDir(filepath.Dir(own))
	if err != nil {
		return
	}
	for _, start := range starts {
		if info, err := start.Info(); err == nil && start.Name() != filepath.Base(own) &&
			now.Sub(info.ModTime()) > forgotten {
			_ = os.RemoveAll(filepath.Join(filepath.Dir(own), start.Name()))
		}
	}
}

// bootID identifies the machine's start; "" if the kernel does not say.
var bootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})
