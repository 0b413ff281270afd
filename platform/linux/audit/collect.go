package audit

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Denial is one that Landlock has logged.
type Denial struct {
	// Blockers are the rights that were missing, as the kernel names them:
	// "fs.read_file", "scope.signal" …
	Blockers []string
	// Path is that of the file or directory, from the root of who was refused;
	// an abstract socket's begins with a NUL. Empty where there is none.
	Path string
	// Peer is the process that was to be signalled, or 0.
	Peer int
	// PID and Process are who was refused, as the host numbers it and as it
	// calls itself. PID is 0 where the kernel does not say: where a rule of the
	// machine ("never,task") keeps it from following system calls.
	PID     int
	Process string
	// Call is which system call it was; its Arch is 0 where PID is.
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
	// maxPending bounds the system calls whose records have not all come.
	maxPending = 64
	// maxPerCall bounds the refusals of one call: who signals everybody is
	// refused once for each process.
	maxPerCall = 8
	// timeout is how long the rest of a call's records is waited for. They come
	// at its end, and a refused call ends at once.
	timeout = 100 * time.Millisecond
)

// collector puts together what belongs to one system call.
type collector struct {
	pending map[uint64]*pendingCall
	order   []uint64 // the keys of pending, the oldest first
}

type pendingCall struct {
	denials []Denial
	since   time.Time
}

// access notes a refusal, and returns those that have waited for too long
// because of it.
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

// call notes which call the refusals are of.
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

// end gives the refusals of a call, of which no more is to come.
func (g *collector) end(serial uint64) []Denial {
	waiting := g.pending[serial]
	if waiting == nil {
		return nil
	}
	delete(g.pending, serial)
	g.order = slices.DeleteFunc(g.order, func(other uint64) bool { return other == serial })
	return waiting.denials
}

// overdue gives those whose call was not told in time, or all.
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

// confined reads who has confined itself by a domain; false where the record
// does not say it.
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
