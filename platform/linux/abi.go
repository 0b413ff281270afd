package linux

import landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"

// abiVersion is what one version of Landlock's ABI adds, and what is otherwise
// without it.
type abiVersion struct {
	version int
	kernel  string // the first release with it
	fs      FSAccess
	scoped  Scope
	// without says what a session can still do on a kernel below this version,
	// or what it must do without; empty where nothing differs.
	without string
	// protection is what without weakens.
	protection string
}

// truncationABI is the first version that governs truncation.
const truncationABI = 3

// abiVersions is the whole knowledge about versions: a new one is a row. Rights
// that this program never handles (TCP and UDP ports) have no row, because the
// network is not Landlock's here. A kernel above the last row gets the last
// row's rights. Source: Linux Documentation/userspace-api/landlock.rst.
var abiVersions = []abiVersion{
	{version: 1, kernel: "5.13", fs: FSAccess(
		landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile |
			landlock.AccessFSReadDir | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile | landlock.AccessFSMakeChar |
			landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo |
			landlock.AccessFSMakeBlock | landlock.AccessFSMakeSym)},
	// Below 2 every rename and link between two directories is refused; that is
	// an inconvenience, not a hole.
	{version: 2, kernel: "5.19", fs: FSAccess(landlock.AccessFSRefer)},
	{
		version: truncationABI, kernel: "6.2", fs: FSAccess(landlock.AccessFSTruncate),
		without: "truncate(2) and openat2(2) are refused even on the session's own files, because Landlock sees no " +
			"truncation here",
		protection: "filesystem",
	},
	{
		version: 5, kernel: "6.10", fs: FSAccess(landlock.AccessFSIoctlDev),
		without: "devices that may be opened take any ioctl", protection: "filesystem",
	},
	{
		version: 6, kernel: "6.12", scoped: Scope(landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal),
		without: "processes outside can be signalled", protection: "signals",
	},
	{
		version: 9, kernel: "7.1", fs: FSAccess(landlock.AccessFSResolveUnix),
		without: "sockets of outside processes that have a path can be connected to", protection: "unix_sockets",
	},
}

// handled is everything that a ruleset of this ABI version governs: all that
// the kernel can, so that what has no rule is refused.
func handled(abi int) (fs FSAccess, scoped Scope) {
	for _, row := range abiVersions {
		if row.version <= abi {
			fs |= row.fs
			scoped |= row.scoped
		}
	}
	return fs, scoped
}
