package protocol

import (
	"reflect"
	"strings"
)

// Spawn starts a session: a process on a PTY or a pipe of its own, confined as
// the settings say. The answer comes after the sandbox was proved from inside, and
// before the session's first notification.
var Spawn = Request[SpawnParams, SpawnResult]{"terminal/spawn", ToSidecar}

// Input types bytes into a terminal, or writes them to a stdin that is a pipe. The
// inputs of one session keep their order. If more than 16 MiB wait for a program
// that does not read, or 1 MiB or 10,000 notifications for the session to start,
// further input is dropped, and a pipe ends.
var Input = Notification[InputParams]{"terminal/input", ToSidecar}

// Resize changes a terminal's size. The foreground process group gets SIGWINCH.
var Resize = Notification[ResizeParams]{"terminal/resize", ToSidecar}

// Ack reports that output was consumed. It has an effect only if the editor
// announced flowControl. Send it at least every 64 KiB, or the session's output
// is held back.
var Ack = Notification[AckParams]{"terminal/ack", ToSidecar}

// Signal sends a signal to the foreground process group of a terminal.
var Signal = Request[SignalParams, Empty]{"terminal/signal", ToSidecar}

// ForwardPort shows a server that listens on the session's own localhost at a
// port of this machine's, such as to the user's browser. That ends with the
// session. Every program on this machine can connect to it, so ask only if the
// user wishes it. If the session shares this machine's localhost, nothing has to
// be done.
var ForwardPort = Request[ForwardPortParams, ForwardPortResult]{"terminal/forwardPort", ToSidecar}

// Wait answers once the session's leader has ended.
var Wait = Request[SessionParams, ExitStatus]{"terminal/wait", ToSidecar}

// List returns every session that has not been closed.
var List = Request[Empty, ListResult]{"terminal/list", ToSidecar}

// Close ends a session and answers when no process of it is left. A second
// close gets CodeSessionNotFound. In a group it ends the processes of this session
// that are known: see ExitedParams. If its leader has ended before, those that it
// has left in the background stay.
var Close = Request[CloseParams, CloseResult]{"terminal/close", ToSidecar}

// CloseGroup ends every sandbox that sessions share under a name, and answers when
// no process of it is left. The next sandbox of that name has the same /tmp.
// Sessions that run there end by that; close them, too. Without any such sandbox
// the answer is CodeSessionNotFound.
var CloseGroup = Request[CloseGroupParams, CloseGroupResult]{"group/close", ToSidecar}

// ListGroups lists the sandboxes that sessions share, and how much runs there.
var ListGroups = Request[Empty, ListGroupsResult]{"group/list", ToSidecar}

// ListGroupsResult lists sandboxes that sessions share, the oldest first.
type ListGroupsResult struct {
	// Groups has none that has ended.
	Groups []GroupInfo `json:"groups"`
}

// GroupInfo describes a sandbox that sessions share. Several have the same name if
// their projects, kinds or policies differ.
type GroupInfo struct {
	// Group is the name that its sessions have joined by.
	Group string `json:"group"`
	// ProjectDir is the real path of their project.
	ProjectDir string `json:"projectDir"`
	// Kind is their kind.
	Kind Kind `json:"kind"`
	// PolicyID is that of their policy.
	PolicyID string `json:"policyId"`
	// Sessions is how many of its sessions run.
	Sessions int `json:"sessions"`
	// Processes is how many processes it has: those of its sessions, and those that
	// sessions have left in the background.
	Processes int `json:"processes"`
	// StartedAt is a time in the format of RFC 3339.
	StartedAt string `json:"startedAt"`
}

// CloseGroupParams names a group.
type CloseGroupParams struct {
	// Group is the name that sessions have joined by; see SpawnParams.
	Group string `json:"group"`
	// ProjectDir leaves the group of other projects alone, absolute. The default
	// is every project.
	ProjectDir string `json:"projectDir,omitempty"`
}

// CloseGroupResult says how a group ended.
type CloseGroupResult struct {
	// Killed is the number of processes that had to be killed. One of each sandbox
	// is the sidecar's own.
	Killed int `json:"killed"`
	// Remaining is the number of processes that survived; see CloseResult.
	Remaining int `json:"remaining"`
	// ElapsedMs is how long closing took, in milliseconds.
	ElapsedMs int `json:"elapsedMs"`
	// Review lists what changed since the group began; see CloseResult. Most of it
	// was listed after single sessions.
	Review []Finding `json:"review,omitempty"`
}

