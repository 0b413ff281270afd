package reserve

// SmallRuntime is an environment for processes of this program that do one
// thing after another. Without it Go's runtime starts threads for every
// processor, and searches a list of mounts for the limits of its cgroup. That
// takes a fifth of such a process's start.
var SmallRuntime = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}
