package seccomp

// ipcRules refuse System V IPC to a session that has no IPC namespace of its
// own. Objects of System V IPC have no paths, so Landlock does not govern them,
// and a session could attach to those of the user's other processes: the
// windows of a display server, the memory of a database. The rules make a
// filter of their own and answer as a kernel without System V IPC does.
var ipcRules = []rule{
	{call: "shmget", do: refuseENOSYS, why: "shared memory of outside processes"},
	{call: "shmat", do: refuseENOSYS, why: "see shmget; an id can be guessed"},
	{call: "shmctl", do: refuseENOSYS, why: "see shmget; removes it too"},
	{call: "msgget", do: refuseENOSYS, why: "messages between outside processes"},
	{call: "msgsnd", do: refuseENOSYS, why: "see msgget; an id can be guessed"},
	{call: "msgrcv", do: refuseENOSYS, why: "see msgget"},
	{call: "msgctl", do: refuseENOSYS, why: "see msgget; removes them too"},
	{call: "semget", do: refuseENOSYS, why: "semaphores of outside processes"},
	{call: "semop", do: refuseENOSYS, why: "see semget; an id can be guessed"},
	{call: "semtimedop", do: refuseENOSYS, why: "see semget"},
	{call: "semtimedop_time64", do: refuseENOSYS, why: "see semget"},
	{call: "semctl", do: refuseENOSYS, why: "see semget; removes them too"},
	{call: "ipc", do: refuseENOSYS, why: "all of these, for 32-bit x86, which got calls of their own in Linux 5.1"},
}

// IPCFilter makes the additional filter of a session that has no IPC namespace
// of its own; see [Filter].
func IPCFilter(goarch string) (Program, error) { return assemble(goarch, ipcRules) }
