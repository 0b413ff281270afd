package linux

import (
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// These are the rights that a policy's accesses grant. None lets a session make
// device nodes.
const (
	fsRead  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	fsWrite landlock.AccessFSSet = ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo |
		ll.AccessFSMakeSym | ll.AccessFSRefer
	fsExecute landlock.AccessFSSet = ll.AccessFSExecute
	fsDevice  landlock.AccessFSSet = ll.AccessFSIoctlDev
	fsConnect landlock.AccessFSSet = ll.AccessFSResolveUnix
)

// fsFile are the rights that apply to files. The kernel refuses a rule that
// gives a file any other right (EINVAL).
const fsFile landlock.AccessFSSet = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile |
	ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix

const (
	netTCP      landlock.AccessNetSet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	scopeSignal landlock.ScopedSet    = ll.ScopeSignal
)
