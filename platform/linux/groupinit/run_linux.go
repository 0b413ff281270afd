package groupinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

// spareThreads are started at once: the kernel may refuse more later, and Go's
// runtime would end the init, and with it the group.
const spareThreads = 3

// initProcess is the init of one group.
type initProcess struct {
	conn *connection
	null int

	mu    sync.Mutex  // held while a command is started or reaped
	calls map[int]int // the ids of running calls, by process id
}

// Run is the init's whole life. It returns once the sidecar is gone.
func Run() int {
	proc.ReserveThreads(spareThreads)
	p := &initProcess{calls: map[int]int{}}
	if err := p.settle(); err != nil {
		return 1 // the sidecar sees the end
	}
	// All signals are caught that Go's runtime can catch, so that they have no
	// effect. Ignored ones would be ignored by the commands.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals)
	go func() {
		for range signals {
			p.reap() // believe only the kernel's status, not the signal
		}
	}()
	for {
		call, files, err := p.conn.receive()
		if err != nil {
			return 0
		}
		p.start(call, files)
	}
}

// settle makes this process one that commands cannot read or trace, and that
// adopts their orphans.
func (p *initProcess) settle() (err error) {
	// Not in a directory of a session, which could not be removed then.
	if err = os.Chdir("/"); err != nil {
		return err
	}
	// The stage has done so already. A descriptor that stayed open here would be
	// in every command.
	if err = handshake.CloseOnExec(3); err != nil {
		return err
	}
	// execve(2) has made it dumpable, and no later one follows.
	if err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	if p.null, err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	p.conn = newConnection(fd)
	return unix.Dup3(p.null, 0, 0)
}

// start starts a command, and reports that or why not. It closes the files.
func (p *initProcess) start(call handshake.Call, files []int) {
	defer func() { closeAll(files) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	report := handshake.CallReport{ID: call.ID}
	master := -1
	var err error
	if call.Terminal != nil {
		files, master, err = p.terminal(files, *call.Terminal)
	}
	if err == nil {
		err = check(files)
	}
	if err == nil {
		report.Started, err = execute(call, files)
	}
	if err == nil {
		p.calls[report.Started] = call.ID
		report.Terminal = master >= 0
		_ = p.conn.send(report, master)
	} else {
		failure, is := errors.AsType[*handshake.Failure](err)
		if !is {
			failure = handshake.NewFailure(handshake.StepStreams, "", err)
		}
		report.Failure = failure
		_ = p.conn.send(report, -1)
	}
	if master >= 0 {
		unix.Close(master)
	}
}

// terminal opens a terminal for a command, and returns its streams and the
// master. A terminal comes instead of descriptors.
func (p *initProcess) terminal(files []int, asked handshake.Terminal) (streams []int, master int, err error) {
	if len(files) > 0 {
		return files, -1, errors.New("descriptors and a terminal")
	}
	master, slave, err := namespace.OpenTerminal(asked)
	if err != nil {
		return nil, -1, err
	}
	streams = []int{slave, slave, slave}
	if asked.NoInput {
		if streams[0], err = unix.FcntlInt(uintptr(p.null), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			unix.Close(slave)
			unix.Close(master)
			return nil, -1, err
		}
	}
	return streams, master, nil
}

// check refuses standard streams that would lead out of the sandbox: a directory
// leads past the mounts, and another socket than of this machine past the
// network.
func check(files []int) error {
	if len(files) != 3 {
		return fmt.Errorf("%d descriptors came instead of three", len(files))
	}
	for fd, file := range files {
		var stat unix.Stat_t
		if err := unix.Fstat(file, &stat); err != nil {
			return fmt.Errorf("inspect %s: %w", namespace.StreamNames[fd], err)
		}
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			return fmt.Errorf("%s is a directory", namespace.StreamNames[fd])
		case unix.S_IFSOCK:
			domain, err := unix.GetsockoptInt(file, unix.SOL_SOCKET, unix.SO_DOMAIN)
			if err != nil || domain != unix.AF_UNIX {
				return fmt.Errorf("%s is a network socket", namespace.StreamNames[fd])
			}
		}
	}
	return nil
}

