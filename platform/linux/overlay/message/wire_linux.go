package message

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"

// Request is one message to the holder. Exactly one field is set.
type Request struct {
	// Prepare are caches that the next session uses. The answer has the useLock.
	Prepare []Cache `json:"prepare,omitempty"`
	// Clone are the paths of caches. The answer has a mount for each.
	Clone []handshake.RawString `json:"clone,omitempty"`
	// End ends the holder if nobody else is connected. The sender has the
	// startLock.
	End bool `json:"end,omitempty"`
}

// Cache is a cache that gets an overlay; see package overlay.
type Cache struct {
	Path  handshake.RawString `json:"path"`
	Empty bool                `json:"empty,omitempty"`
}

// Answer is one message of the holder.
type Answer struct {
	// Impossible says why no overlay can be made on this machine or file system.
	Impossible string `json:"impossible,omitempty"`
	// Failed says why a cache has no overlay, by the index in the request.
	Failed map[int]string `json:"failed,omitempty"`
	// Used is true if the holder does not end, because somebody else is connected.
	Used bool `json:"used,omitempty"`
	// Error says why the request could not be answered.
	Error string `json:"error,omitempty"`
}

const (
	// maxMessage bounds a message, in bytes.
	maxMessage = 128 << 10
	// MaxCaches bounds the caches of a session. The kernel passes at most 253
	// descriptors in a message (SCM_MAX_FD).
	MaxCaches = 128
	// SocketName is the holder's socket, in the directory of the overlays.
	SocketName = "socket"
)
