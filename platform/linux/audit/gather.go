package audit

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Refusal is one that Landlock has logged.
type Refusal struct {
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
	// mostPending bounds the system calls whose records have not all come.
	mostPending = 64
	// mostOfOne bounds the refusals of one call: who signals everybody is
	// refused once for each process.
	mostOfOne = 8
	// timeout is how long the rest of a call's records is waited for. They come
	// at its end, and a refused call ends at once.
	timeout = 100 * time.Millisecond
)

// gatherer puts together what belongs to one system call.
type gatherer struct {
	pending map[uint64]*gathering
	order   []uint64 // the keys of pending, the oldest first
}

type gathering struct {
	refusals []Refusal
	since    time.Time
}

// access notes a refusal, and returns those that have waited for too long
// because of it.
func (g *gatherer) access(r record, now time.Time) []Refusal {
	refusal, ok := refusalOf(r)
	if !ok {
		return nil
	}
	there := g.pending[r.serial]
	var pushed []Refusal
	if there == nil {
		if len(g.order) == mostPending {
			pushed = g.end(g.order[0])
		}
		there = &gathering{since: now}
		g.pending[r.serial] = there
		g.order = append(g.order, r.serial)
	}
	if len(there.refusals) < mostOfOne {
		there.refusals = append(there.refusals, refusal)
	}
	return pushed
}

// call notes which call the refusals are of.
func (g *gatherer) call(r record) {
	there := g.pending[r.serial]
	if there == nil {
		return
	}
	pid, process, call, ok := callOf(r)
	if !ok {
		return
	}
	for i := range there.refusals {
		there.refusals[i].PID, there.refusals[i].Process, there.refusals[i].Call = pid, process, call
	}
}

// end gives the refusals of a call, of which no more is to come.
func (g *gatherer) end(serial uint64) []Refusal {
	there := g.pending[serial]
	if there == nil {
		return nil
	}
	delete(g.pending, serial)
	g.order = slices.DeleteFunc(g.order, func(other uint64) bool { return other == serial })
	return there.refusals
}

// overdue gives those whose call was not told in time, or all.
func (g *gatherer) overdue(now time.Time, all bool) (list []Refusal) {
	for len(g.order) > 0 && (all || now.Sub(g.pending[g.order[0]].since) >= timeout) {
		list = append(list, g.end(g.order[0])...)
	}
	return list
}

func refusalOf(r record) (refusal Refusal, ok bool) {
	ok = true
	for key, value := range r.each {
		var err error
		var is bool
		switch key {
		case "domain":
			refusal.domain, err = strconv.ParseUint(value, 16, 64)
			ok = ok && err == nil
		case "blockers":
			refusal.Blockers = strings.Split(value, ",")
		case "path":
			refusal.Path, is = text(value)
			ok = ok && is
		case "opid":
			refusal.Peer, err = strconv.Atoi(value)
			ok = ok && err == nil
		}
	}
	return refusal, ok && refusal.domain != 0 && refusal.Blockers != nil
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
