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

	mu   sync.Mutex // guards what follows
	held map[note]struct{}
}

type note struct {
	project string
	cookie  uint64
}

// maxHeld bounds the notes of a project before those of closed sockets are
// removed. A server that restarts at each change of a file makes many.
const maxHeld = 256

// NewNotes returns notes that are shared by a directory, which no session may
// write. dir makes it and is called when it is needed first; "" shares with
// nobody.
func NewNotes(dir func() string) *Notes { return &Notes{dir: sync.OnceValue(dir)} }

// add notes a socket that is about to listen. live lists the cookies of the
// sockets that listen now. If no file can be made, other sidecars do not know of
// the socket, and refuse it.
func (n *Notes) add(project string, cookie uint64, live func() (map[uint64]bool, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held = map[note]struct{}{}
	}
	n.held[note{project, cookie}] = struct{}{}
	dir := n.of(project)
	n.prune(live)
	if dir == "" || fsguard.MkdirAll(dir, 0o700) != nil {
		return
	}
	file, err := os.OpenFile(filepath.Join(dir, name(cookie)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	file.Close()
	pruneFiles(dir, live)
}

// has reports whether a session of the project listens with a socket.
func (n *Notes) has(project string, cookie uint64) bool {
	n.mu.Lock()
	_, held := n.held[note{project, cookie}]
	dir := n.of(project)
	n.mu.Unlock()
	if held || dir == "" {
		return held
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

func (n *Notes) prune(live func() (map[uint64]bool, error)) {
	if len(n.held) <= maxHeld {
		return
	}
	listening, err := live()
	if err != nil {
		return
	}
	for one := range n.held {
		if !listening[one.cookie] {
			delete(n.held, one)
		}
	}
}

// settled is the age from which a socket that does not listen never will: it was
// noted right before listen(2).
const settled = time.Minute

func pruneFiles(dir string, live func() (map[uint64]bool, error)) {
	names, err := os.ReadDir(dir)
	if err != nil || len(names) <= maxHeld {
		return
	}
	listening, err := live()
	if err != nil {
		return
	}
	for _, entry := range names {
		cookie, err := strconv.ParseUint(entry.Name(), 16, 64)
		if err != nil || listening[cookie] {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > settled {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
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
