//go:build unix

package owner

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Process is what /proc says of a process.
type Process struct {
	PID    int
	Birth  uint64 // in clock ticks since boot: tells it from another with the same number
	Parent int
	User   int
	// Leads is true of the leader of a POSIX session that has a terminal.
	Leads bool
	Argv  []string
}

// String names the process for people, such as "claude (4711)".
func (p Process) String() string { return fmt.Sprintf("%s (%d)", p.name(), p.PID) }

// name is the name of its program, as it was called.
func (p Process) name() string {
	words := p.words()
	if len(words) == 0 {
		return "process"
	}
	return strings.TrimSuffix(filepath.Base(strings.TrimPrefix(words[0], "-")), ":")
}

// words are its arguments. A title that a process has given itself, such as "npm
// exec tool", is one argument with blanks.
func (p Process) words() []string {
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return nil
	}
	if title := p.Argv[0]; !strings.HasPrefix(title, "/") && !strings.HasPrefix(title, ".") {
		if words := strings.Fields(title); len(words) > 1 {
			return append(words, p.Argv[1:]...)
		}
	}
	return p.Argv
}

// Variable names an ancestor by its process id, or is Own.
const Variable = "SANDBOX_GROUP_OWNER"

// Own in Variable asks for a sandbox of its own for each command.
const Own = "own"

// ErrNone means that no process is known to be the agent of a command.
var ErrNone = errors.New("no process is known to be its agent")

// mostWalked bounds the ancestors that are looked at.
const mostWalked = 64

// Processes is how processes are looked up.
type Processes struct {
	Look func(pid int) (Process, error)
	// Environ returns the variables with which a process has executed its program.
	Environ func(pid int) ([]string, error)
}

// Current finds the owner of this process; see Of. The error does not wrap ErrNone
// if it is not certain that process ids are those of this process's namespace.
func Current(named string) (Process, error) {
	if _, err := Namespace(); err != nil {
		return Process{}, err
	}
	return Of(os.Getpid(), named, Processes{Look: Look, Environ: environ})
}

// Of finds the owner of a process: the nearest ancestor that does not exist for
// this one command alone. named is what Variable says. The error wraps ErrNone if
// there is none.
func Of(pid int, named string, of Processes) (Process, error) {
	self, err := of.Look(pid)
	if err != nil {
		return Process{}, err
	}
	found, err := walk(self, of.Look)
	if named != "" {
		found, err = of.chosen(self, found, named)
	}
	if err != nil {
		return Process{}, err
	}
	// Nothing says in which Landlock domain a process is. But the kernel lets a
	// process look at another one only if that is in its domain or below.
	if _, err := of.Environ(found.PID); err != nil {
		return Process{}, fmt.Errorf("%w: the command may be more confined than %s: %w", ErrNone, found, err)
	}
	return found, nil
}

// walk finds the owner without the variable.
func walk(self Process, find func(pid int) (Process, error)) (_ Process, err error) {
	at := self
	var shell *Process // the outermost one with -c that was walked over
	for range mostWalked {
		if at, err = above(self, at, find); err != nil {
			return Process{}, err
		}
		if at.serves() {
			return Process{}, fmt.Errorf("%w: %s starts commands for several agents", ErrNone, at)
		}
		how := at.passes(find)
		switch {
		case how == not && shell != nil && at.isShell():
			return *shell, nil // it may be an agent that the user or a script has started
		case how == not:
			return at, nil
		case how == asShell:
			outer := at
			shell = &outer
		}
	}
	return Process{}, ErrNone
}