// Output carries raw bytes of a terminal or a pipe, in order and without loss. Only
// what is beyond outputBytesCap is dropped.
var Output = Notification[OutputParams]{"terminal/output", ToEditor}

// Started reports a session that the sidecar did not start: somebody has called
// a shell of "sandbox-sidecar shell install" with the variable SANDBOX_WINDOW.
// Its denials, questions, limits and its end are reported as those of other
// sessions. Only terminal/list knows it, and terminal/close after its end.
var Started = Notification[StartedParams]{"terminal/started", ToEditor}

// StartedParams describes a session that the sidecar did not start.
type StartedParams struct {
	SessionID string `json:"sessionId"`
	Kind      Kind   `json:"kind"`
	// PID is the session leader's process id.
	PID int `json:"pid"`
	// ShellPID is the process id of the shell that was called, which is outside
	// the sandbox. It is that of an editor's terminal, if the shell was started
	// there.
	ShellPID int `json:"shellPid"`
	// Argv is the program with its arguments.
	Argv       []string `json:"argv"`
	Cwd        string   `json:"cwd"`
	ProjectDir string   `json:"projectDir"`
	// PolicyID changes exactly when the effective policy does.
	PolicyID string        `json:"policyId"`
	Sandbox  SandboxReport `json:"sandbox"`
}

// Exited reports that a session's leader has ended. It comes after the last
// output, when every process that the leader left behind is dead, and before the
// review; see session/review. In a group, what the leader left behind lives on,
// and its output is lost. Of a session that the sidecar did not start, both
// fields are null if the end was not heard.
var Exited = Notification[ExitedParams]{"terminal/exited", ToEditor}

// Reviewed lists the changed files to check after a session that ended by
// itself. It comes after terminal/exited, as soon as they are known. It does not
// come if there are none, or if the session was closed before that: the answer to
// terminal/close lists them then, too. If that has "remaining" processes, it may
// come without them, and session/review after it.
var Reviewed = Notification[ReviewParams]{"session/review", ToEditor}

// ReviewParams lists what to check after a session.
type ReviewParams struct {
	SessionID string `json:"sessionId"`
	// Review is never empty; see CloseResult.
	Review []Finding `json:"review"`
}

// Kind is the purpose of a session. The setting apply_to selects by it.
type Kind string

const (
	// Terminal is the user's own terminal.
	Terminal Kind = "terminal"
	// Tool is a command that an agent runs. Its stdin is /dev/null, or a pipe.
	Tool Kind = "tool"
)

// SpawnParams describes the session to start.
type SpawnParams struct {
	// Kind is "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
	// SessionID is a UUID that the editor chooses and that no open session has.
	// The default is a new one.
	SessionID string `json:"sessionId,omitempty"`
	// Cwd is the working directory, absolute and required.
	Cwd string `json:"cwd"`
	// ProjectDir is the directory that the session may write, absolute. The
	// default is the workspace folder that contains cwd, else cwd.
	ProjectDir string `json:"projectDir,omitempty"`
	// Shell is the program of a terminal. The default is that of the settings,
	// else $SHELL as a login shell.
	Shell *Shell `json:"shell,omitempty"`
	// Command is run instead of the shell. Without args it is a command line for
	// the shell of the settings, such as "go test ./...". The default is bash, or
	// /bin/sh if there is no bash.
	Command string `json:"command,omitempty"`
	// Args are the arguments of command, such as ["test", "./..."].
	Args []string `json:"args,omitempty"`
	// Pipe gives command a pipe for what it prints, and /dev/null as stdin, so that
	// it neither pages nor colours. Otherwise both are a terminal.
	Pipe bool `json:"pipe,omitempty"`
	// Stdin gives a command with pipe another pipe as stdin, such as for a language
	// server. It gets what terminal/input brings, until that says closeStdin.
	Stdin bool `json:"stdin,omitempty"`
	// Stderr gives a command with pipe another pipe for its errors, so that
	// terminal/output tells them from its other output.
	Stderr bool `json:"stderr,omitempty"`
	// TimeoutMs ends the session so many milliseconds after the answer, with all of
	// its processes: by SIGTERM to its foreground process group, and two seconds
	// later by SIGKILL. It is at most 86400000, one day. The default, 0, is no
	// limit.
	TimeoutMs int `json:"timeoutMs,omitempty"`
	// OutputBytesCap is how many bytes of its output are sent at most. What it
	// prints beyond is read and dropped, and terminal/exited counts it. Errors that
	// are apart have a cap of the same size. The default, 0, is no cap.
	OutputBytesCap int `json:"outputBytesCap,omitempty"`
	// Env is added to the sidecar's own environment. Both are filtered alike.
	Env map[string]string `json:"env,omitempty"`
	// Cols is the width in character cells: 1 to 65535, 80 by default.
	Cols int `json:"cols,omitempty"`
	// Rows is the height in character cells: 1 to 65535, 24 by default.
	Rows int `json:"rows,omitempty"`
	// Group has the session share one sandbox with others of the same group,
	// project, kind, policy and signing agents: processes, localhost, /tmp and
	// limits. The name is
	// the editor's choice, such as one for each agent, of at most 256 bytes. What
	// the session leaves in the background lives on until group/close, or the end
	// of the sidecar. The default, "own", is a sandbox of its own. Only a sidecar
	// with the capability "groups" has them.
	Group string `json:"group,omitempty"`
	// PolicyID is that of policy/get, if the user has agreed to that policy. The
	// session starts under no other, and only if every protection that the
	// policy asks for is enforced. Else nothing runs.
	PolicyID string `json:"policyId,omitempty"`
}

