package spawn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Request describes a session.
type Request struct {
	// ID names the session. It must be unique and fit for a file name.
	ID string
	// Policy is what the session may do.
	Policy policy.Policy
	// PolicyID returns the policy's ID, which takes long to compute, for a caller
	// that needs it too; nil: Policy.ID.
	PolicyID func() string
	// Program is a path, or a name that is looked up in PATH.
	Program string
	// Group is the name of the group that the session joins; "" for none. Its
	// temporary files are those of the group in that project.
	Group string
	// Argv are the arguments. The first is the program's own name.
	Argv []string
	// Env holds "NAME=value" entries, before the policy's filter. The last entry
	// of each name counts.
	Env []string
	// Dir is the working directory, absolute.
	Dir string
	// Size is the size of the terminal; zero or less means 80 x 24.
	Size Size
	// NoInput gives the leader /dev/null as stdin instead of the terminal.
	NoInput bool
	// Pipe gives the leader a pipe as standard output and standard errors instead
	// of a terminal. It implies NoInput.
	Pipe bool
	// Pipes are further pipes of a session with Pipe, whose standard input is
	// /dev/null otherwise; nil for none.
	Pipes *Pipes
	// TimeLimit ends the session so long after Session.Begin; 0 for no limit. See
	// Session.TimedOut.
	TimeLimit time.Duration
	// OutputCap is how many bytes of each stream of output reach the sink at most;
	// 0 for no cap. See Session.Dropped.
	OutputCap int64
	// Tool is a command that nobody types into: it has no history of shells.
	Tool bool
	// FlowControl holds output back until it is acknowledged; see Session.Ack.
	FlowControl bool
	// Full starts the session only if every protection that the policy asks for
	// is enforced; see Outcome.Full.
	Full bool
	// Ask, if it is not nil, is called before a file is refused, if the policy's
	// OnDenied is Ask; see platform.Hooks.
	Ask func(ctx context.Context, denial Denial) Answer
	// AtPrompt, if it is not nil, says what an interactive shell shows before its
	// next prompt about a denial: at once, with Number 0, and again once it has a
	// number. The text must be safe to print. The first call must be quick: the
	// program waits. Of programs that prompt.Shows does not know nothing is shown.
	AtPrompt func(denial Denial) string
	// Learn, if it is not nil, reports everything that the policy refuses; see
	// platform.Hooks. It needs Ask.
	Learn []string
	// joined: another process of the user than its agent has started it, by
	// Spawner.Join.
	joined bool
	// foreground: the session is on the caller's own terminal.
	foreground bool
	// shared is the group whose init is started; nil for any other session.
	shared *Group
}

// kind is the kind of session, as settings name it.
func (r *Request) kind() string {
	if r.Tool || r.NoInput {
		return "tool"
	}
	return "terminal"
}

// Size of a terminal in character cells.
type Size struct{ Cols, Rows int }

// clamp limits a size to what the kernel can hold (struct winsize has 16 bits),
// and replaces an invalid side by its default.
func (s Size) clamp() (cols, rows uint16) {
	fit := func(n, standard int) uint16 {
		if n <= 0 {
			n = standard
		}
		return uint16(min(n, 1<<16-1))
	}
	return fit(s.Cols, 80), fit(s.Rows, 24)
}

// environment is the leader's environment, and the sorted names of the
// variables that the policy removed.
func (r *Request) environment(runtimeDir string) (env, dropped []string) {
	env = lastOfEach(r.Env)
	if r.Policy.Restricted {
		var daemons []string
		var secret []string
		env, secret = r.Policy.WithoutCredentials(env)
		env, dropped = r.Policy.Environment.Filter(env)
		dropped = append(dropped, secret...)
		env, daemons = withoutDaemons(env, lastOfEach(r.Env), r.Policy.UnixSockets)
		dropped = append(dropped, daemons...)
		slices.Sort(dropped)
	}
	// These variables describe the session itself, so the policy does not filter
	// them.
	set := func(name, value string) {
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		env = append(env, name+"="+value)
		dropped = slices.DeleteFunc(dropped, func(dropped string) bool { return dropped == name })
	}
	set("PWD", r.Dir)
	// An editor that a desktop started has none, or one of its own, which is not
	// that of its terminals.
	if term := lookUp(env, "TERM"); term == "" || term == "dumb" && !r.foreground {
		set("TERM", "xterm-256color")
	}
	if runtimeDir != "" {
		for _, name := range runtimeVariables {
			set(name, runtimeDir)
		}
	}
	return env, dropped
}

