package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Log is Landlock's part of the kernel's audit log. Its methods may be called
// from several goroutines. It is never closed: a process needs one, and reading
// it costs nothing while Landlock denies nothing.
type Log struct {
	socket *os.File
	canary canary

	mu        sync.Mutex // guards the fields below
	collector collector
	watches   map[int]*Watch    // by the process that confines itself
	domains   map[uint64]*Watch // the domains that have denied something
	broken    bool              // no more records will arrive
}

// Watch is one session's part of the log.
type Watch struct {
	log    *Log
	pid    int
	denied func(Denial)
	lost   func()
}

// Open starts to read the log. The error says why it cannot be read; ErrOff
// says that nothing would be in it.
func Open() (*Log, error) {
	if err := enabled(); err != nil {
		return nil, err
	}
	fd, err := subscribe()
	if err != nil {
		return nil, err
	}
	l := &Log{
		socket: os.NewFile(uintptr(fd), "audit log"), watches: map[int]*Watch{}, domains: map[uint64]*Watch{},
		collector: collector{pending: map[uint64]*pendingCall{}},
	}
	go l.read()
	if err := l.canary.start(); err != nil {
		l.socket.Close()
		return nil, err
	}
	if err := l.awaitCanary(); err != nil {
		l.socket.Close()
		l.canary.stop()
		return nil, err
	}
	return l, nil
}

// readLog is the multicast group of the log (AUDIT_NLGRP_READLOG,
// linux/audit.h).
const readLog = 1

// bufferSize holds the records of some thousand denials, for when this process
// is delayed.
const bufferSize = 4 << 20

func subscribe() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_AUDIT)
	if err != nil {
		return -1, fmt.Errorf("open the audit log: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferSize) != nil {
		// Without CAP_NET_ADMIN the system's limit applies.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bufferSize)
	}
	filter := wanted()
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (readLog - 1)})
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("read the audit log (needs CAP_AUDIT_READ): %w", err)
	}
	return fd, nil
}

// wanted is a socket filter that drops all other records, so that a busy log
// does not push out Landlock's. A filter loads numbers in network byte order,
// and the kernel writes this one in the machine's.
func wanted() []unix.SockFilter {
	kinds := []uint16{kindSyscall, kindEnd, kindAccess, kindDomain}
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 4}} // nlmsg_type
	for i, kind := range kinds {
		swapped := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, kind))
		program = append(program, unix.SockFilter{
			Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(swapped),
			Jt: uint8(len(kinds) - i),
		})
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1})
}

// read processes the log until reading fails.
func (l *Log) read() {
	defer l.fail()
	raw, err := l.socket.SyscallConn()
	if err != nil {
		return
	}
	buffer := make([]byte, 16<<10) // MAX_AUDIT_MESSAGE_LENGTH is 8970
	for {
		var n int
		var from unix.Sockaddr
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), buffer, 0)
			return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.take(nil)
		case err != nil:
			return
		case errors.Is(failed, unix.ENOBUFS):
			l.reportLoss()
		case failed != nil:
			return
		case sentByKernel(from):
			l.take(buffer[:n])
		}
	}
}

func sentByKernel(from unix.Sockaddr) bool {
	address, is := from.(*unix.SockaddrNetlink)
	return is && address.Pid == 0
}

// take processes one message; nil only checks for timeouts.
func (l *Log) take(message []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(message) > unix.SizeofNlMsghdr { // each message has one record; its header's length is not always right
		if r, ok := parse(binary.NativeEndian.Uint16(message[4:]), string(message[unix.SizeofNlMsghdr:])); ok {
			l.record(r, now)
		}
	}
	l.report(l.collector.overdue(now, false))
	var deadline time.Time
	if len(l.collector.order) > 0 {
		deadline = now.Add(timeout)
	}
	_ = l.socket.SetReadDeadline(deadline) // fails only if the log is closed
}

// record processes one record. l.mu is held.
func (l *Log) record(r record, now time.Time) {
	switch r.kind {
	case kindAccess:
		if denial, ok := denialOf(r); ok && l.canary.seenFrom(denial.domain) {
			return
		}
		l.report(l.collector.access(r, now))
	case kindSyscall:
		l.collector.call(r)
	case kindEnd:
		l.report(l.collector.end(r.serial))
	case kindDomain:
		domain, pid, ok := confined(r)
		if !ok {
			return
		}
		if pid == os.Getpid() {
			l.canary.setDomain(domain)
		} else if watch := l.watches[pid]; watch != nil {
			l.domains[domain] = watch
		}
	}
}

// report passes denials on to their watches. l.mu is held.
func (l *Log) report(list []Denial) {
	for _, denial := range list {
		if watch := l.domains[denial.domain]; watch != nil {
			watch.denied(denial)
		}
	}
}

// reportLoss tells every watch that the kernel has dropped records: nobody
// knows whose.
func (l *Log) reportLoss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, watch := range l.watches {
		watch.lost()
	}
}

func (l *Log) fail() {
	l.reportLoss()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	l.socket.Close()
}

// Err returns why the log cannot be read any more, or why nothing is logged
// now, or nil.
func (l *Log) Err() error {
	if l.ended() {
		return errors.New("the audit log was closed")
	}
	return enabled()
}

func (l *Log) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Watch reports the denials of the domains that a process creates from now on,
// for itself and its descendants. Only one watch at a time may exist for a pid.
// denied is called for each denial; lost, if some may be missing. Neither may
// block or call the log.
func (l *Log) Watch(pid int, denied func(Denial), lost func()) *Watch {
	w := &Watch{log: l, pid: pid, denied: denied, lost: lost}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches[pid] = w
	return w
}

// Close waits briefly until the earlier denials have arrived, and ends the
// watch. Nothing is reported after it. Closing twice is harmless.
func (w *Watch) Close() {
	l := w.log
	l.mu.Lock()
	watched := l.watches[w.pid] == w
	l.mu.Unlock()
	if !watched {
		return
	}
	late := !l.ended() && l.awaitCanary() != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if late {
		w.lost()
	}
	l.report(l.collector.overdue(time.Now(), true))
	if l.watches[w.pid] == w {
		delete(l.watches, w.pid)
	}
	for domain, watch := range l.domains {
		if watch == w {
			delete(l.domains, domain)
		}
	}
}
