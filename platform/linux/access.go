package linux

import (
	"fmt"
	"strings"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// FSAccess is a set of Landlock filesystem rights (LANDLOCK_ACCESS_FS_*,
// linux/landlock.h).
type FSAccess uint64

// fsNames are in the order of the bits.
var fsNames = []string{
	"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file", "make_char", "make_dir", "make_reg",
	"make_sock", "make_fifo", "make_block", "make_sym", "refer", "truncate", "ioctl_dev", "resolve_unix",
}

// String joins the names with blanks. A bit without a name is written 1<<n.
func (a FSAccess) String() string { return bitNames(uint64(a), fsNames) }

// Scope is a set of Landlock scopes (LANDLOCK_SCOPE_*).
type Scope uint64

var scopeNames = []string{"abstract_unix_socket", "signal"}

// String joins the names with blanks. A bit without a name is written 1<<n.
func (s Scope) String() string { return bitNames(uint64(s), scopeNames) }

func bitNames(bits uint64, names []string) string {
	if bits == 0 {
		return "none"
	}
	var out []string
	for i := range 64 {
		switch {
		case bits&(1<<i) == 0:
		case i < len(names):
			out = append(out, names[i])
		default:
			out = append(out, fmt.Sprintf("1<<%d", i))
		}
	}
	return strings.Join(out, " ")
}

const (
	fsRead  = FSAccess(landlock.AccessFSReadFile | landlock.AccessFSReadDir)
	fsWrite = FSAccess(landlock.AccessFSWriteFile | landlock.AccessFSTruncate |
		landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo |
		landlock.AccessFSMakeSym | landlock.AccessFSRefer)
	fsExecute = FSAccess(landlock.AccessFSExecute)
	fsDevice  = FSAccess(landlock.AccessFSIoctlDev)
	fsConnect = FSAccess(landlock.AccessFSResolveUnix)

	scopeSignal = Scope(landlock.ScopeSignal)
)
