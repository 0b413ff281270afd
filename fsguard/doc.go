// Package fsguard makes file system calls that a file system which does not
// answer cannot hold up.
//
// A call on NFS, FUSE, SMB and the like waits for another machine or another
// process, perhaps for ever, and often nothing ends the wait, not even SIGKILL:
// a process with such a thread cannot end. So this process makes no such call
// itself. Calls on file systems of this machine's own are made at once, as they
// come; those on others are made by a helper, which is this program run again,
// and given up after some seconds. While one is overdue, further calls on the
// same file system fail at once, so that few threads of the helper ever wait.
//
// Which file system a path is on is told by the table of mounts, which nobody
// can hold up. For that no symlink may be on the path, so each function follows
// them one by one; those whose names end in Plain leave that to the caller.
package fsguard
