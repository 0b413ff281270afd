package platform

// Denial is an operation of a session that the sandbox refused.
type Denial struct {
	Access Refused
	// Target is a real path if it is absolute, else an abstract socket's name,
	// an address or a process id.
	Target string
	// Name is the host's name that was asked for, if Target is an address that it
	// leads to. Of a key it says what the key is called and what for, with the
	// names that others chose quoted.
	Name string
	// Datagram says that it was no connection of TCP, for which alone a setting
	// opens single hosts.
	Datagram bool
	// Greeting says in words what of the first bytes to an allowed host was
	// refused; "" if it was something else.
	Greeting string
	// Opened says that Greeting is of a request, as the connection's TLS
	// was opened for a credential.
	Opened bool
	// PID and Process are the process: its id on the host and its own name for
	// itself. PID is 0 if it is unknown.
	PID     int
	Process string
	// Count is how often it happened, at least 1.
	Count int
	// Detail says what was refused, if Access and Target do not: a setting of git
	// and what git would do with it, or why nobody can tell. Names that others
	// chose are quoted in it.
	Detail string
	// Whole is Detail for a question: nothing in it is shortened. It is "" if
	// nobody may be asked.
	Whole string
	// Command does the same outside the sandbox; "" if there is no short one.
	Command string
	// Directory is what an answer can open with everything below it: the directory
	// of the target, or the target itself if it is one; "" if an answer cannot.
	Directory string
	// Change says that a name is made, removed or renamed. Only an answer about its
	// directory allows that: nobody is asked about each name.
	Change bool
	// Unasked says that it would have been a question, if others had not been
	// refused too often.
	Unasked bool
	// Background says that the process belongs to no running session of its
	// group: an earlier one has left it. It is reported to the latest session.
	Background bool
	// Worktree says what of "git worktree add" it was; "" if it was something else,
	// or if nobody knows.
	Worktree Worktree
	// Source is how it became known; "" if the sandbox or the kernel noticed it.
	Source Source
}

// Worktree is a part of the work of "git worktree add". git may have made the
// branch before either.
type Worktree string

// The parts. Command lines say which it is, so a session can falsify it.
const (
	// WorktreePlace is the directory of the working tree.
	WorktreePlace Worktree = "place"
	// WorktreeContent is what git puts there, or into its repository. git removes
	// the working tree then.
	WorktreeContent Worktree = "content"
)

// Source is how a denial became known.
type Source string

// SourceOutput is a program's own output, which told of something that the
// policy refuses.
const SourceOutput Source = "output"

// Answer is the user's answer about an access.
type Answer int

const (
	// AnswerDeny denies it.
	AnswerDeny Answer = iota
	// AnswerOnce allows it this time.
	AnswerOnce
	// AnswerSession allows it until the session ends.
	AnswerSession
	// AnswerDirectory allows it, as an answer has opened its directory until the
	// session ends. Each name in it is judged anew.
	AnswerDirectory
	// AnswerUnasked denies it: it is nothing to ask about, or nobody can be asked.
	AnswerUnasked
	// AnswerNotNow denies it this time, without a question: too many were
	// refused, or nobody can be asked now.
	AnswerNotNow
	// AnswerWithdrawn denies it, as the question has ended before the user answered.
	AnswerWithdrawn
)

// Allows reports whether the answer allows the access.
func (a Answer) Allows() bool { return a == AnswerOnce || a == AnswerSession || a == AnswerDirectory }

// Asked reports whether somebody was asked.
func (a Answer) Asked() bool { return a != AnswerUnasked && a != AnswerNotNow }

// Lasts reports whether the answer holds for the next access of the same kind.
func (a Answer) Lasts() bool { return a != AnswerOnce && a != AnswerDirectory && a != AnswerNotNow }

// Refused is a kind of denied access, as notifications name it.
type Refused string

const (
	// RefusedRead: to open a file for reading, or to list a directory.
	RefusedRead Refused = "read"
	// RefusedWrite: to open an existing file for writing, or to truncate it.
	RefusedWrite Refused = "write"
	// RefusedCreate: to create a name in a directory: a file, a directory, a
	// link, a socket, or the target of a rename.
	RefusedCreate Refused = "create"
	// RefusedRemove: to remove a name from a directory, also by renaming it.
	RefusedRemove Refused = "remove"
	// RefusedExecute: to run a program.
	RefusedExecute Refused = "execute"
	// RefusedConnectUnix: to connect to a Unix socket. The target of an
	// abstract one is "abstract:" and its name.
	RefusedConnectUnix Refused = "connect_unix"
	// RefusedConnect: to reach the network. The target is an address, or the
	// family if no socket could be created.
	RefusedConnect Refused = "connect"
	// RefusedBind: to listen at an address of this machine.
	RefusedBind Refused = "bind"
	// RefusedProtected: to change a protected file in a way that is not
	// harmless, as Detail says.
	RefusedProtected = Refused(AlarmRefused)
	// RefusedAgent: to have an agent that keeps keys do something. The target
	// says what, in words.
	RefusedAgent Refused = "agent"
	// RefusedSign: to use a key of an agent, to sign or to log in. The target is
	// the key, as policy.SigningKey has it.
	RefusedSign Refused = "sign"
	// RefusedSignal: to signal a process outside the session. The target is its
	// process id.
	RefusedSignal Refused = "signal"
)