// SpawnFields are the fields of SpawnParams, in their order.
func SpawnFields() []string {
	var names []string
	for field := range reflect.TypeFor[SpawnParams]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// Shell is a program with its arguments.
type Shell struct {
	Program string   `json:"program"`
	Args    []string `json:"args,omitempty"`
}

// SpawnResult says what was started, and what confines it.
type SpawnResult struct {
	SessionID string `json:"sessionId"`
	// PID is the session leader's process id.
	PID int `json:"pid"`
	// Argv is the program with its arguments.
	Argv []string `json:"argv"`
	// PolicyID changes exactly when the effective policy does.
	PolicyID    string         `json:"policyId"`
	Sandbox     SandboxReport  `json:"sandbox"`
	Tracking    Tracking       `json:"tracking"`
	Environment EnvironmentLog `json:"environment"`
}

// SandboxReport says what confines a session, as reported from inside it.
type SandboxReport struct {
	// Applied is true if the kernel confines the session.
	Applied bool          `json:"applied"`
	Status  SandboxStatus `json:"status"`
	// Protections is empty if the session is not confined.
	Protections Protections `json:"protections"`
	// Warnings are for the user, to be shown as plain text.
	Warnings []string `json:"warnings"`
}

// SandboxStatus is the summary of a sandbox.
type SandboxStatus string

const (
	// SandboxFull: every protection that the policy asks for is enforced, except
	// denials and limits, which do not count.
	SandboxFull SandboxStatus = "full"
	// SandboxDegraded: some protection that the policy asks for is not fully
	// enforced.
	SandboxDegraded SandboxStatus = "degraded"
	// SandboxNone: the settings ask for a sandbox, this machine cannot provide
	// one, and on_unavailable is "warn".
	SandboxNone SandboxStatus = "none"
	// SandboxOff: the settings do not sandbox this kind of session.
	SandboxOff SandboxStatus = "off"
)

// Tracking says how a session's processes are held together.
type Tracking struct {
	// Mechanism is "cgroup", "subreaper" (a process that adopts orphans),
	// "process_group", or a value of a later version.
	Mechanism string `json:"mechanism"`
	// Guarantee is true if no process of the session can outlive it.
	Guarantee bool `json:"guarantee"`
}

// EnvironmentLog says what the filter of variables did.
type EnvironmentLog struct {
	// Dropped are the sorted names of the removed variables, without their
	// values.
	Dropped []string `json:"dropped"`
}

// InputParams carries typed bytes.
type InputParams struct {
	SessionID string `json:"sessionId"`
	// Data is base64 of raw bytes.
	Data []byte `json:"data"`
	// CloseStdin ends the stdin of a session that was started with stdin, after the
	// data.
	CloseStdin bool `json:"closeStdin,omitempty"`
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
	// Bytes is the number of raw bytes (not of base64) consumed since the last
	// ack.
	Bytes int `json:"bytes"`
}

// SignalParams names a signal.
type SignalParams struct {
	SessionID string `json:"sessionId"`
	// Signal is a name such as "SIGINT".
	Signal string `json:"signal"`
}

// ForwardPortParams names a port of a session.
type ForwardPortParams struct {
	// SessionID is empty for a group.
	SessionID string `json:"sessionId,omitempty"`
	// Group is the group of a server that a session has left in the background; see
	// group/list. The port is open until the group ends. Of several sandboxes with
	// that name, the newest one counts.
	Group string `json:"group,omitempty"`
	// ProjectDir leaves the group of other projects alone, absolute.
	ProjectDir string `json:"projectDir,omitempty"`
	// Port is where the session's server listens, 1 to 65535.
	Port int `json:"port"`
	// LocalPort is where it is shown on this machine. The default is the same
	// port.
	LocalPort int `json:"localPort,omitempty"`
}

// ForwardPortResult says where a session's server is.
type ForwardPortResult struct {
	// Address is "127.0.0.1:PORT", on this machine.
	Address string `json:"address"`
	// Shared is true if the session shares this machine's localhost.
	Shared bool `json:"shared"`
}

// SessionParams names a session.
type SessionParams struct {
	SessionID string `json:"sessionId"`
}

// ExitStatus says how a leader ended. One of the two fields is null.
type ExitStatus struct {
	// ExitCode is null if a signal ended the leader.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of the signal that ended the leader, such as "SIGHUP",
	// or null.
	Signal *string `json:"signal"`
}

// ExitedParams is an exit status with its session.
type ExitedParams struct {
	SessionID string `json:"sessionId"`
	// ExitCode is null if a signal ended the leader.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of the signal that ended the leader, such as "SIGHUP",
	// or null.
	Signal *string `json:"signal"`
	// Background is how many processes the session has left running in its group.
	// It does not count a process that has made a session of its own (setsid) and
	// whose parent has ended. Absent if there are none.
	Background int `json:"background,omitempty"`
	// GroupEnded is true if the session's group has ended with everything in it, as
	// after "kill -9 -1". The next session starts another sandbox.
	GroupEnded bool `json:"groupEnded,omitempty"`
	// TimedOut is true if timeoutMs was over while the leader ran.
	TimedOut bool `json:"timedOut,omitempty"`
	// DroppedBytes is how many bytes of output were beyond outputBytesCap.
	DroppedBytes int64 `json:"droppedBytes,omitempty"`
	// Killed is how many processes had to be killed, such as those in the
	// background of a session without a group. Absent if there were none.
	Killed int `json:"killed,omitempty"`
	// Hints say what the sandbox may have to do with a command that failed, to be
	// shown as plain text. Absent if nothing speaks for that, and for shells.
	Hints []string `json:"hints,omitempty"`
}

// OutputParams carries output.
type OutputParams struct {
	SessionID string `json:"sessionId"`
	// Data is base64 of raw bytes. Two messages may share a character.
	Data []byte `json:"data"`
	// Stream is "stderr" for the errors of a session that was started with stderr,
	// and absent for all other output.
	Stream string `json:"stream,omitempty"`
}

// StreamStderr is the stream of errors that are apart; see OutputParams.
const StreamStderr = "stderr"

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
	// Group is the name of the group that the session has joined; absent if it has
	// a sandbox of its own.
	Group string `json:"group,omitempty"`
	// Stale is true if a new session would get another policy. It may be out of
	// date if a file system does not answer.
	Stale bool `json:"stale"`
	// Running is false once the leader has ended.
	Running bool `json:"running"`
	// StartedAt is a time in the format of RFC 3339.
	StartedAt string   `json:"startedAt"`
	Tracking  Tracking `json:"tracking"`
	// External is true if the sidecar did not start the session; see
	// terminal/started.
	External bool `json:"external,omitempty"`
}

