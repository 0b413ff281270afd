// Package result is what a guest sends to its host over a serial port: one line
// of JSON for each fact.
package result

// Line is one line; one field is set.
type Line struct {
	Begin  *Begin  `json:"begin,omitempty"`
	Run    *Run    `json:"run,omitempty"`
	Doctor *Doctor `json:"doctor,omitempty"`
	// Note is a fault of the guest's own set-up.
	Note string `json:"note,omitempty"`
	End  bool   `json:"end,omitempty"`
}

// Begin is the machine as the guest finds it.
type Begin struct {
	Release string `json:"release"`
	// ABI is Landlock's version; 0 if there is none.
	ABI int `json:"abi"`
	// Errata are the defects of Landlock that this kernel has fixed, as a set
	// of bits.
	Errata int `json:"errata"`
	// LSM are the security modules that are switched on.
	LSM string `json:"lsm"`
	// Controllers are those of the cgroup v2 hierarchy.
	Controllers string `json:"controllers"`
	// Seconds is how long the kernel took to start.
	Seconds float64 `json:"seconds"`
}

// Run is one suite in one context.
type Run struct {
	Context string   `json:"context"`
	Suite   string   `json:"suite"`
	Exit    int      `json:"exit"`
	Passed  []string `json:"passed,omitempty"`
	Failed  []string `json:"failed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
	Seconds float64  `json:"seconds"`
	// Tally is how many attacks had which result, by the names of package
	// attack; nil for every other suite.
	Tally map[string]int `json:"tally,omitempty"`
}

// Doctor is what the sidecar reports in one context, as "doctor --json" prints
// it.
type Doctor struct {
	Context     string       `json:"context"`
	Protections []Protection `json:"protections"`
	Seconds     float64      `json:"seconds"`
}

// Protection is one of them.
type Protection struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	Mechanism string   `json:"mechanism"`
	Detail    string   `json:"detail"`
	Attacks   []Attack `json:"attacks"`
}

// Attack is one that doctor has tried.
type Attack struct {
	Attack      string `json:"attack"`
	Unsandboxed string `json:"unsandboxed"`
	Session     string `json:"session"`
	// Status is the session's own.
	Status string `json:"status"`
	// Verdict is "held", "open" (as reported), "broken", or "untried".
	Verdict string `json:"verdict"`
}
