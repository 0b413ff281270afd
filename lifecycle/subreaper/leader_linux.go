package subreaper

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaderProcess is a leader whose parent is a subreaper.
type leaderProcess struct {
	pid     int
	send    func(orderMessage) error
	changed chan struct{} // holds a token after every change

	mu      sync.Mutex          // guards the fields below
	stopped *syscall.WaitStatus // the last stop that Wait has not returned
	ended   *syscall.WaitStatus
}

func newLeaderProcess(pid int, send func(orderMessage) error) *leaderProcess {
	return &leaderProcess{pid: pid, send: send, changed: make(chan struct{}, 1)}
}

func (p *leaderProcess) PID() int { return p.pid }

func (p *leaderProcess) Wait(stops bool) (syscall.WaitStatus, error) {
	for {
		p.mu.Lock()
		stopped, ended := p.stopped, p.ended
		if stops {
			p.stopped = nil
		}
		p.mu.Unlock()
		switch {
		case ended != nil:
			return *ended, nil
		case stops && stopped != nil:
			return *stopped, nil
		}
		<-p.changed
	}
}

// Signal has the subreaper send it: only that knows whether the number is still
// the leader's.
func (p *leaderProcess) Signal(signal syscall.Signal) error {
	p.mu.Lock()
	ended := p.ended != nil
	p.mu.Unlock()
	if ended {
		return os.ErrProcessDone
	}
	return p.send(orderMessage{Signal: signal})
}

func (p *leaderProcess) stop(status syscall.WaitStatus) {
	p.mu.Lock()
	p.stopped = &status
	p.mu.Unlock()
	p.wake()
}

// end records the end. Only the first call counts.
func (p *leaderProcess) end(status syscall.WaitStatus) {
	p.mu.Lock()
	if p.ended == nil {
		p.ended = &status
	}
	p.mu.Unlock()
	p.wake()
}

func (p *leaderProcess) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// killedStatus is the status of a leader about whose end nothing else is known.
const killedStatus = syscall.WaitStatus(unix.SIGKILL)

// connection is this process's end of the socket. Several goroutines may send,
// one may receive.
type connection struct {
	file    *os.File
	decoder *json.Decoder

	mu      sync.Mutex // held while a message is written
	encoder *json.Encoder
}

// newConnection makes a socket; the second end is the subreaper's.
func newConnection() (*connection, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "subreaper's end")
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that closing ends a read
		unix.Close(fds[0])
		theirs.Close()
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fds[0]), "subreaper")
	return &connection{file: file, decoder: json.NewDecoder(file), encoder: json.NewEncoder(file)}, theirs, nil
}

func (c *connection) send(order orderMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.encoder.Encode(order)
}

func (c *connection) receive() (report reportMessage, err error) {
	err = c.decoder.Decode(&report)
	return report, err
}