// chosen finds the ancestor that the variable names. found is the owner without it.
// A session can write the variable to a file that an agent loads while it runs. So
// beyond found, each process up to the named one must have been started with it:
// then the named one has set it, or what has started that. What serves several
// agents must have been started with it, too. The first process of a terminal is
// the limit: what that has started may not know of each other.
func (of Processes) chosen(self, found Process, named string) (Process, error) {
	pid, err := strconv.Atoi(named)
	if err != nil || pid <= 1 {
		return Process{}, fmt.Errorf("%s: expected a process id or %q, found %q", Variable, Own, named)
	}
	at, beyond := self, false
	for range mostWalked {
		if beyond && !of.startedWith(at, named) {
			return Process{}, errLate(pid, at)
		}
		if at, err = above(self, at, of.Look); err != nil { // not ErrNone: the user has named one
			return Process{}, fmt.Errorf("%s: process %d cannot be the owner: %s", Variable, pid, err.Error())
		}
		switch {
		case at.serves() && !of.startedWith(at, named):
			return Process{}, errLate(pid, at)
		case at.PID == pid:
			return at, nil
		case at.Leads:
			return Process{}, fmt.Errorf("%s: process %d is no ancestor in this terminal", Variable, pid)
		}
		beyond = beyond || at.PID == found.PID
	}
	return Process{}, fmt.Errorf("%s: process %d is no ancestor", Variable, pid)
}

func errLate(pid int, at Process) error {
	return fmt.Errorf("%s=%d: %s was not started with that: set it where that is started", Variable, pid, at)
}

// ErrLate means that a variable is not what a process was started with.
var ErrLate = errors.New("a variable was set too late")

// StartedWith returns nil if the process has executed its program with variables
// as they are now, by a function like os.LookupEnv. Otherwise the error wraps
// ErrLate, or says why that is not known. A session can write a variable to a file
// that an agent loads while it runs, but set none with which the agent was started.
func (p Process) StartedWith(names []string, now func(name string) (string, bool)) error {
	env, err := environ(p.PID)
	if err != nil {
		return err
	}
	return startedWith(p, env, names, now)
}

func startedWith(p Process, env, names []string, now func(name string) (string, bool)) error {
	for _, name := range names {
		value, set := now(name)
		i := slices.IndexFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		if set != (i >= 0) || set && env[i] != name+"="+value {
			return lateError{p, name}
		}
	}
	return nil
}

// lateError is ErrLate about a variable.
type lateError struct {
	process Process
	name    string
}

func (e lateError) Error() string {
	return fmt.Sprintf("%s is not what %s was started with: set it where that is started", e.name, e.process)
}
func (lateError) Unwrap() error { return ErrLate }

// startedWith reports whether a process has executed its program with the variable.
func (of Processes) startedWith(at Process, named string) bool {
	env, err := of.Environ(at.PID)
	return err == nil && slices.Contains(env, Variable+"="+named)
}

// above is the parent of a process, if that can own a command of self.
func above(self, at Process, find func(pid int) (Process, error)) (Process, error) {
	parent, err := find(at.Parent)
	switch {
	case err != nil:
		return Process{}, fmt.Errorf("%w: process %d: %w", ErrNone, at.Parent, err)
	case at.Parent <= 1 || parent.adopts():
		return Process{}, fmt.Errorf("%w: process %d adopts those whose parent has ended", ErrNone, at.Parent)
	case parent.User != self.User:
		return Process{}, fmt.Errorf("%w: process %d is another user's", ErrNone, at.Parent)
	}
	return parent, nil
}

// IsAbove returns nil if the process is an ancestor of another.
func (p Process) IsAbove(pid int, find func(pid int) (Process, error)) error {
	for range mostWalked {
		at, err := find(pid)
		if err != nil {
			return err
		}
		if at.PID == p.PID && at.Birth == p.Birth {
			return nil
		}
		if pid = at.Parent; pid <= 1 {
			break
		}
	}
	return fmt.Errorf("it belongs to %s, which has not started the process", p)
}

// passing is how a process is walked over.
type passing int

const (
	not     passing = iota
	asOther         // a wrapper, or a shell's copy of itself
	asShell         // a shell with -c
)

