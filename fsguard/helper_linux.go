package fsguard

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// StartHelper starts this program again with a call of RunHelper, with these
// files as its descriptors from 3 on. It must also wait for its end.
type StartHelper func(files []*os.File) error

// SetHelper says how to start the helper, which happens at its first call.
// Without it, threads of this process wait.
func SetHelper(start StartHelper) {
	helper.mu.Lock()
	defer helper.mu.Unlock()
	helper.start = start
}

var helper helpers

// helpers are the current helper and its predecessors.
type helpers struct {
	mu      sync.Mutex // guards the fields below
	start   StartHelper
	current *running
}

// running is one helper.
type running struct {
	requests *net.UnixConn

	mu      sync.Mutex // guards the fields below
	last    uint64
	pending map[uint64]pending
	gone    bool
}

type pending struct {
	request
	answers chan answer
}

// transport has the helper make a call, or a thread of this process if no
// helper can be started.
func transport(q request) <-chan answer {
	for range 2 { // one that has died meanwhile is replaced
		r := helper.get()
		if r == nil {
			break
		}
		if answers, err := r.send(q); err == nil {
			return answers
		}
	}
	return inProcess(q)
}

func (h *helpers) get() *running {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && !h.current.ended() {
		return h.current
	}
	h.current = nil
	if h.start == nil {
		return nil
	}
	// It needs a goroutine of its own: the caller's thread may have another
	// identity.
	var starting sync.WaitGroup
	starting.Go(func() {
		if r, err := startHelper(h.start); err == nil {
			h.current = r
		}
	})
	starting.Wait()
	return h.current
}

// Requests are sent over a socket with message boundaries, because a descriptor
// may come with one. Answers may be long, and are sent over a pipe.
func startHelper(start StartHelper) (*running, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "requests"), os.NewFile(uintptr(pair[1]), "requests")
	defer ours.Close()
	defer theirs.Close()
	answers, answerEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answerEnd.Close()
	conn, err := net.FileConn(ours)
	if err == nil {
		err = start([]*os.File{theirs, answerEnd})
	}
	if err != nil {
		answers.Close()
		return nil, err
	}
	r := &running{requests: conn.(*net.UnixConn), pending: map[uint64]pending{}}
	go r.listen(answers)
	return r, nil
}

func (r *running) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

func (r *running) send(q request) (<-chan answer, error) {
	p := pending{request: q, answers: make(chan answer, 1)}
	r.mu.Lock()
	if r.gone {
		r.mu.Unlock()
		return nil, io.EOF
	}
	r.last++
	q.ID = r.last
	r.pending[q.ID] = p
	r.mu.Unlock()
	err := q.detach()
	var message, rights []byte
	if err == nil {
		message, err = json.Marshal(q)
	}
	if q.Op == opWatch || q.InFile {
		rights = unix.UnixRights(q.passed)
	}
	gone := false
	if err == nil {
		_, _, err = r.requests.WriteMsgUnix(message, rights, nil)
		gone = errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
	}
	if q.InFile {
		unix.Close(q.passed)
	}
	if err != nil {
		r.mu.Lock()
		delete(r.pending, q.ID)
		r.gone = r.gone || gone // also if the end of its answers has not come yet
		r.mu.Unlock()
		return nil, err
	}
	return p.answers, nil
}

// mostData is how much data goes into a message, besides the longest path. JSON
// makes it a third longer.
const mostData = 40 << 10

