// Package window is how a shell outside the sidecar reports to the window of an
// editor below which it was started. The editor's sidecar listens on a Unix
// socket, whose path the editor puts into the variable [Variable]. The shell
// tells what its session is refused, and asks what the user decides.
//
// Nobody inside a session may use that socket. It lies in the state directory,
// which no session may write. Both ends check whose process the other is.
//
// The messages are lines of JSON. Whatever else a peer sends ends its
// connection.
package window
