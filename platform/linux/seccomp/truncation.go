package seccomp

// Below ABI 3 Landlock does not govern truncation. truncate(2) needs no open
// file. O_TRUNC with O_RDONLY needs only the right to read, and with the access
// mode 3 no right at all. A filter of its own refuses these. Programs can still
// open for writing with O_TRUNC, and use ftruncate(2): Landlock governs the
// right to write. Compilers, editors and databases work that way.

const (
	// O_ACCMODE and O_TRUNC, the same on all architectures that this package
	// knows.
	openAccessMode, openTruncate = 0x3, 0x200
	// openNeither is an access mode for ioctl(2) alone: the file can be neither
	// read nor written.
	openNeither = 0x3
)

// truncationRules answer EACCES, as Landlock does from ABI 3 on.
var truncationRules = []rule{
	{call: "truncate", do: refuseEACCES, why: "empties any file of the user by its path"},
	{call: "truncate64", do: refuseEACCES, why: "see truncate"},
	{
		call: "open", when: []condition{maskedArgIs(1, openAccessMode|openTruncate, openTruncate)}, do: refuseEACCES,
		why: "empties a file without the right to write",
	},
	{
		call: "open", when: []condition{maskedArgIs(1, openAccessMode|openTruncate, openTruncate|openNeither)},
		do: refuseEACCES, why: "empties a file without the right to write",
	},
	{
		call: "openat", when: []condition{maskedArgIs(2, openAccessMode|openTruncate, openTruncate)}, do: refuseEACCES,
		why: "empties a file without the right to write",
	},
	{
		call: "openat", when: []condition{maskedArgIs(2, openAccessMode|openTruncate, openTruncate|openNeither)},
		do: refuseEACCES, why: "empties a file without the right to write",
	},
	{
		call: "openat2", do: refuseENOSYS,
		why: "its flags are in memory, which a filter cannot read; after ENOSYS programs use openat",
	},
}

// TruncationFilter makes the second filter of a session if the kernel's Landlock
// is below ABI 3; see [Filter].
func TruncationFilter(goarch string) (Program, error) { return assemble(goarch, truncationRules) }
