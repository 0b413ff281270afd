package platform

// Denial is something that a session was refused.
type Denial struct {
	Access Refused
	// Target is what it was about: a real path where that is absolute, else a
	// socket's abstract name, an address or a process's number.
	Target string
	// PID and Process name the process, as the host numbers it and as it calls
	// itself. PID is 0 where nobody can tell.
	PID     int
	Process string
	// Count is how often; at least 1.
	Count int
}

// Answer is what is said about an access that somebody was asked about.
type Answer int

const (
	// AnswerDeny refuses it.
	AnswerDeny Answer = iota
	// AnswerOnce allows it this time.
	AnswerOnce
	// AnswerSession allows it as long as the session lives.
	AnswerSession
)

// Refused is a kind of access, as notifications name it.
type Refused string

const (
	// RefusedRead: to open a file for reading, or to list a directory.
	RefusedRead Refused = "read"
	// RefusedWrite: to open a file that exists for writing, or to cut it off.
	RefusedWrite Refused = "write"
	// RefusedCreate: to make a name in a directory: a file, a directory, a
	// link, a socket, or one that something else is renamed to.
	RefusedCreate Refused = "create"
	// RefusedRemove: to take a name out of a directory, also by renaming it.
	RefusedRemove Refused = "remove"
	// RefusedExecute: to run a program.
	RefusedExecute Refused = "execute"
	// RefusedConnectUnix: to connect to a Unix socket. An abstract one's target
	// is "abstract:" and its name.
	RefusedConnectUnix Refused = "connect_unix"
	// RefusedConnect: to reach the network. The target is an address, or, where
	// not even a socket could be made, the socket's family.
	RefusedConnect Refused = "connect"
	// RefusedBind: to wait at an address of this machine.
	RefusedBind Refused = "bind"
	// RefusedSignal: to signal a process outside of the session, whose number
	// is the target.
	RefusedSignal Refused = "signal"
)
