package audit

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Denial is one denial that Landlock has logged.
type Denial struct {
	// Blockers are the missing rights, as the kernel names them:
	// "fs.read_file", "scope.signal" …
	Blockers []string
	// Path is the file or directory, from the root of the denied process. An
	// abstract socket's name begins with a NUL. It is empty if there is none.
	Path string
	// Peer is the process that was to be signalled, or 0.
	Peer int
	// PID and Process are the denied process: its id in the initial PID
	// namespace and its own name for itself. PID is 0 if the kernel does not
	// say, because an audit rule ("never,task") disables the syscall records.
	PID     int
	Process string
	// Call is the system call. Its Arch is 0 if PID is 0.
	Call Call

	domain uint64
}

// Call is a system call: its architecture (AUDIT_ARCH_*, linux/audit.h), its
// number there, and its first arguments.
type Call struct {
	Arch   uint32
	Number int
	Args   [4]uint64
}

const (
	// maxPending bounds the system calls whose records are not complete yet.
	maxPending = 64
	// maxPerCall bounds the denials of one call: kill(-1) is denied once for
	// each process.
	maxPerCall = 8
	// timeout is how long to wait for the other records of a call. They arrive
	// when it returns, and a denied call returns at once.
	timeout = 100 * time.Millisecond
)

// collector joins the records that belong to one system call.
type collector struct {
	pending map[uint64]*pendingCall
	order   []uint64 // the keys of pending, the oldest first
}

type pendingCall struct {
	denials []Denial
	since   time.Time
}

// access records a denial. It returns the oldest pending ones if there are too
// many.
func (g *collector) access(r record, now time.Time) []Denial {
	denial, ok := denialOf(r)
	if !ok {
		return nil
	}
	waiting := g.pending[r.serial]
	var pushed []Denial
	if waiting == nil {
		if len(g.order) == maxPending {
			pushed = g.end(g.order[0])
		}
		waiting = &pendingCall{since: now}
		g.pending[r.serial] = waiting
		g.order = append(g.order, r.serial)
	}
	if len(waiting.denials) < maxPerCall {
		waiting.denials = append(waiting.denials, denial)
	}
	return pushed
}

// call records which system call the denials belong to.
func (g *collector) call(r record) {
	waiting := g.pending[r.serial]
	if waiting == nil {
		return
	}
	pid, process, call, ok := callOf(r)
	if !ok {
		return
	}
	for i := range waiting.denials {
		waiting.denials[i].PID, waiting.denials[i].Process, waiting.denials[i].Call = pid, process, call
	}
}

// end returns the denials of a call that is complete.
func (g *collector) end(serial uint64) []Denial {
	waiting := g.pending[serial]
	if waiting == nil {
		return nil
	}
	delete(g.pending, serial)
	g.order = slices.DeleteFunc(g.order, func(other uint64) bool { return other == serial })
	return waiting.denials
}

// overdue returns the denials whose call has not completed in time, or all.
func (g *collector) overdue(now time.Time, all bool) (list []Denial) {
	for len(g.order) > 0 && (all || now.Sub(g.pending[g.order[0]].since) >= timeout) {
		list = append(list, g.end(g.order[0])...)
	}
	return list
}

func denialOf(r record) (denial Denial, ok bool) {
	ok = true
	for key, value := range r.each {
		var err error
		var is bool
		switch key {
		case "domain":
			denial.domain, err = strconv.ParseUint(value, 16, 64)
			ok = ok && err == nil
		case "blockers":
			denial.Blockers = strings.Split(value, ",")
		case "path":
			denial.Path, is = text(value)
			ok = ok && is
		case "opid":
			denial.Peer, err = strconv.Atoi(value)
			ok = ok && err == nil
		}
	}
	return denial, ok && denial.domain != 0 && denial.Blockers != nil
}

func callOf(r record) (pid int, process string, call Call, ok bool) {
	ok = true
	number := func(value string, base, bits int) uint64 {
		n, err := strconv.ParseUint(value, base, bits)
		ok = ok && err == nil
		return n
	}
	for key, value := range r.each {
		switch key {
		case "pid":
			pid = int(number(value, 10, 31))
		case "comm":
			process, _ = text(value)
		case "arch":
			call.Arch = uint32(number(value, 16, 32))
		case "syscall":
			call.Number = int(number(value, 10, 31))
		case "a0", "a1", "a2", "a3":
			call.Args[key[1]-'0'] = number(value, 16, 64)
		}
	}
	return pid, process, call, ok && pid != 0
}

// confined reads which process has created a domain. It returns false if the
// record does not say so.
func confined(r record) (domain uint64, pid int, ok bool) {
	allocated := false
	for key, value := range r.each {
		switch key {
		case "domain":
			domain, _ = strconv.ParseUint(value, 16, 64)
		case "status":
			allocated = value == "allocated"
		case "pid":
			pid, _ = strconv.Atoi(value)
		}
	}
	return domain, pid, allocated && domain != 0 && pid > 0
}
