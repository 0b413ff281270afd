package platform

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"

// What is said in the handshake belongs to package handshake, which the stage
// can use without the rest of this package. Callers know it by these names.
type (
	// Order is what the sidecar wants executed.
	Order = handshake.Order
	// Orders are instructions of a backend to its part in the stage.
	Orders = handshake.Orders
	// Terminal describes a terminal that the stage opens.
	Terminal = handshake.Terminal
	// Failure says why the target was not executed.
	Failure = handshake.Failure
	// Step is the part of the stage's work that failed.
	Step = handshake.Step
	// Enforcement is how one process is confined, as the stage reported it.
	Enforcement = handshake.Enforcement
	// Protection says how far one protection holds.
	Protection = handshake.Protection
	// Status says how far a protection holds.
	Status = handshake.Status
	// Closed is an inherited descriptor that the program does not get.
	Closed = handshake.Closed
	// Missing is a granted path that has no effect.
	Missing = handshake.Missing
)

// The steps of the stage's work; see package handshake.
const (
	StepDirectory = handshake.StepDirectory
	StepConfine   = handshake.StepConfine
	StepProgram   = handshake.StepProgram
)

// How far a protection holds; see package handshake.
const (
	Enforced = handshake.Enforced
	Degraded = handshake.Degraded
	Absent   = handshake.Absent
)

// The protections, as replies name them.
const (
	Filesystem      = handshake.Filesystem
	FileTree        = handshake.FileTree
	TemporaryFiles  = handshake.TemporaryFiles
	HiddenPaths     = handshake.HiddenPaths
	ToolchainCaches = handshake.ToolchainCaches
	Execute         = handshake.Execute
	Network         = handshake.Network
	NetworkHosts    = handshake.NetworkHosts
	UnixSockets     = handshake.UnixSockets
	Signals         = handshake.Signals
	ProtectedPaths  = handshake.ProtectedPaths
	Syscalls        = handshake.Syscalls
	Limits          = handshake.Limits
	ProcessTracking = handshake.ProcessTracking
	Denials         = handshake.Denials
)

// Protections lists every protection in the order of the reference.
var Protections = handshake.Protections