// detach puts data that is too long for a message into a file in memory.
func (q *request) detach() error {
	if len(q.Data) <= mostData {
		return nil
	}
	fd, err := unix.MemfdCreate("data", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	q.passed, q.InFile = fd, true
	for rest, done := q.Data, 0; len(rest) > 0; rest = rest[done:] {
		if done, err = unix.Pwrite(fd, rest, int64(len(q.Data)-len(rest))); err != nil {
			return err
		}
	}
	q.Data = nil
	return nil
}

// attach takes the data out of the file in memory.
func (q *request) attach() error {
	if !q.InFile {
		return nil
	}
	var stat unix.Stat_t
	if err := unix.Fstat(q.passed, &stat); err != nil {
		return err
	}
	q.Data = make([]byte, stat.Size)
	for read := 0; read < len(q.Data); {
		n, err := unix.Pread(q.passed, q.Data[read:], int64(read))
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		read += n
	}
	return nil
}

// listen passes answers to the goroutines that wait for them. If the helper
// dies, its unanswered calls fail.
func (r *running) listen(answers *os.File) {
	defer answers.Close()
	defer r.requests.Close()
	decoder := json.NewDecoder(answers)
	for {
		var a answer
		err := decoder.Decode(&a)
		r.mu.Lock()
		if err != nil {
			r.gone = true
			for _, p := range r.pending {
				p.answers <- answerOf(result{}, errors.New("the helper process for slow file systems has died"))
			}
			r.pending = nil
			r.mu.Unlock()
			return
		}
		p, known := r.pending[a.ID]
		delete(r.pending, a.ID)
		r.mu.Unlock()
		if known {
			p.answers <- a
		}
	}
}

// RunHelper is the helper's whole life: it makes calls until the end of the
// stream. Each call has its own thread, which may wait forever.
func RunHelper() int {
	file := os.NewFile(3, "requests")
	conn, err := net.FileConn(file)
	file.Close()
	requests, ok := conn.(*net.UnixConn)
	if err != nil || !ok {
		return 1
	}
	unix.CloseOnExec(4)
	answerEnd := os.NewFile(4, "answers")
	var mu sync.Mutex // held while an answer is written
	encoder := json.NewEncoder(answerEnd)
	buffer, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, passed, _, _, err := requests.ReadMsgUnix(buffer, rights)
		if err != nil || n == 0 {
			return 0
		}
		var q request
		if json.Unmarshal(buffer[:n], &q) != nil {
			return 1
		}
		q.passed = taken(rights[:passed])
		go func() {
			var a answer
			if err := q.attach(); err != nil {
				a = answerOf(result{}, err)
			} else {
				a = perform(q)
			}
			a.ID = q.ID
			if q.passed >= 0 {
				unix.Close(q.passed)
			}
			mu.Lock()
			defer mu.Unlock()
			if err := encoder.Encode(a); err != nil {
				// A goroutine waits for an answer, whatever it is. If none
				// listens any more, none sends requests either.
				failed := answerOf(result{}, err)
				failed.ID = q.ID
				_ = encoder.Encode(failed)
			}
		}()
	}
}

// taken is the descriptor that came with a request; -1 if there was none.
func taken(rights []byte) int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1
	}
	unix.CloseOnExec(fds[0])
	return fds[0]
}

// performHere makes the calls that exist only on Linux.
func performHere(q request) (int, error) {
	switch q.Op {
	case opPlain:
		return 0, openPlain(string(q.Path))
	case opWatch:
		return unix.InotifyAddWatch(q.passed, string(q.Path), q.Mask)
	}
	return 0, unix.ENOSYS
}

// Plain returns nil if the path exists and has no symlink at all, its last name
// included; ELOOP if it has one.
func Plain(path string) error {
	remote, _, err := follow(path)
	if err != nil {
		return err
	}
	if remote == nil {
		return openPlain(path)
	}
	_, err = remote.call(request{Op: opPlain, Path: text(path)})
	return err
}

func openPlain(path string) error {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path,
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err == nil {
			unix.Close(fd)
		}
		if !errors.Is(err, unix.EAGAIN) { // a concurrent rename elsewhere (openat2(2))
			return err
		}
	}
}

// AddWatch is inotify_add_watch(2) on an inotify instance.
func AddWatch(fd int, path string, mask uint32) (int, error) {
	remote, at, err := follow(path)
	if err != nil {
		return -1, err
	}
	if remote == nil {
		return unix.InotifyAddWatch(fd, path, mask)
	}
	if mask&unix.IN_DONT_FOLLOW != 0 && at != path {
		if at, err = real(path, false); err != nil {
			return -1, err
		}
	}
	done, err := remote.call(request{Op: opWatch, Path: text(at), Mask: mask, passed: fd})
	return done.Number, err
}
