package window

import "github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"

// Variable names the socket in the environment of shells.
const Variable = "SANDBOX_WINDOW"

// version is that of the messages. Both ends are mostly one program; a shell of
// another version goes on without the window.
const version = 1

// FromShell is a message of a shell: one of its fields is set.
type FromShell struct {
	// Started is the first message.
	Started *Started `json:"started,omitempty"`
	// Denied and Limit have no session id.
	Denied *protocol.DeniedParams `json:"denied,omitempty"`
	Limit  *protocol.LimitParams  `json:"limit,omitempty"`
	// Ask is a question, and Withdraw the number of one that nobody waits for.
	Ask      *Ask   `json:"ask,omitempty"`
	Withdraw *int   `json:"withdraw,omitempty"`
	Log      string `json:"log,omitempty"`
	// Ended is the last message.
	Ended *Ended `json:"ended,omitempty"`
}

// Started describes the session of a shell.
type Started struct {
	Kind       protocol.Kind          `json:"kind"`
	PID        int                    `json:"pid"`
	Argv       []string               `json:"argv"`
	Cwd        string                 `json:"cwd"`
	ProjectDir string                 `json:"projectDir"`
	PolicyID   string                 `json:"policyId"`
	Sandbox    protocol.SandboxReport `json:"sandbox"`
	Tracking   protocol.Tracking      `json:"tracking"`
}

// Ask is a question with its number. The question has no session id.
type Ask struct {
	ID       int                          `json:"id"`
	Question protocol.RequestAccessParams `json:"question"`
}

// Ended says how a session ended.
type Ended struct {
	Status protocol.ExitStatus `json:"status"`
	Hints  []string            `json:"hints,omitempty"`
	Review []protocol.Finding  `json:"review,omitempty"`
}

// FromWindow is a message of a window: one of its fields is set.
type FromWindow struct {
	// Hello is the first message.
	Hello  *Hello  `json:"hello,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

// Hello describes the window.
type Hello struct {
	Version int `json:"version"`
	// Asks: questions are answered.
	Asks bool `json:"asks"`
}

// Answer is the user's decision about the question of a number; "" if nobody
// could be asked.
type Answer struct {
	ID       int               `json:"id"`
	Decision protocol.Decision `json:"decision"`
}