// CloseParams says how to end a session.
type CloseParams struct {
	SessionID string `json:"sessionId"`
	// GraceMs is how many milliseconds the leader may take to end after SIGHUP,
	// before everything is killed: 0 to 60000. 0 kills at once. The default is
	// 300 for a terminal and 0 for a tool.
	GraceMs *int `json:"graceMs,omitempty"`
}

// CloseResult says how a session ended.
type CloseResult struct {
	// ExitCode is null if a signal ended the leader.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of the signal that ended the leader, or null.
	Signal *string `json:"signal"`
	// Killed is the number of processes that had to be killed.
	Killed int `json:"killed"`
	// Remaining is the number of processes that survived SIGKILL, and is usually
	// 0. Such a process is in an uninterruptible system call, or has rights that
	// the sidecar lacks. They are waited for at most ten seconds. If all of them
	// are in such calls, it is 0.7 s in which the machine is not busy (Linux). The
	// log names them, and they are killed in the background. If the leader is
	// among them, exitCode and signal are both null.
	Remaining int `json:"remaining"`
	// ElapsedMs is how long closing took, in milliseconds.
	ElapsedMs int `json:"elapsedMs"`
	// Review lists changed files to check before a program outside the sandbox
	// uses them: hooks, tasks, scripts, CI files. It does not say which process
	// changed them. It is absent if there are none.
	Review []Finding `json:"review,omitempty"`
}
