// Package fsguard makes file system calls that an unresponsive file system
// cannot block.
//
// A call on NFS, FUSE, SMB and the like waits for another machine or another
// process, perhaps forever. Often nothing ends the wait, not even SIGKILL, and
// a process with such a thread cannot end. So this process makes no such call
// itself. It makes calls on local file systems directly. A helper, which is
// this program run again, makes the others, and they are given up after two
// seconds. While one is overdue, further calls on the same file system fail at
// once.
//
// [Stat], [ReadDir], [ReadFile] and the others replace the functions of package
// os, which a test forbids on paths that a user, a project or a session chooses.
// [Replace] and [Create] write files whole, and [Define] is for other calls. The
// functions whose names end in Plain expect a path without symlinks; [ReadPlain]
// refuses any other.
// See docs/design/unresponsive-file-systems.md.
package fsguard
