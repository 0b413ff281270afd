// Package containers makes containers as engines do, as far as a program in one
// can notice.
package containers

// script runs in new namespaces. It hides the files of /proc that Podman hides,
// and keeps the capabilities that it keeps.
const script = `
mount -t proc proc /proc || exit 125
for file in kcore keys timer_list; do
	[ ! -e /proc/$file ] || mount --bind /dev/null /proc/$file || exit 125
done
for dir in bus fs irq sys; do
	mount --bind /proc/$dir /proc/$dir && mount -o remount,bind,ro /proc/$dir || exit 125
done
capabilities=+chown,+dac_override,+fowner,+fsetid,+kill,+net_bind_service,+setfcap,+setgid,+setpcap,+setuid,+sys_chroot
exec setpriv --bounding-set -all,$capabilities --inh-caps -all "$@"
`

// Podman is the command line that runs a program as rootless Podman does: as the
// root of its own namespaces, which is the ordinary user outside. victim is the
// program of tests/victim, which installs a filter like Podman's default one.
func Podman(victim string, program ...string) []string {
	return append([]string{
		"unshare", "--user", "--map-root-user", "--mount", "--pid", "--ipc", "--uts", "--fork", "/bin/sh", "-c", script,
		"sh", victim, "as-podman",
	}, program...)
}
