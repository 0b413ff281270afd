package seccomp

// System V IPC has no paths for Landlock to judge, and what other processes of
// the user share by it anybody may attach: a display server's windows, a
// database's memory. A session that has an IPC namespace of its own has only
// its own; elsewhere these rules, a filter of their own, answer as a kernel
// without it does.
var ipcRules = []rule{
	{call: "shmget", do: refuse(enosys), why: "shared memory of outside processes"},
	{call: "shmat", do: refuse(enosys), why: "see shmget; an id need not have been asked for"},
	{call: "shmctl", do: refuse(enosys), why: "see shmget; removes it too"},
	{call: "msgget", do: refuse(enosys), why: "messages between outside processes"},
	{call: "msgsnd", do: refuse(enosys), why: "see msgget; an id need not have been asked for"},
	{call: "msgrcv", do: refuse(enosys), why: "see msgget"},
	{call: "msgctl", do: refuse(enosys), why: "see msgget; removes them too"},
	{call: "semget", do: refuse(enosys), why: "semaphores of outside processes"},
	{call: "semop", do: refuse(enosys), why: "see semget; an id need not have been asked for"},
	{call: "semtimedop", do: refuse(enosys), why: "see semget"},
	{call: "semtimedop_time64", do: refuse(enosys), why: "see semget"},
	{call: "semctl", do: refuse(enosys), why: "see semget; removes them too"},
	{call: "ipc", do: refuse(enosys), why: "all of these, for 32-bit x86, where they came late (Linux 5.1)"},
}

// IPCFilter makes the filter of a session without an IPC namespace of its own;
// see [Filter].
func IPCFilter(goarch string) (Program, error) { return assemble(goarch, ipcRules) }
