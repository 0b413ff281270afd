package stage

import "github.com/landlock-lsm/go-landlock/landlock"

// presets are all the rights and scopes that each ABI version knows, from
// version 1 on.
var presets = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9,
	landlock.V10, landlock.V11,
}

// Handled returns everything that a ruleset of this ABI version governs: all
// rights that the kernel knows, so that what has no rule is refused. A version
// above the last preset is treated as the last. The preset's rights about TCP
// and UDP are left out; see handledNet.
func Handled(abi int) (fs landlock.AccessFSSet, scoped landlock.ScopedSet) {
	if abi < 1 {
		return 0, 0
	}
	preset := presets[min(abi, len(presets))-1]
	return preset.HandledAccessFS, preset.Scoped
}

// abiVersion is one version of Landlock's ABI, without which a protection is
// weaker.
type abiVersion struct {
	version int
	kernel  string // the first release with it
	// without says what a session can do, or cannot do, on a kernel below this
	// version.
	without string
	// protection is the one that is weaker below this version.
	protection string
}

// TruncationABI is the first version that governs truncation (Linux 6.2).
const TruncationABI = 3

// abiVersions are the versions that the report mentions. Below 2 Landlock
// refuses every rename and link between two directories; that weakens no
// protection. Source: Linux Documentation/userspace-api/landlock.rst.
var abiVersions = []abiVersion{
	{
		version: TruncationABI, kernel: "6.2",
		without: "truncate(2) and openat2(2) are refused even for the session's own files, because this " +
			"kernel's Landlock does not govern truncation",
		protection: "filesystem",
	},
	{
		version: 5, kernel: "6.10",
		without: "every ioctl is allowed on devices that may be opened", protection: "filesystem",
	},
	{
		version: 6, kernel: "6.12",
		without: "processes outside the session can be signalled", protection: "signals",
	},
	{
		version: 9, kernel: "7.1",
		without: "Unix sockets of outside processes that have a path can be connected to", protection: "unix_sockets",
	},
}
