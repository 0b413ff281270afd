package darwin

import (
	"fmt"
	"testing"
)

// Numbers of sysctl(3), from sys/sysctl.h.
const (
	ctlKern      = 1
	kernProc     = 14
	kernArgs     = 38 // KERN_PROCARGS
	kernArgsEnv  = 49 // KERN_PROCARGS2
	kernProcPID  = 1  // KERN_PROC_PID
	kernOSType   = 1
	someonesPID  = 4711
	smallestPID  = 1
	greatestPID  = 99999 // PID_MAX of xnu
	negativePID  = -1
	noSuchNumber = 0
)

// namesOf are the names of the nodes that the test reads, as in xnu.
var namesOf = map[[2]int]string{
	{ctlKern, kernOSType}: "kern.ostype", {ctlKern, kernProc}: "kern.proc",
	{ctlKern, kernArgs}: "kern.procargs", {ctlKern, kernArgsEnv}: "kern.procargs2",
}

// byNumbers is the name that the kernel asks Seatbelt about when a program calls
// sysctl(3) by numbers: the node's, and the numbers after it (sysctl_root in
// bsd/kern/kern_newsysctl.c of xnu).
func byNumbers(t *testing.T, numbers ...int) string {
	t.Helper()
	name, ok := namesOf[[2]int{numbers[0], numbers[1]}]
	if !ok {
		t.Fatalf("no name for %v", numbers)
	}
	for _, number := range numbers[2:] {
		if number == kernProcPID && name == "kern.proc" {
			name += ".pid"
			continue
		}
		name += fmt.Sprintf(".%d", number)
	}
	return name
}

// Arguments and environments of other processes hold keys of the editor and
// tokens of other sessions. The kernel gives them if either the sysctl or the
// inspection of the process is allowed, so both are denied.
func TestProfile_ArgumentsOfOthersAreDeniedInEverySpelling(t *testing.T) {
	t.Parallel()
	denied := []string{
		"kern.procargs", "kern.procargs2", // sysctlbyname(3)
		"kern.procargs.4711", "kern.procargs2.4711", "kern.procargs2.", "kern.procargs3",
	}
	for _, pid := range []int{someonesPID, smallestPID, greatestPID, negativePID, noSuchNumber} {
		denied = append(denied, byNumbers(t, ctlKern, kernArgs, pid), byNumbers(t, ctlKern, kernArgsEnv, pid))
	}
	controls := []string{
		"kern.ostype", "kern.proc", "hw.ncpu", byNumbers(t, ctlKern, kernProc, kernProcPID, someonesPID),
	}
	for name, plan := range samples() {
		if plan.TrackOnly {
			continue
		}
		profile := profileOf(t, plan, mac())
		for _, spelling := range denied {
			for _, operation := range []string{"sysctl-read", "sysctl-write"} {
				if ask(t, profile, with(operation, "sysctl-name", spelling)) {
					t.Errorf("%s: %s %s is allowed", name, operation, spelling)
				}
			}
		}
		for _, control := range controls {
			if !ask(t, profile, with("sysctl-read", "sysctl-name", control)) {
				t.Errorf("%s: control: %s is denied", name, control)
			}
		}
		for _, operation := range []string{
			"process-info-pidinfo", "process-info-pidfdinfo", "process-info-setcontrol", "process-info-rusage",
		} {
			if ask(t, profile, with(operation, "target", "others")) {
				t.Errorf("%s: %s of others is allowed", name, operation)
			}
			if !ask(t, profile, with(operation, "target", "same-sandbox")) {
				t.Errorf("%s: control: %s of the session's own is denied", name, operation)
			}
		}
	}
}
