// Command kernels boots real Linux kernels in software emulation and runs the
// test suites on each: as root, as an ordinary user with a cgroup of its own,
// and as one without. "make test-kernels" runs it.
//
// A kernel is booted with an initial root file system that holds the sidecar,
// the test binaries, and a few programs of this machine. Its first process is
// the program in the directory guest. It makes the contexts, runs the suites,
// and writes the results to a serial port. That needs no hardware
// virtualisation, no kernel module, and no network beyond Debian's packages.
package main