// execute executes a call's program in a session of its own, and returns its
// process id. It is called by one goroutine, as it changes the working directory:
// only so is it known which step has failed.
func execute(call handshake.Call, files []int) (pid int, err error) {
	env := handshake.PlainStrings(call.Env)
	if err := os.Chdir(string(call.Dir)); err != nil {
		return 0, handshake.NewFailure(handshake.StepDirectory, string(call.Dir), err)
	}
	defer func() { _ = os.Chdir("/") }()
	program, err := handshake.FindProgram(string(call.Program), env, 0)
	if err != nil {
		return 0, handshake.NewFailure(handshake.StepProgram, string(call.Program), err)
	}
	attr := &syscall.ProcAttr{Env: env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, file := range files {
		attr.Files = append(attr.Files, uintptr(file))
	}
	if call.Controlling {
		attr.Sys.Setctty, attr.Sys.Ctty = true, 1
	}
	if pid, err = syscall.ForkExec(program, handshake.PlainStrings(call.Argv), attr); err != nil {
		return 0, handshake.NewFailure(handshake.StepProgram, program, err)
	}
	return pid, nil
}

// reap waits for every child that has ended, and reports the ends of commands.
func (p *initProcess) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ended []handshake.CallReport
	alone, reaped := false, false
	for {
		var status unix.WaitStatus
		// WALL also finds threads that have made this process their tracer
		// (PTRACE_TRACEME), without which their process would never end.
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if alone = err != nil; alone || pid == 0 { // ECHILD; the call has no other error
			break
		}
		reaped = true
		if id, known := p.calls[pid]; known && !status.Stopped() {
			delete(p.calls, pid)
			number := uint32(status)
			ended = append(ended, handshake.CallReport{ID: id, Ended: &number})
		}
	}
	for _, report := range ended {
		report.Alone = alone
		_ = p.conn.send(report, -1)
	}
	if alone && reaped && len(ended) == 0 {
		_ = p.conn.send(handshake.CallReport{Alone: true}, -1)
	}
}

func closeAll(files []int) {
	for i, file := range files {
		if i == 0 || file != files[i-1] { // a terminal is several streams
			unix.Close(file)
		}
	}
}

// connection is the init's end of the socket.
type connection struct {
	fd      int
	decoder *json.Decoder
	files   []int // came and were not taken yet
	read    int   // of the present message, to bound it
	sending sync.Mutex
}

func newConnection(fd int) *connection {
	c := &connection{fd: fd}
	c.decoder = json.NewDecoder(c)
	return c
}

// Read reads bytes and collects the descriptors that come with them.
func (c *connection) Read(b []byte) (int, error) {
	control := make([]byte, unix.CmsgSpace(4*4))
	for {
		n, controlled, flags, _, err := unix.Recvmsg(c.fd, b, control, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case flags&unix.MSG_CTRUNC != 0:
			return 0, errors.New("descriptors were lost")
		case n == 0:
			return 0, errors.New("the sidecar is gone")
		}
		if c.read += n; c.read > 2*handshake.MaxCall {
			return 0, errors.New("the message is too long")
		}
		messages, err := unix.ParseSocketControlMessage(control[:controlled])
		if err != nil {
			return 0, err
		}
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return 0, err
			}
			c.files = append(c.files, fds...)
		}
		return n, nil
	}
}

// receive returns the next call with its descriptors, which the caller closes.
func (c *connection) receive() (call handshake.Call, files []int, err error) {
	c.read = 0
	if err := c.decoder.Decode(&call); err != nil {
		return call, nil, err
	}
	if call.Terminal != nil {
		return call, nil, nil
	}
	if len(c.files) < 3 {
		return call, nil, errors.New("descriptors are missing")
	}
	files, c.files = c.files[:3:3], c.files[3:]
	return call, files, nil
}

// send sends a report with a descriptor, if that is not negative.
func (c *connection) send(report handshake.CallReport, file int) error {
	message, err := json.Marshal(report)
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	var rights []byte
	if file >= 0 {
		rights = unix.UnixRights(file)
	}
	for len(message) > 0 {
		n, err := unix.SendmsgN(c.fd, message, rights, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		message, rights = message[n:], nil
	}
	return nil
}
