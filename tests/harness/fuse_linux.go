package harness

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// FUSE is a file system that stops answering on demand. Only programs that were
// started through Wrap see it, in a mount namespace of their own: the test
// itself finds an empty directory there. It ends with the test. If the test's
// process dies, the kernel fails all requests that wait.
type FUSE struct {
	// Dir is where it is mounted.
	Dir string
	// Private closes its directories to other users. Set it before Wrap.
	Private bool

	t      testing.TB
	victim string
	nodes  []fuseNode
	byPath map[string]uint64

	mu      sync.Mutex // guards the fields below
	devices []*os.File
	hangs   func(caller int) bool // nil: it answers
	held    []fuseRequest         // unanswered
	changed chan struct{}         // closed when held grows
}

type fuseNode struct {
	path    string
	dir     bool
	content string
}

type fuseRequest struct {
	device *os.File
	op     uint32
	unique uint64
	node   uint64
	caller int // a thread's id
	body   []byte
}

// NewFUSE makes a file system with these files, by their paths below dir, which
// must exist. It answers until Hang. If this machine or user can have none, the
// test is skipped as Require does it.
func NewFUSE(t testing.TB, dir string, files map[string]string) *FUSE {
	t.Helper()
	f := &FUSE{
		Dir: dir, t: t, victim: filepath.Join(t.TempDir(), "victim"), byPath: map[string]uint64{},
		changed: make(chan struct{}),
	}
	f.add("/", true, "")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		full := path.Join("/", name)
		for i, c := range full {
			if c == '/' && i > 0 {
				f.add(full[:i], true, "")
			}
		}
		f.add(full, false, files[name])
	}
	t.Cleanup(f.close)
	// the end of a failed test may wait for a process that waits for an answer
	bound := time.AfterFunc(2*Timeout, f.close)
	t.Cleanup(func() { bound.Stop() })
	Victim(t, "tests/victim", f.victim)
	if device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		Skip(t, "fuse", err.Error())
	} else {
		device.Close()
	}
	try := exec.Command("/bin/true")
	f.Wrap(try)
	if out, err := try.CombinedOutput(); err != nil {
		Skip(t, "fuse", fmt.Sprintf("%v: %s", err, out))
	}
	return f
}

func (f *FUSE) add(name string, dir bool, content string) {
	if f.byPath[name] == 0 {
		f.nodes = append(f.nodes, fuseNode{name, dir, content})
		f.byPath[name] = uint64(len(f.nodes)) // the root's is 1
	}
}

// Wrap is for Options: it lets a sidecar, or another program, see the file
// system.
func (f *FUSE) Wrap(command *exec.Cmd) {
	f.t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	f.t.Cleanup(func() { theirs.Close() })
	command.ExtraFiles = []*os.File{theirs}
	command.Args = append([]string{f.victim, "with-fuse", f.Dir, command.Path}, command.Args[1:]...)
	command.Path = f.victim
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{
			ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1,
		}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{
			ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1,
		}}
		command.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	go f.receive(ours)
}

// receive takes the descriptor of a mount, and serves it.
func (f *FUSE) receive(file *os.File) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(Timeout))
	data, rights := make([]byte, 1), make([]byte, 64)
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(data, rights)
	if err != nil {
		return
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return
	}
	unix.CloseOnExec(fds[0])
	device := os.NewFile(uintptr(fds[0]), "fuse")
	f.mu.Lock()
	f.devices = append(f.devices, device)
	f.mu.Unlock()
	f.serve(device)
}

// From include/uapi/linux/fuse.h.
const (
	fuseLookup     = 1
	fuseForget     = 2
	fuseGetattr    = 3
	fuseOpen       = 14
	fuseRead       = 15
	fuseStatfs     = 17
	fuseRelease    = 18
	fuseFlush      = 25
	fuseInit       = 26
	fuseOpendir    = 27
	fuseReaddir    = 28
	fuseReleasedir = 29
	fuseAccess     = 34
	fuseInterrupt  = 36
	fuseManyForget = 42

	fuseHeader = 40
)

// neverHeld are requests that nobody waits for, and the first one of a mount:
// SIGKILL ends a wait for that.
var neverHeld = []uint32{fuseInit, fuseForget, fuseManyForget, fuseInterrupt}

func (f *FUSE) serve(device *os.File) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := device.Read(buffer)
		if err != nil || n < fuseHeader {
			return // unmounted, or closed
		}
		request := fuseRequest{
			device: device, op: binary.NativeEndian.Uint32(buffer[4:]), unique: binary.NativeEndian.Uint64(buffer[8:]),
			node: binary.NativeEndian.Uint64(buffer[16:]), caller: int(binary.NativeEndian.Uint32(buffer[32:])),
			body: slices.Clone(buffer[fuseHeader:n]),
		}
		f.mu.Lock()
		hold := f.hangs != nil && !slices.Contains(neverHeld, request.op) && f.hangs(request.caller)
		if hold {
			f.held = append(f.held, request)
			close(f.changed)
			f.changed = make(chan struct{})
		}
		f.mu.Unlock()
		if !hold {
			f.answer(request)
		}
	}
}

// Hang takes every further request from the kernel and leaves it unanswered. A
// process that waits for one cannot even be killed. Only mounts are answered.
func (f *FUSE) Hang() { f.HangFor(func(int) bool { return true }) }