// passes says whether a process may be there for one command alone: a wrapper, a
// shell with -c, or a shell's copy of itself, as for a part of a pipeline. The
// leader of a terminal's session is not, and neither is a script, which may start
// many commands.
func (p Process) passes(find func(pid int) (Process, error)) passing {
	switch {
	case p.Leads:
		return not
	case p.wraps():
		return asOther
	case !p.isShell():
		return not
	}
	// A copy may be of a shell with -c, too.
	if parent, err := find(p.Parent); err == nil && slices.Equal(parent.Argv, p.Argv) {
		return asOther
	}
	if runsText(p.name(), p.words()[1:]) {
		return asShell
	}
	return not
}

var errForeign = errors.New("/proc shows the processes of another namespace: mount the one of this namespace")

// Namespace identifies the process id namespace in which Look finds processes, on
// this boot of this machine: the kernel of each machine gives the first one the
// same number (PROC_PID_INIT_INO). The error means that it is not known to be that
// of this process.
func Namespace() (uint64, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return 0, err
	}
	if self != strconv.Itoa(os.Getpid()) {
		return 0, errForeign
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	if !isOnly(string(status), self) {
		return 0, errForeign
	}
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, "pid:["), "]"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read /proc/self/ns/pid: %w", err)
	}
	boot, err := proc.BootID()
	if err != nil {
		return 0, err
	}
	return ofBoot(number, boot), nil
}

// ofBoot makes the number of a namespace one that no other boot or machine has.
func ofBoot(number uint64, boot string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", number, boot))
	return binary.BigEndian.Uint64(sum[:])
}

// isOnly reports whether a process has no id but one, by /proc/PID/status. It has an
// id for each namespace from that of /proc down to its own, and two may be equal.
func isOnly(status, id string) bool {
	for line := range strings.Lines(status) {
		if ids, found := strings.CutPrefix(line, "NSpid:"); found {
			return slices.Equal(strings.Fields(ids), []string{id})
		}
	}
	return true // a kernel without such namespaces
}

// Lives reports whether a process that had started at a time may still be there. It
// has ended only if no process has its id, or one with another start time.
func Lives(pid int, birth uint64, find func(pid int) (Process, error)) bool {
	at, err := find(pid)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH)
	}
	return at.Birth == birth
}

// Look looks a process up in /proc.
func Look(pid int) (Process, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Process{}, err
	}
	p, err := parse(string(stat))
	if err != nil {
		return Process{}, fmt.Errorf("read %s/stat: %w", dir, err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return Process{}, err
	}
	if p.User, err = userIn(string(status)); err != nil {
		return Process{}, fmt.Errorf("read %s/status: %w", dir, err)
	}
	argv, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return Process{}, err
	}
	p.Argv = strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")
	return p, nil
}

// environ reads the variables that a process has got from /proc. The kernel refuses
// that like ptrace(2).
func environ(pid int) ([]string, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil, err
	}
	return strings.Split(string(content), "\x00"), nil
}

// parse reads /proc/PID/stat; see proc_pid_stat(5). The command's name in field 2
// may itself hold blanks and parentheses.
func parse(stat string) (Process, error) {
	number, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // from field 3 on
	if len(fields) < 20 {
		return Process{}, errors.New("unexpected content")
	}
	var failures []error
	read := func(field string) int {
		n, err := strconv.Atoi(field)
		failures = append(failures, err)
		return n
	}
	p := Process{PID: read(number), Parent: read(fields[1])}
	p.Leads = read(fields[3]) == p.PID && read(fields[4]) != 0
	birth, err := strconv.ParseUint(fields[19], 10, 64)
	p.Birth = birth
	return p, errors.Join(append(failures, err)...)
}

// userIn reads the real user id of /proc/PID/status.
func userIn(status string) (int, error) {
	for line := range strings.Lines(status) {
		if ids, found := strings.CutPrefix(line, "Uid:"); found {
			if fields := strings.Fields(ids); len(fields) > 0 {
				return strconv.Atoi(fields[0])
			}
		}
	}
	return 0, errors.New("unexpected content")
}
