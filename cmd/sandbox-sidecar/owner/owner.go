package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return "process"
	}
	return filepath.Base(strings.TrimPrefix(p.Argv[0], "-"))
}

// Variable names an ancestor by its process id, or is Own.
const Variable = "SANDBOX_GROUP_OWNER"

// Own in Variable asks for a sandbox of its own for each command.
const Own = "own"

// ErrNone means that a command belongs to no process that will end.
var ErrNone = errors.New("it belongs to no process that will end")

// mostWalked bounds the ancestors that are looked at.
const mostWalked = 64

// Of finds the owner of a process: the nearest ancestor that does not exist for
// this one command alone. named is what Variable says; find looks a process up.
// The error wraps ErrNone if there is none.
func Of(pid int, named string, find func(pid int) (Process, error)) (Process, error) {
	self, err := find(pid)
	if err != nil {
		return Process{}, err
	}
	if named != "" {
		return chosen(self, named, find)
	}
	at := self
	var shell *Process // the outermost one with -c that was walked over
	for range mostWalked {
		if at, err = above(self, at, find); err != nil {
			return Process{}, err
		}
		how := at.passes(find)
		switch {
		case how == not && shell != nil && (at.Leads || at.isShell()):
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

// chosen finds the ancestor that the variable names. It is not beyond the first
// process of a terminal, which others below it know nothing of each other.
func chosen(self Process, named string, find func(pid int) (Process, error)) (Process, error) {
	pid, err := strconv.Atoi(named)
	if err != nil || pid <= 1 {
		return Process{}, fmt.Errorf("%s: expected a process id or %q, found %q", Variable, Own, named)
	}
	at := self
	for range mostWalked {
		if at, err = above(self, at, find); err != nil {
			return Process{}, fmt.Errorf("%s: process %d is no ancestor that can be an owner: %w", Variable, pid, err)
		}
		switch {
		case at.PID == pid:
			return at, nil
		case at.Leads:
			return Process{}, fmt.Errorf("%s: process %d is no ancestor in this terminal", Variable, pid)
		}
	}
	return Process{}, fmt.Errorf("%s: process %d is no ancestor", Variable, pid)
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

// adopters are the programs that become the parent of processes whose own parent
// has ended (PR_SET_CHILD_SUBREAPER), and that run as long as their user is there.
// The kernel does not tell who has asked for that.
var adopters = []string{"systemd", "init"}

func (p Process) adopts() bool { return slices.Contains(adopters, p.name()) }

// wrappers run one command, and end with it.
var wrappers = []string{
	"timeout", "time", "env", "nice", "ionice", "nohup", "stdbuf", "setsid", "strace", "ltrace", "flock", "script",
	"bwrap", "uv", "direnv",
}

// shells are programs that run what follows -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "busybox"}

func (p Process) isShell() bool { return slices.Contains(shells, p.name()) }

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
	case slices.Contains(wrappers, p.name()):
		return asOther
	case !p.isShell():
		return not
	}
	// A copy may be of a shell with -c, too.
	if parent, err := find(p.Parent); err == nil && slices.Equal(parent.Argv, p.Argv) {
		return asOther
	}
	if runsText(p.Argv[1:]) {
		return asShell
	}
	return not
}

// runsText reports whether a shell's arguments have -c before a script's name.
func runsText(args []string) bool {
	for _, arg := range args {
		switch {
		case arg == "--command" || strings.HasPrefix(arg, "--command="):
			return true
		case arg == "sh" || arg == "ash": // of busybox
		case len(arg) < 2 || arg[0] != '-':
			return false
		case arg[1] != '-' && strings.Contains(arg, "c"):
			return true
		}
	}
	return false
}

// Namespace is the number of the process id namespace in which Look finds
// processes. The error means that it is not known to be that of this process.
func Namespace() (uint64, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return 0, err
	}
	if self != strconv.Itoa(os.Getpid()) {
		return 0, errors.New("/proc shows the processes of another namespace: mount the one of this namespace")
	}
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, "pid:["), "]"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read /proc/self/ns/pid: %w", err)
	}
	return number, nil
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