// HangFor is Hang for the threads that a function picks by their ids; the
// others are answered.
func (f *FUSE) HangFor(picks func(caller int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs = picks
}

// Answer answers all requests that wait, and every further one.
func (f *FUSE) Answer() {
	f.mu.Lock()
	held := f.held
	f.hangs, f.held = nil, nil
	f.mu.Unlock()
	for _, request := range held {
		f.answer(request)
	}
}

// AwaitHeld waits until a request waits for its answer.
func (f *FUSE) AwaitHeld() {
	f.t.Helper()
	timeout := time.After(Timeout)
	for {
		f.mu.Lock()
		held, changed := len(f.held), f.changed
		f.mu.Unlock()
		if held > 0 {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			f.t.Fatal("nobody asks the file system that hangs")
		}
	}
}

// Held is how many requests wait.
func (f *FUSE) Held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.held)
}

func (f *FUSE) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, device := range f.devices {
		device.Close() // the last descriptor: the kernel fails all requests that wait
	}
}

func (f *FUSE) answer(r fuseRequest) {
	reply := func(errno unix.Errno, words ...any) {
		var body []byte
		for _, word := range words {
			switch word := word.(type) {
			case []byte:
				body = append(body, word...)
			case uint64:
				body = binary.NativeEndian.AppendUint64(body, word)
			case uint32:
				body = binary.NativeEndian.AppendUint32(body, word)
			}
		}
		frame := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		frame = binary.NativeEndian.AppendUint32(frame, uint32(-int32(errno)))
		frame = binary.NativeEndian.AppendUint64(frame, r.unique)
		_, _ = r.device.Write(append(frame, body...)) // the caller may be gone
	}
	if r.node > uint64(len(f.nodes)) {
		reply(unix.ESTALE)
		return
	}
	var node fuseNode
	if r.node > 0 {
		node = f.nodes[r.node-1]
	}
	switch r.op {
	case fuseForget, fuseManyForget, fuseInterrupt: // are not answered
	case fuseInit:
		// No flag, 64 KiB at a time.
		reply(0, uint32(7), uint32(31), uint32(0), uint32(0), uint32(0), uint32(64<<10), uint32(1), make([]byte, 36))
	case fuseLookup:
		name := path.Join(node.path, strings.TrimRight(string(r.body), "\x00"))
		id := f.byPath[name]
		if id == 0 {
			reply(unix.ENOENT)
			return
		}
		// The kernel caches nothing, so that every access is a request.
		reply(0, id, uint64(0), uint64(0), uint64(0), uint32(0), uint32(0), f.attributes(id))
	case fuseGetattr:
		reply(0, uint64(0), uint32(0), uint32(0), f.attributes(r.node))
	case fuseOpen, fuseOpendir:
		reply(0, uint64(0), uint32(0), uint32(0))
	case fuseRead:
		reply(0, part([]byte(node.content), r.body))
	case fuseReaddir:
		reply(0, part(f.entries(node), r.body))
	case fuseStatfs:
		reply(0, make([]byte, 80))
	case fuseRelease, fuseReleasedir, fuseFlush, fuseAccess:
		reply(0)
	default:
		reply(unix.ENOSYS)
	}
}

// part is the range that a read asks for.
func part(content, body []byte) []byte {
	offset, size := binary.NativeEndian.Uint64(body[8:]), binary.NativeEndian.Uint32(body[16:])
	offset = min(offset, uint64(len(content)))
	return content[offset:min(offset+uint64(size), uint64(len(content)))]
}

func (f *FUSE) attributes(id uint64) []byte {
	node := f.nodes[id-1]
	mode, links := uint32(unix.S_IFREG|0o644), uint32(1)
	switch {
	case node.dir && f.Private:
		mode, links = unix.S_IFDIR|0o700, 2
	case node.dir:
		mode, links = unix.S_IFDIR|0o755, 2
	}
	var out []byte
	for _, word := range []uint64{id, uint64(len(node.content)), 0, 1, 1, 1} { // inode, size, blocks, times
		out = binary.NativeEndian.AppendUint64(out, word)
	}
	for _, word := range []uint32{0, 0, 0, mode, links, uint32(os.Getuid()), uint32(os.Getgid()), 0, 4096, 0} {
		out = binary.NativeEndian.AppendUint32(out, word)
	}
	return out
}

// entries are those of a directory. Each holds the offset of the next one, from
// which a later read continues.
func (f *FUSE) entries(dir fuseNode) []byte {
	var out []byte
	for i, node := range f.nodes {
		if node.path == "/" || path.Dir(node.path) != dir.path {
			continue
		}
		name, kind := path.Base(node.path), uint32(unix.DT_REG)
		if node.dir {
			kind = unix.DT_DIR
		}
		padded := (24 + len(name) + 7) &^ 7
		out = binary.NativeEndian.AppendUint64(out, uint64(i+1))
		out = binary.NativeEndian.AppendUint64(out, uint64(len(out)-8+padded))
		out = binary.NativeEndian.AppendUint32(out, uint32(len(name)))
		out = binary.NativeEndian.AppendUint32(out, kind)
		out = append(out, name...)
		out = append(out, make([]byte, padded-24-len(name))...)
	}
	return out
}
