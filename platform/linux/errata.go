package linux

// erratum is a fault that versions of Landlock were released with. Kernels with
// the same version differ in which they have mended, and say so
// (LANDLOCK_CREATE_RULESET_ERRATA, Linux 6.15, in many older ones by their
// point releases). A kernel that cannot say it has mended none.
type erratum struct {
	number int
	// since is the version of the ABI that it came with.
	since int
	// open is what a session can still do where it is not mended.
	open string
}

// errata are those that weaken what is used here. The others: 1 is about TCP
// ports, which are not Landlock's here; 2 refuses signals between threads of
// one process in different domains, and the threads of a session are all in
// one; 4 lets whiteouts be made, which are no devices. Source:
// security/landlock/errata of Linux.
var errata = []erratum{
	{
		number: 3, since: 1,
		open: "renaming or linking in a directory that was moved out of a bind mount may give a file more rights than it had",
	},
}

// unmended lists what sessions can still do on a kernel with this version, and
// these errata mended: bit n-1 stands for erratum n.
func unmended(abi, mended int) (open []string) {
	for _, e := range errata {
		if abi >= e.since && mended&(1<<(e.number-1)) == 0 {
			open = append(open, e.open)
		}
	}
	return open
}
