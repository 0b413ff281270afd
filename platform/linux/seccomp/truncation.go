package seccomp

// Below ABI 3 Landlock does not see truncation: truncate(2) needs no open file,
// and an open for reading empties a file by O_TRUNC with no right but that to
// read, or, with the access mode 3, with none. What is left to programs is to
// open for writing, which Landlock sees: O_TRUNC with O_WRONLY or O_RDWR, and
// ftruncate(2). Compilers, editors and databases do that.

const (
	openAccessMode, openTruncate = 0x3, 0x200 // O_ACCMODE, O_TRUNC: the same numbers on every architecture here
	openNeither                  = 0x3        // only for ioctl(2); the kernel opens without a right to read or write
)

// truncationRules close that by a filter of its own. EACCES is what Landlock
// answers.
var truncationRules = []rule{
	{call: "truncate", do: refuse(eacces), why: "empties any file of the user's by its path"},
	{call: "truncate64", do: refuse(eacces), why: "see truncate"},
	{call: "open", when: []condition{maskedArgIs(1, openAccessMode|openTruncate, openTruncate)}, do: refuse(eacces),
		why: "see above"},
	{call: "open", when: []condition{maskedArgIs(1, openAccessMode|openTruncate, openTruncate|openNeither)},
		do: refuse(eacces), why: "see above"},
	{call: "openat", when: []condition{maskedArgIs(2, openAccessMode|openTruncate, openTruncate)}, do: refuse(eacces),
		why: "see above"},
	{call: "openat", when: []condition{maskedArgIs(2, openAccessMode|openTruncate, openTruncate|openNeither)},
		do: refuse(eacces), why: "see above"},
	{call: "openat2", do: refuse(enosys), why: "its flags lie in memory, where a filter cannot look; programs take " +
		"ENOSYS for an old kernel and use openat"},
}

// TruncationFilter makes the second filter of a session on a kernel with
// Landlock below ABI 3; see [Filter].
func TruncationFilter(goarch string) (Program, error) { return assemble(goarch, truncationRules) }