// Around says what the sandbox depends on beside its policy: which of the user's
// agents and directories the variables lead to, and which files and directories now
// are at the paths that are granted. Sessions can share a sandbox only if it is
// equal; see StartGroup. Otherwise a session would get what was at a path before.
func (r *Request) Around() string {
	if !r.Policy.Restricted {
		return ""
	}
	var around []string
	if slices.ContainsFunc(r.Policy.UnixSockets, func(s policy.UnixSocket) bool { return s.Agent != "" }) {
		env := lastOfEach(r.Env)
		around = []string{lookUp(env, agentVariable), lookUp(env, gpgVariable), lookUp(env, "HOME")}
	}
	for _, c := range r.Policy.Credentials {
		if c.Variable != "" { // sessions with other secrets have other placeholders
			sum := sha256.Sum256([]byte(lookUp(lastOfEach(r.Env), c.Variable)))
			around = append(around, c.Variable, hex.EncodeToString(sum[:]))
		}
	}
	return fmt.Sprintf("%q %s", around, identities(&r.Policy))
}

// identities are what is at the paths that a policy names, as a text that is
// equal if it is the same. What is mounted over a protected or hidden path is
// lost if another program replaces the file, and nothing is mounted where nothing
// was. git replaces its configuration from inside, and makes a repository there.
func identities(p *policy.Policy) string {
	var text strings.Builder
	note := func(path string, look func(string) (fs.FileInfo, error), whole bool) {
		info, err := look(path)
		switch {
		case err != nil:
			fmt.Fprintf(&text, "%q -\n", path)
		case !whole:
			fmt.Fprintf(&text, "%q +\n", path)
		default:
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				// A new file often gets the number of one that was removed.
				fmt.Fprintf(&text, "%q %d:%d %d\n", path, stat.Dev, stat.Ino, fsguard.Born(path))
			}
		}
	}
	for _, rule := range p.Rules {
		note(rule.Path, fsguard.Stat, true)
	}
	for _, socket := range p.UnixSockets {
		if socket.Path != "" && socket.Agent == "" {
			note(socket.Path, fsguard.Stat, true)
		}
	}
	for _, at := range p.Protected {
		if !at.Pattern {
			note(at.Path, fsguard.Lstat, !at.GitConfig && !at.Creatable)
		}
	}
	for _, at := range p.Hidden {
		note(at.Path, fsguard.Lstat, true)
	}
	for _, at := range p.Copies {
		note(at.Path, fsguard.Lstat, true)
	}
	for _, c := range p.Credentials {
		if c.File != "" {
			note(c.File, fsguard.Lstat, true)
		}
	}
	// What is only reviewed is no part of the policy's id.
	fmt.Fprintf(&text, "%q %q\n", slices.Sorted(maps.Keys(p.Reviewed)), p.Unlinked)
	return text.String()
}

// lastOfEach keeps the last entry of each name, in the order in which the names
// first appear.
func lastOfEach(environ []string) []string {
	at := map[string]int{}
	var env []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if i, seen := at[name]; seen {
			env[i] = entry
			continue
		}
		at[name] = len(env)
		env = append(env, entry)
	}
	return env
}

func lookUp(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Check finds the errors that need no started process. They are *Error.
func (r *Request) Check() error {
	if !filepath.IsAbs(r.Dir) {
		return &Error{Attempt: "use working directory", Path: r.Dir, Cause: fmt.Errorf("not an absolute path")}
	}
	info, err := fsguard.Stat(r.Dir)
	if errors.Is(err, fsguard.ErrNoAnswer) {
		return &Error{
			Attempt: "use working directory", Path: r.Dir, Cause: cause(err),
			Hint: "try again once the file system answers; sessions elsewhere can be started",
		}
	}
	if err != nil {
		return &Error{Attempt: "use working directory", Path: r.Dir, Cause: cause(err)}
	}
	if !info.IsDir() {
		return &Error{Attempt: "use working directory", Path: r.Dir, Cause: fmt.Errorf("not a directory")}
	}
	if r.Program == "" {
		return &Error{Attempt: "start program", Cause: errors.New("its name is empty")}
	}
	for _, text := range slices.Concat([]string{r.Program}, r.Argv, r.Env) {
		if strings.ContainsRune(text, 0) {
			return &Error{Attempt: "start program", Cause: fmt.Errorf("an argument or variable holds a NUL byte: %s",
				display.Quote(text))}
		}
	}
	return nil
}

// cause removes the operation and the path that an os error repeats.
func cause(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
