package spawn

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// wroteNothing reports whether the session has changed no file. survived is the
// error of a kill: what has survived may still write.
func (r *running) wroteNothing(survived error) bool {
	supervision, shared := r.supervision, r.shared
	if call, member := r.group.(*call); member {
		// Who wrote is not told apart, as a file stays open for whoever opened it.
		supervision, shared = call.shared.running.supervision, call.shared
	}
	if shared != nil && shared.writable.Load() {
		return false
	}
	witness, is := supervision.(platform.ChangeWitness)
	return is && survived == nil && !r.writable && witness.ChangedNothing()
}

// anyWritable reports whether files can change through one of the descriptors
// that a program is started with, although it asks nobody.
func anyWritable(files []*os.File) bool { return slices.ContainsFunc(files, writable) }

// writable is true for a file that is open for writing, and for a socket: another
// process can send such a file through that. Unknown kinds count, too.
func writable(file *os.File) bool {
	if file == nil {
		return false // /dev/null
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return true
	}
	harmless := false
	err = raw.Control(func(fd uintptr) {
		var stat unix.Stat_t
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil || unix.Fstat(int(fd), &stat) != nil {
			return
		}
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFCHR, unix.S_IFIFO, unix.S_IFDIR:
			harmless = true
		case unix.S_IFREG:
			harmless = flags&unix.O_ACCMODE == unix.O_RDONLY
		}
	})
	return err != nil || !harmless
}
