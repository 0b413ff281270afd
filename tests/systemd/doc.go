// Package systemd tests the sidecar in a login session: its cgroup belongs to
// root, and the user's systemd answers or does not.
//
// Each test has a systemd of its own, in a mount and a cgroup namespace with a
// private /run. The machine need not be booted with systemd and does not
// notice: /run/systemd/system, by which programs detect it, exists in the
// namespace only. The systemd is the machine's. The program under-bullseye
// replaces it by that of Debian bullseye: 247, the oldest supported one.
package systemd
