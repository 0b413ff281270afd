package main

// suite is a package whose tests run in a guest.
type suite struct {
	pkg string
	// data are directories beside the tests that they read.
	data []string
}

var (
	// everywhere are the suites of every kernel, beside what doctor proves.
	everywhere = []suite{{pkg: "tests/attack", data: []string{"attacks"}}, {pkg: "tests/lifetime"}}
	// groups is what holds processes together, which does not ask for a sandbox.
	groups = []suite{{pkg: "lifecycle"}}
	// confining is how a sandbox is made, and what is promised of it.
	confining = []suite{{pkg: "platform"}, {pkg: "platform/linux", data: []string{"testdata"}}}
	sessions  = []suite{{pkg: "spawn"}}
)

// commands are what the tests start of this module.
var commands = []string{"cmd/sandbox-sidecar", "tests/victim"}

// programs are this machine's that the tests start, with the libraries that they need.
var programs = []string{
	"awk", "basename", "bash", "cat", "chmod", "chroot", "cp", "cut", "date", "dd", "dirname", "echo", "env", "false", "find", "grep", "head",
	"hostname", "id", "ipcmk", "ipcrm", "ipcs", "kill", "link", "ln", "ls", "mkdir", "mkfifo", "mknod", "mktemp", "mount", "mv", "nsenter",
	"printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "setpriv", "setsid", "sh", "sleep", "sort", "stat", "stty", "sync", "tail",
	"tee", "test", "timeout", "touch", "tr", "true", "truncate", "tty", "umount", "uname", "unlink", "unshare", "wc", "xargs", "yes",
	"curl", "git", "python3", "ssh-add", "ssh-agent", "ssh-keygen", "tmux",
}
