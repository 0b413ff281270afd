package canary

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"

// What the stage passes on Linux, beside a terminal and held files.
const (
	// PassedListener receives the session's intercepted system calls.
	PassedListener handshake.Passed = "listener"
	// PassedDiag lists the sockets of the session's network namespace. It comes if
	// that is not the sidecar's own.
	PassedDiag handshake.Passed = "diag"
	// PassedResolverUDP receives the session's DNS questions, as the next. They
	// come if the session reaches hosts from its own network namespace.
	PassedResolverUDP handshake.Passed = "UDP socket of the resolver"
	// PassedResolverTCP receives the session's DNS questions.
	PassedResolverTCP handshake.Passed = "TCP socket of the resolver"
	// PassedRelay accepts connections that the session believes to be to hosts.
	PassedRelay handshake.Passed = "relay"
	// PassedLocal is a stream socket of the session's network namespace that
	// nothing was done with. There are LocalSockets of them.
	PassedLocal handshake.Passed = "socket of the session's localhost"
)

// LocalSockets is the number of PassedLocal.
const LocalSockets = 2
