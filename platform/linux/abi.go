package linux

import landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"

// abiVersion is what one version of Landlock's ABI adds.
type abiVersion struct {
	version int
	kernel  string // the first release with it
	fs      FSAccess
	scoped  Scope
	// without says what a session can do, or cannot do, on a kernel below this
	// version; empty if the report need not mention it.
	without string
	// protection is the one that is weaker below this version.
	protection string
}

// truncationABI is the first version that governs truncation (Linux 6.2).
const truncationABI = 3

// abiVersions are all versions that matter here; a new one is a row. Versions
// that add only rights about TCP or UDP have no row: Landlock governs TCP only
// in sessions that reach hosts without namespaces; see handledNet. A kernel
// above the last row is treated as the last row.
// Source: Linux Documentation/userspace-api/landlock.rst.
var abiVersions = []abiVersion{
	{version: 1, kernel: "5.13", fs: FSAccess(
		landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile |
			landlock.AccessFSReadDir | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
			landlock.AccessFSMakeChar |
			landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock |
			landlock.AccessFSMakeFifo | landlock.AccessFSMakeBlock | landlock.AccessFSMakeSym)},
	// Below 2 Landlock refuses every rename and link between two directories.
	// That weakens no protection.
	{version: 2, kernel: "5.19", fs: FSAccess(landlock.AccessFSRefer)},
	{
		version: truncationABI, kernel: "6.2", fs: FSAccess(landlock.AccessFSTruncate),
		without: "truncate(2) and openat2(2) are refused even for the session's own files, because this " +
			"kernel's Landlock does not govern truncation",
		protection: "filesystem",
	},
	{
		version: 5, kernel: "6.10", fs: FSAccess(landlock.AccessFSIoctlDev),
		without: "every ioctl is allowed on devices that may be opened", protection: "filesystem",
	},
	{
		version: 6, kernel: "6.12", scoped: Scope(landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal),
		without: "processes outside the session can be signalled", protection: "signals",
	},
	{
		version: 9, kernel: "7.1", fs: FSAccess(landlock.AccessFSResolveUnix),
		without: "Unix sockets of outside processes that have a path can be connected to", protection: "unix_sockets",
	},
}

// handled returns everything that a ruleset of this ABI version governs: all
// rights that the kernel knows, so that what has no rule is refused.
func handled(abi int) (fs FSAccess, scoped Scope) {
	for _, row := range abiVersions {
		if row.version <= abi {
			fs |= row.fs
			scoped |= row.scoped
		}
	}
	return fs, scoped
}
