package protocol

// Spawn starts a session: a process, confined as the settings say, on a PTY of
// its own. The answer comes after the process has confirmed from inside that
// its sandbox is in force, and before the session's first notification.
var Spawn = Request[SpawnParams, SpawnResult]{"terminal/spawn", ToSidecar}

// Input types bytes into a terminal. Inputs of one session keep their order.
var Input = Notification[InputParams]{"terminal/input", ToSidecar}

// Resize changes a terminal's size; the foreground process group gets SIGWINCH.
var Resize = Notification[ResizeParams]{"terminal/resize", ToSidecar}

// Ack tells that output was consumed. Only counts where the editor announced
// flowControl. Tell at least every 64 KiB: a session whose editor does not is
// held back.
var Ack = Notification[AckParams]{"terminal/ack", ToSidecar}

// Signal sends a signal to the foreground process group of a terminal.
var Signal = Request[SignalParams, Empty]{"terminal/signal", ToSidecar}

// Wait answers once the session's leader has ended.
var Wait = Request[SessionParams, ExitStatus]{"terminal/wait", ToSidecar}

// List answers every session that has not been closed.
var List = Request[Empty, ListResult]{"terminal/list", ToSidecar}

// Close ends a session and answers when no process of it is left. A second one
// gets CodeSessionNotFound.
var Close = Request[CloseParams, CloseResult]{"terminal/close", ToSidecar}

// Output carries raw bytes of a terminal, in order, nothing lost.
var Output = Notification[OutputParams]{"terminal/output", ToEditor}

// Exited tells that a session's leader has ended, after the last output. What
// the leader left behind is dead by then.
var Exited = Notification[ExitedParams]{"terminal/exited", ToEditor}

// Kind says for whom a session runs; the setting apply_to routes by it.
type Kind string

const (
	// Terminal is the user's own terminal.
	Terminal Kind = "terminal"
	// Tool is a command that an agent runs. Its stdin is /dev/null.
	Tool Kind = "tool"
)

// SpawnParams describes the session to start.
type SpawnParams struct {
	// Kind is "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
	// SessionID is the editor's own UUID; one that is taken is refused.
	// Default: a new one.
	SessionID string `json:"sessionId,omitempty"`
	// Cwd is the working directory. Absolute; required.
	Cwd string `json:"cwd"`
	// ProjectDir is the directory that the session may write. Absolute;
	// default: the workspace folder that holds cwd, else cwd.
	ProjectDir string `json:"projectDir,omitempty"`
	// Shell is the program of a terminal. Default: $SHELL as a login shell.
	Shell *Shell `json:"shell,omitempty"`
	// Command is run instead of the shell. Without args it is a line for
	// /bin/sh -c.
	Command string `json:"command,omitempty"`
	// Args are the arguments of command.
	Args []string `json:"args,omitempty"`
	// Env is added to the sidecar's own environment; both pass the same filter.
	Env map[string]string `json:"env,omitempty"`
	// Cols is the width in character cells: 1 to 65535, 80 by default.
	Cols int `json:"cols,omitempty"`
	// Rows is the height in character cells: 1 to 65535, 24 by default.
	Rows int `json:"rows,omitempty"`
}

// Shell is a program with its arguments.
type Shell struct {
	Program string   `json:"program"`
	Args    []string `json:"args,omitempty"`
}

// SpawnResult says what was started, and what really confines it.
type SpawnResult struct {
	SessionID string `json:"sessionId"`
	// PID is the session leader's process id.
	PID int `json:"pid"`
	// Argv is what runs.
	Argv []string `json:"argv"`
	// PolicyID changes exactly when the effective policy does.
	PolicyID    string         `json:"policyId"`
	Sandbox     SandboxReport  `json:"sandbox"`
	Tracking    Tracking       `json:"tracking"`
	Environment EnvironmentLog `json:"environment"`
}

// SandboxReport says what confines a session, as reported from inside it.
type SandboxReport struct {
	// Applied is true where the kernel confines the session.
	Applied bool          `json:"applied"`
	Status  SandboxStatus `json:"status"`
	// Protections is empty where the settings do not sandbox the session.
	Protections Protections `json:"protections"`
	// Warnings are for the user's eyes.
	Warnings []string `json:"warnings"`
}

// SandboxStatus sums a sandbox up.
type SandboxStatus string

