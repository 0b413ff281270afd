// Package libsystem calls functions of macOS's libSystem that golang.org/x/sys
// lacks: those of Seatbelt, and two that identify processes and files as the
// kernel does.
//
// The functions are bound like those of x/sys, without cgo: an import in the
// object file, an assembly stub that jumps to it, and package syscall's way of
// calling C. Each exists in every macOS that Go 1.26 runs on (12 and newer). If
// one were missing, dyld would refuse to start the program. On other systems
// the package is empty.
package libsystem
