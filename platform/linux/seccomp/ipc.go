package seccomp

// ipcRules refuse System V IPC to a session that has no IPC namespace of its
// own. Objects of System V IPC have no paths, so Landlock does not govern them,
// and a session could attach to those of the user's other processes: the
// windows of a display server, the memory of a database. The rules make a
// filter of their own and answer as a kernel without System V IPC does.
var ipcRules = []rule{
	{call: "shmget", do: refuse(enosys), why: "shared memory of outside processes"},
	{call: "shmat", do: refuse(enosys), why: "see shmget; an id can be guessed"},
	{call: "shmctl", do: refuse(enosys), why: "see shmget; removes it too"},
	{call: "msgget", do: refuse(enosys), why: "messages between outside processes"},
	{call: "msgsnd", do: refuse(enosys), why: "see msgget; an id can be guessed"},
	{call: "msgrcv", do: refuse(enosys), why: "see msgget"},
	{call: "msgctl", do: refuse(enosys), why: "see msgget; removes them too"},
	{call: "semget", do: refuse(enosys), why: "semaphores of outside processes"},
	{call: "semop", do: refuse(enosys), why: "see semget; an id can be guessed"},
	{call: "semtimedop", do: refuse(enosys), why: "see semget"},
	{call: "semtimedop_time64", do: refuse(enosys), why: "see semget"},
	{call: "semctl", do: refuse(enosys), why: "see semget; removes them too"},
	{call: "ipc", do: refuse(enosys), why: "all of these, for 32-bit x86, which got calls of their own in Linux 5.1"},
}

// IPCFilter makes the additional filter of a session that has no IPC namespace
// of its own; see [Filter].
func IPCFilter(goarch string) (Program, error) { return assemble(goarch, ipcRules) }
