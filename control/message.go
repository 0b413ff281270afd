package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// name is that of the socket in its directory.
const name = "control"

const (
	// version is that of the messages that change something: programs of two
	// versions start and end nothing for each other.
	version = 4
	// listVersion is that of the message that asks for what runs, and of its answer.
	// Programs of the first version look at it.
	listVersion = 1
)

// maxMessage bounds the bytes of a message.
const maxMessage = 4 << 20

// request is the first message of a connection: one of its fields besides the
// version is set.
type request struct {
	Version int   `json:"version"`
	List    *list `json:"list,omitempty"`
	Join    *join `json:"join,omitempty"`
	// Retire asks for the end of a shared sandbox.
	Retire *retire `json:"retire,omitempty"`
}

// parse reads a request. One of a later version may have what this one does not
// know. Then it has nothing but its version.
func parse(message []byte) (asked request, err error) {
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&asked)
	if err == nil {
		return asked, nil
	}
	var of struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(message, &of) == nil && of.Version > version {
		return request{Version: of.Version}, nil
	}
	return request{}, fmt.Errorf("read message: %w", err)
}

// join asks for a command in a shared sandbox. Three files come with it, the
// command's standard streams, unless it has a terminal. After it come signals; the
// end of the connection ends the command.
type join struct {
	Sandbox string `json:"sandbox"`
	// Program is that of Argv if it is empty. It, Argv and Env keep every byte.
	Program []byte   `json:"program,omitempty"`
	Argv    [][]byte `json:"argv"`
	Env     [][]byte `json:"env"`
	Dir     []byte   `json:"dir"`
	// Link: a link that is a shell asks, whose owner the process must know. It gets
	// lines for the user.
	Link bool `json:"link,omitempty"`
	// Place is the name of the place where the link has found the process. It stands
	// for the policy that the command is to have.
	Place string `json:"place,omitempty"`
	// Terminal is the size of a terminal that the command is to have.
	Terminal *size `json:"terminal,omitempty"`
}

// size is that of a terminal.
type size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// goAhead has a command started that was taken.
type goAhead struct {
	Go bool `json:"go"`
}

// signal is a signal for a command that runs, or for its process group.
type signal struct {
	Signal int  `json:"signal"`
	Group  bool `json:"group,omitempty"`
	// ReadOn comes in place of a signal, with pipes that what the command has left
	// still prints to: what comes there is read, and dropped.
	ReadOn bool `json:"readOn,omitempty"`
}

// list asks for what runs.
type list struct{}

// retire has a sandbox that a process keeps for links end once nothing runs in it.
type retire struct {
	Sandbox string `json:"sandbox"`
	// Idle: it ends now, or not at all if something runs in it.
	Idle bool `json:"idle,omitempty"`
}

// reply is a message of the process that listens: one of its fields is set.
type reply struct {
	Refused string `json:"refused,omitempty"`
	// Absent: it is refused because the shared sandbox is not there any more.
	Absent bool `json:"absent,omitempty"`
	// Unknown says why it is not known whether the command has run.
	Unknown string      `json:"unknown,omitempty"`
	Runs    *Supervisor `json:"runs,omitempty"`
	// NotExecuted says why the program of a command was not executed.
	NotExecuted *notExecuted `json:"notExecuted,omitempty"`
	// Started: the command runs. The master of its terminal comes with it.
	Started bool `json:"started,omitempty"`
	// Taken: the command is started once the other end says so. If that end has
	// given up meanwhile, it is not.
	Taken bool   `json:"taken,omitempty"`
	Ended *ended `json:"ended,omitempty"`
	// Retired: the sandbox ends once nothing runs in it, as retire says.
	Retired bool `json:"retired,omitempty"`
	// Said are lines for the user, in a message that says that the command has
	// started or ended.
	Said string `json:"said,omitempty"`
}

// notExecuted has the parts of a spawn.Error.
type notExecuted struct {
	Path    []byte `json:"path"`
	Cause   string `json:"cause"`
	Missing bool   `json:"missing,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// ended says how a command has ended.
type ended struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
	// Gone: the sandbox has ended, and has taken the command along.
	Gone bool `json:"gone,omitempty"`
	// Denied describes what the command was refused, and More counts the rest.
	Denied []Denied `json:"denied,omitempty"`
	More   int      `json:"more,omitempty"`
}

// Denied describes something that a command was refused.
type Denied struct {
	Line string `json:"line"`
	// Number is that of "sandbox-sidecar allow" in the sandbox's project; 0 if it
	// has none.
	Number int `json:"number,omitempty"`
}

// Supervisor is a process that starts sessions, and what it runs.
type Supervisor struct {
	PID int `json:"pid"`
	// By is the command that it was started with, such as "serve" or "exec".
	By string `json:"by"`
	// Client is the name of the program that it serves, as that says; "" if there
	// is none.
	Client   string    `json:"client,omitempty"`
	Sessions []Session `json:"sessions"`
	// More is how many sessions did not fit into the message.
	More int `json:"more,omitempty"`

	stateDir, socket string
}

// Session is a session that runs, or a sandbox that sessions share.
type Session struct {
	ID   string        `json:"id"`
	Kind protocol.Kind `json:"kind"`
	// Shared: it is a sandbox that sessions share.
	Shared bool `json:"shared"`
	// Sandbox is the id of the shared sandbox that a session is in; "" if it has
	// one of its own.
	Sandbox string `json:"sandbox,omitempty"`
	// Joined: "exec --join" has started it.
	Joined     bool                   `json:"joined,omitempty"`
	Group      string                 `json:"group,omitempty"`
	ProjectDir string                 `json:"projectDir,omitempty"`
	Cwd        string                 `json:"cwd,omitempty"`
	Argv       []string               `json:"argv,omitempty"`
	PID        int                    `json:"pid"`
	StartedAt  time.Time              `json:"startedAt"`
	Status     protocol.SandboxStatus `json:"status"`
	// Background is how many processes of a shared sandbox belong to no session
	// that runs.
	Background int `json:"background,omitempty"`
}