const (
	// SandboxFull: every protection that the policy asks for is enforced.
	SandboxFull SandboxStatus = "full"
	// SandboxDegraded: confined, but some protection that the policy asks for
	// is not fully enforced.
	SandboxDegraded SandboxStatus = "degraded"
	// SandboxNone: the settings ask for a sandbox, this machine has none, and
	// on_unavailable is "warn".
	SandboxNone SandboxStatus = "none"
	// SandboxOff: the settings do not sandbox this kind of session.
	SandboxOff SandboxStatus = "off"
)

// Tracking says how a session's processes are held together.
type Tracking struct {
	// Mechanism is "cgroup", "subreaper" (a subreaper adopts orphans) or
	// "process_group" (more may come).
	Mechanism string `json:"mechanism"`
	// Guarantee is true where no process of the session can outlive it.
	Guarantee bool `json:"guarantee"`
}

// EnvironmentLog lists what the filter did.
type EnvironmentLog struct {
	// Dropped are the names, never the values, of the variables that did not
	// arrive. Sorted.
	Dropped []string `json:"dropped"`
}

// InputParams carries typed bytes.
type InputParams struct {
	SessionID string `json:"sessionId"`
	// Data is base64 of raw bytes.
	Data []byte `json:"data"`
}

// ResizeParams is a size in character cells.
type ResizeParams struct {
	SessionID string `json:"sessionId"`
	// Cols is 1 to 65535.
	Cols int `json:"cols"`
	// Rows is 1 to 65535.
	Rows int `json:"rows"`
}

// AckParams counts consumed output.
type AckParams struct {
	SessionID string `json:"sessionId"`
	// Bytes of raw output (not of base64) consumed since the last ack.
	Bytes int `json:"bytes"`
}

// SignalParams names a signal.
type SignalParams struct {
	SessionID string `json:"sessionId"`
	// Signal is a name such as "SIGINT".
	Signal string `json:"signal"`
}

// SessionParams names a session.
type SessionParams struct {
	SessionID string `json:"sessionId"`
}

// ExitStatus says how a leader ended: one of the two is null.
type ExitStatus struct {
	// ExitCode is null where a signal ended it.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of the signal that ended it, or null.
	Signal *string `json:"signal"`
}

// ExitedParams is an exit status with its session.
type ExitedParams struct {
	SessionID string `json:"sessionId"`
	// ExitCode is null where a signal ended it.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of the signal that ended it, or null.
	Signal *string `json:"signal"`
}

// OutputParams carries output.
type OutputParams struct {
	SessionID string `json:"sessionId"`
	// Data is base64 of raw PTY bytes. A character may be split between two
	// messages.
	Data []byte `json:"data"`
}

// ListResult lists sessions.
type ListResult struct {
	Sessions []SessionInfo `json:"sessions"`
}

// SessionInfo describes one session.
type SessionInfo struct {
	SessionID  string `json:"sessionId"`
	Kind       Kind   `json:"kind"`
	PID        int    `json:"pid"`
	Cwd        string `json:"cwd"`
	ProjectDir string `json:"projectDir"`
	PolicyID   string `json:"policyId"`
	// Stale is true where a new session would get another policy, as far as
	// that could be said in time: a file system may not answer.
	Stale bool `json:"stale"`
	// Running is false once the leader has ended.
	Running bool `json:"running"`
	// StartedAt is a time as in RFC 3339.
	StartedAt string   `json:"startedAt"`
	Tracking  Tracking `json:"tracking"`
}

// CloseParams says how to end a session.
type CloseParams struct {
	SessionID string `json:"sessionId"`
	// GraceMs is how long, in milliseconds, the leader may take to end after
	// SIGHUP before everything is killed; 0 kills at once. Default: 300 for a
	// terminal, 0 for a tool. At most 60000.
	GraceMs *int `json:"graceMs,omitempty"`
}

// CloseResult says how a session ended.
type CloseResult struct {
	// ExitCode is null where a signal ended the leader.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of the signal that ended the leader, or null.
	Signal *string `json:"signal"`
	// Killed counts the processes that had to be killed.
	Killed int `json:"killed"`
	// Remaining is 0 as a rule: the answer waits for it. Otherwise so many
	// processes have survived SIGKILL for ten seconds, in an uninterruptible
	// system call or with rights that the sidecar lacks; the log names them,
	// and they go on being killed. Where the leader is among them, ExitCode and
	// Signal are both null.
	Remaining int `json:"remaining"`
	// ElapsedMs is how long it took, in milliseconds.
	ElapsedMs int `json:"elapsedMs"`
	// Review lists what changed meanwhile and is worth a look before it runs
	// outside of the sandbox: hooks, tasks, scripts, CI files. It does not say
	// who changed it; absent where there is nothing.
	Review []Finding `json:"review,omitempty"`
}
