//go:build unix

package platformtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Verb is what an actor tries. Each verb is the real operation, never a
// question like access(2), which does not check a sandbox.
type Verb string

// The verbs.
const (
	Read     Verb = "read"     // open Path and read it; Value is the content
	List     Verb = "list"     // list the directory Path; Value are the names, one a line
	Write    Verb = "write"    // open Path for writing, without creating it, and write
	Truncate Verb = "truncate" // empty Path by truncate(2)
	Create   Verb = "create"   // create the file Path
	MakeDir  Verb = "mkdir"    // create the directory Path
	Remove   Verb = "remove"   // remove the file Path
	Rename   Verb = "rename"   // rename Path to Target
	Link     Verb = "link"     // link Path to Target
	Symlink  Verb = "symlink"  // make Path a symlink to Target
	Execute  Verb = "execute"  // start Path, which must be an actor or do without arguments, and wait for it
	Connect  Verb = "connect"  // connect to the Unix stream socket Path; a leading "@" makes it abstract
	Kill     Verb = "kill"     // send SIGKILL to PID
	MakeNode Verb = "mknod"    // create the character device 1:3 (the null device) at Path
	Environ  Verb = "environ"  // Value is the environment, ended by zero bytes
	WorkDir  Verb = "cwd"      // Value is the working directory
	// Value lists the open descriptors above 2, one a line: "device:inode", and
	// "socket" for a socket
	Files Verb = "files"
	Await Verb = "await" // wait for the end of stdin
)

// Act is one thing to try.
type Act struct {
	Verb   Verb   `json:"verb"`
	Path   string `json:"path,omitempty"`
	Target string `json:"target,omitempty"`
	PID    int    `json:"pid,omitempty"`
}

// String renders the act for failure messages.
func (a Act) String() string {
	switch a.Verb {
	case Kill:
		return fmt.Sprintf("%s %d", a.Verb, a.PID)
	case Rename, Link, Symlink:
		return fmt.Sprintf("%s %q to %q", a.Verb, a.Path, a.Target)
	}
	return fmt.Sprintf("%s %q", a.Verb, a.Path)
}

// Result is the outcome of an act.
type Result struct {
	// Errno is the kernel's error; 0 if Error is empty or is not the kernel's.
	Errno syscall.Errno `json:"errno"`
	// Error is empty if the act succeeded.
	Error string `json:"error,omitempty"`
	// Value depends on the verb.
	Value []byte `json:"value,omitempty"`
}

// OK reports whether the act succeeded.
func (r Result) OK() bool { return r.Error == "" }

// Refused reports whether the kernel denied the act for lack of permission.
// EXDEV counts: Landlock answers it if a move would give a file more rights.
func (r Result) Refused() bool {
	return r.Errno == unix.EACCES || r.Errno == unix.EPERM || r.Errno == unix.EXDEV
}

// RefusedByMount reports whether the kernel denied the act, also because of the
// mounts that protect paths: EROFS from a read-only mount, EBUSY for moving or
// removing one.
func (r Result) RefusedByMount() bool {
	return r.Refused() || r.Errno == unix.EROFS || r.Errno == unix.EBUSY
}

// performAll is the actor's main function: its one argument contains the acts,
// and it writes the results to stdout.
func performAll(args []string) int {
	var acts []Act
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &acts) != nil {
		return 2
	}
	if acts == nil {
		return 0 // started by another actor, which prints its own results only
	}
	results := make([]Result, 0, len(acts))
	for _, act := range acts {
		results = append(results, perform(act))
	}
	if json.NewEncoder(os.Stdout).Encode(results) != nil {
		return 1
	}
	return 0
}

func perform(act Act) Result {
	value, err := try(act)
	result := Result{Value: value}
	if err != nil {
		result.Error = err.Error()
		errors.As(err, &result.Errno)
	}
	return result
}

func try(act Act) ([]byte, error) {
	switch act.Verb {
	case Read:
		return os.ReadFile(act.Path)
	case List:
		return list(act.Path)
	case Write:
		return nil, write(act.Path, os.O_WRONLY)
	case Truncate:
		return nil, os.Truncate(act.Path, 0)
	case Create:
		return nil, write(act.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	case MakeDir:
		return nil, os.Mkdir(act.Path, 0o700)
	case Remove:
		return nil, unix.Unlink(act.Path)
	case Rename:
		return nil, os.Rename(act.Path, act.Target)
	case Link:
		return nil, os.Link(act.Path, act.Target)
	case Symlink:
		return nil, os.Symlink(act.Target, act.Path)
	case Execute:
		return nil, execute(act.Path)
	case Connect:
		return nil, connect(act.Path)
	case Kill:
		return nil, unix.Kill(act.PID, unix.SIGKILL)
	case MakeNode:
		return nil, unix.Mknod(act.Path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	case Environ:
		return []byte(strings.Join(append(os.Environ(), ""), "\x00")), nil
	case WorkDir:
		dir, err := unix.Getwd() // os.Getwd would trust the variable PWD
		return []byte(dir), err
	case Files:
		return files(), nil
	case Await:
		_, err := io.Copy(io.Discard, os.Stdin)
		return nil, err
	}
	return nil, fmt.Errorf("perform %q: no such verb", act.Verb)
}

func list(path string) ([]byte, error) {
	entries, err := os.ReadDir(path)
	var names []byte
	for _, entry := range entries {
		names = append(append(names, entry.Name()...), '\n')
	}
	return names, err
}

func write(path string, flags int) error {
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString("written by the actor")
	return err
}

// execute starts a program with arguments that make an actor do nothing.
func execute(path string) error {
	// Without standard streams a Go program would open the null device, which
	// need not be granted.
	process, err := os.StartProcess(path, []string{path, actorName, "null"},
		&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	state, err := process.Wait()
	if err == nil && !state.Success() {
		return fmt.Errorf("execute %s: %s", path, state)
	}
	return err
}

func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}

// files tests each descriptor number, because the directory of descriptors
// differs between systems.
func files() []byte {
	const most = 1024
	var open []byte
	for fd := 3; fd < most; fd++ {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil {
			continue
		}
		if stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
			open = append(open, "socket\n"...)
			continue
		}
		open = fmt.Appendf(open, "%s\n", identify(&stat))
	}
	return open
}

// identify returns a file's identity, whatever path leads to it.
func identify(stat *unix.Stat_t) string { return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino) }
