// Package systemd tests the sidecar in a login session: its cgroup belongs to
// root, and a systemd of the user's own answers, or does not.
//
// Each test has such a systemd for itself, in a mount and a cgroup namespace
// with a private /run. The machine need not be booted with systemd and does not
// notice: /run/systemd/system, by which programs tell, exists in the namespace
// only. It is the machine's own, or, by the program under-bullseye beside this
// file, that of Debian bullseye: 247, the oldest that is promised to work.
package systemd
