package stage

import (
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// The rights that a policy's accesses grant. None lets a session make device
// nodes.
const (
	FSRead  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	FSWrite landlock.AccessFSSet = ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo |
		ll.AccessFSMakeSym | ll.AccessFSRefer
	FSExecute landlock.AccessFSSet = ll.AccessFSExecute
	fsDevice  landlock.AccessFSSet = ll.AccessFSIoctlDev
	FSConnect landlock.AccessFSSet = ll.AccessFSResolveUnix
)

// fsFile are the rights that apply to files. The kernel refuses a rule that
// gives a file any other right (EINVAL).
const fsFile landlock.AccessFSSet = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile |
	ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix

// ScopeSignal keeps a session from signalling processes outside.
const ScopeSignal landlock.ScopedSet = ll.ScopeSignal

const netTCP landlock.AccessNetSet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
