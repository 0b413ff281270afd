package fsguard

import "testing"

func TestMounts_FindTheMountOfAPath(t *testing.T) {
	t.Parallel()
	table := newMounts(parseMounts(`20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:5 / /proc rw - proc proc rw
22 21 0:6 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw
23 20 0:7 / /home rw - nfs4 server:/home rw
24 23 0:8 / /home/me/local rw shared:3 - tmpfs tmpfs rw
25 20 0:9 / /mnt/with\040blank rw - fuse.sshfs host:/ rw
26 20 0:10 / /covered rw - fuse a rw
27 26 0:11 / /covered rw - tmpfs b rw
28 20 0:12 / /over rw - tmpfs c rw
29 28 0:13 / /over/there rw - tmpfs d rw
30 20 0:14 / /opt rw - weirdfs e rw
a line that makes no sense
`))
	if !table.remote {
		t.Error("no mount seems to be another machine's")
	}
	for path, want := range map[string]string{
		"/": "ext4", "/homeless": "ext4", "/home": "nfs4", "/home/me": "nfs4",
		"/home/me/local/x":  "nfs4", // its name is looked up on the remote file system
		"/mnt/with blank/x": "fuse.sshfs", "/mnt/with": "ext4", "/over/there/x": "tmpfs", "/opt/x": "weirdfs",
		"/covered/x": "fuse", "/proc/sys/fs/binfmt_misc/x": "autofs",
	} {
		if at := table.at(path); at == nil || at.kind != want {
			t.Errorf("%s is on %+v, expected %s", path, at, want)
		}
	}
	own := "20 1 8:1 / / rw - ext4 a rw\n21 20 0:6 / /proc/sys/fs/binfmt_misc rw - autofs s rw\n"
	if newMounts(parseMounts(own)).remote {
		t.Error("what the kernel mounts for itself counts as another machine's")
	}
	// Of several on the way the last one counts, so that each export is
	// unresponsive by itself. A remote root answers, or nothing works.
	nested := newMounts(parseMounts(`20 1 0:1 / / rw - virtiofs root rw
21 20 0:5 / /proc rw - proc proc rw
22 20 0:6 / /net rw - autofs map rw
23 22 0:7 / /net/a rw - nfs4 a: rw
24 22 0:8 / /net/b rw - nfs4 b: rw
`))
	for path, want := range map[string]string{
		"/etc": "0:1", "/proc/self": "0:5", "/net/c": "0:6", "/net/a/x": "0:7",
		"/net/b": "0:8",
	} {
		if at := nested.at(path); at == nil || at.device != want {
			t.Errorf("%s is on %+v, expected %s", path, at, want)
		}
	}
	if newMounts(nil).at("/") != nil {
		t.Error("without a table the mount of a path is known")
	}
}

// The helper makes the calls on another machine's file systems, and no others.
func TestMounts_RemoteOf(t *testing.T) {
	t.Parallel()
	const local = "20 1 8:1 / / rw - ext4 a rw\n21 20 0:5 / /proc rw - proc proc rw\n"
	mixed := newMounts(parseMounts(local + "22 20 test:1 / /net rw - nfs4 a: rw\n"))
	for path, want := range map[string]bool{
		"/net": true, "/net/a": true, "/net/../net/a": true,
		"/": false, "/etc": false, "/network": false, "net/a": false,
	} {
		remote := mixed.remoteOf(path)
		if (remote != nil) != want || want && remote != remoteNamed("test:1", "nfs4") {
			t.Errorf("%s: %+v", path, remote)
		}
		if remote := newMounts(parseMounts(local)).remoteOf(path); remote != nil {
			t.Errorf("control: %s on local file systems alone: %+v", path, remote)
		}
	}
}

func TestTable_IsThisMachines(t *testing.T) {
	t.Parallel()
	at := table().at("/proc/self")
	if at == nil || at.kind != "proc" {
		t.Errorf("/proc is on %+v", at)
	}
	if again := table(); again != table() {
		t.Error("the table is read at each call")
	}
}
