package linux

import (
	"testing"
)

// A call that is only looked at may be one that the rules refuse for some arguments: the look must not let it pass.
func TestObservation_RefusesAllThatTheFilterRefusesWithoutIt(t *testing.T) {
	t.Parallel()
	for _, goarch := range []string{"amd64", "arm64"} {
		m, err := machineOf(goarch)
		if err != nil {
			t.Fatal(err)
		}
		for _, plain := range []Filtering{{}, {Offline: true}, {Sockets: true}, {Offline: true, Sockets: true}} {
			for _, level := range []Observed{ObservedChanges, ObservedAll} {
				observed := plain
				observed.Observed, observed.Isolated = level, !plain.Offline
				program := filter(t, goarch, observed)
				without := filter(t, goarch, plain)
				for nr := range int32(500) {
					for _, arg := range []uint64{0, 1, 2, 5, 10, 16, 1 << 20, ^uint64(0)} {
						d := seccompData{nr: nr, arch: m.native.audit, args: [6]uint64{arg, arg, arg, arg, arg, arg}}
						got, want := run(t, program, d), run(t, without, d)
						refusedElsewhere := plain.Offline && nr == int32(m.native.number(syscallNumbers["socket"])) && got == actionNotify
						if want != got && want != actionAllow && !refusedElsewhere {
							t.Fatalf("%s %+v: call %d with %#x is answered with %s, without observation %s", goarch, observed, nr, arg, got, want)
						}
					}
				}
			}
		}
	}
}
