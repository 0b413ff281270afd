package linux

// erratum is a fault of released versions of Landlock. Kernels with the same
// ABI version differ in which faults they have fixed, and say so
// (LANDLOCK_CREATE_RULESET_ERRATA, Linux 6.15, in many older ones by their
// point releases). A kernel that cannot report it has fixed none.
type erratum struct {
	number int
	// since is the ABI version that introduced the fault.
	since int
	// effect says what a session can do if the fault is not fixed.
	effect string
}

// errata are the faults that weaken what is used here. The others: 1 is about
// TCP ports, which Landlock does not govern here; 2 refuses signals between
// threads of one process in different domains, but all threads of a session are
// in one; 4 lets whiteouts be made, which are no devices. Source:
// security/landlock/errata of Linux.
var errata = []erratum{
	{
		number: 3, since: 1,
		effect: "renaming or linking in a directory that was moved out of a bind mount may give a file more " +
			"rights than it had",
	},
}

// unfixedErrata lists the effects of the faults of a kernel with this ABI
// version. Bit n-1 of fixed means that the kernel has fixed erratum n.
func unfixedErrata(abi, fixed int) (effects []string) {
	for _, e := range errata {
		if abi >= e.since && fixed&(1<<(e.number-1)) == 0 {
			effects = append(effects, e.effect)
		}
	}
	return effects
}
