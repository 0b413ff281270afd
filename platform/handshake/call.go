package handshake

// The sidecar and the init of a group share one stream socket, which is the
// init's standard input; see docs/design/groups.md. Messages are JSON, one after
// the other. Descriptors come with the first byte of their message.
//
//	sidecar                        init
//	Call, with descriptors ──────► open a terminal if one is asked for, start
//	      ◄─────────────────────── CallReport{Started}, with a terminal's master
//	                               or CallReport{Failure}
//	      ◄─────────────────────── CallReport{Ended}, once for each that started
//	      ◄─────────────────────── CallReport{Alone}, after the last process of
//	                               all that was left in the background
//
// The end of the stream ends the init.

// GroupInit is the name of the init's role.
const GroupInit = "group-init"

// Call is a command that the init of a group starts.
type Call struct {
	// ID is unique among the calls of a group.
	ID int `json:"id"`
	// Program is a path, or a name to look up in the PATH of Env.
	Program RawString   `json:"program"`
	Argv    []RawString `json:"argv"`
	// Env is the whole environment.
	Env []RawString `json:"env"`
	// Dir is the working directory, absolute.
	Dir RawString `json:"dir"`
	// Terminal is a terminal that the init opens as standard output and standard
	// error, and as standard input unless that is left out. Then no descriptors
	// come. It is nil if the three standard streams come with the message.
	Terminal *Terminal `json:"terminal,omitempty"`
	// Controlling makes standard output the controlling terminal. Without it the
	// kernel hangs nobody up when the command ends.
	Controlling bool `json:"controlling,omitempty"`
}

// CallReport is a message of the init. Started, Failure or Ended is set, or
// Alone without an ID.
type CallReport struct {
	ID int `json:"id"`
	// Started is the process id of the command.
	Started int `json:"started,omitempty"`
	// Terminal: the master of the terminal comes with the message.
	Terminal bool     `json:"terminal,omitempty"`
	Failure  *Failure `json:"failure,omitempty"`
	// Ended is the command's wait status.
	Ended *uint32 `json:"ended,omitempty"`
	// Alone: no process is left in the group but the init.
	Alone bool `json:"alone,omitempty"`
}

// MaxCall bounds the bytes of a call. The kernel starts no program with longer
// arguments and variables than 6 MiB, and a byte takes six at most in a message.
const MaxCall = 40 << 20
