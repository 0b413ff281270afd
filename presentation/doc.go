// Package presentation turns what the sidecar knows into what people are shown:
// the protocol's objects, and the sentences in them.
//
// Both the server (package rpc) and the command line use it, so that an editor
// and a terminal say the same about the same denial, policy or question.
//
// # Entry points
//
// [Policy] and [Explanation] answer policy/get and policy/explain. [Denial],
// [Alarm] and [Findings] report what happened in a session; [DenialLine] is the
// short form for a terminal. [Question] asks the user about an access, and
// [CarryOut] does what the user decided. [Sandbox] says what confines a
// session. [Project], [Diagnostics] and [FileDiagnostics] are about settings
// files.
//
// Every text that a session or a repository can choose passes through package
// display here, so that a client can show a message as it is. Fields that hold
// a raw path or name say so in package protocol.
//
// All functions are safe for concurrent use.
package presentation
