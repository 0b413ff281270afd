// Package handshake is what the sidecar and the stage say to each other, and the
// stage's half of it.
//
// The sidecar sends an [Order]. The stage confines itself, answers with [Report]s
// and executes the target ([RunStage]). It needs nothing that only a sidecar
// needs, so its code can be read by itself. The sidecar's half is in package
// platform.
//
// See docs/design/handshake.md.
package handshake
