// Package message is what a session's stage and the sidecar say to the holder of
// overlays; see package overlay. The stage gets its mounts by [Clone].
package message
