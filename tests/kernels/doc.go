// Command kernels boots real Linux kernels in software emulation and holds the
// sidecar to its word on each: the suites run inside as root, as an ordinary
// user with a cgroup of his own, and as one without. "make test-kernels" runs
// it.
//
// A kernel is booted with an initial root file system that holds the sidecar,
// the test binaries, and a few programs of this machine; its first process is
// the program in the directory guest, which makes the contexts, runs the
// suites, and writes what came of them to a serial port. Nothing of this needs
// hardware virtualisation, a kernel module, or the network beyond Debian's
// packages.
package main
