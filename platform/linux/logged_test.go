package linux

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/audit"
)

// Each logged denial is reported as the right access, or not at all if the
// observer reports it or nobody needs to know.
func TestLogged_IsReportedAsTheRightAccess(t *testing.T) {
	t.Parallel()
	const auditArchAMD64 = 0xc000003e // linux/audit.h
	call := func(number int, args ...uint64) audit.Call {
		c := audit.Call{Arch: auditArchAMD64, Number: number}
		copy(c.Args[:], args)
		return c
	}
	const kill, pidfdSendSignal = 62, 424
	for name, test := range map[string]struct {
		refusal audit.Denial
		access  platform.Refused // "": not reported
		target  string
		changes bool // the observer reports denied reads
	}{
		"a file": {
			refusal: audit.Denial{Blockers: []string{"fs.read_file"}, Path: "/x"}, access: platform.RefusedRead,
			target: "/x",
		},
		"a directory": {
			refusal: audit.Denial{Blockers: []string{"fs.read_dir"}, Path: "/x"}, access: platform.RefusedRead,
			target: "/x",
		},
		"its own": {
			refusal: audit.Denial{
				Blockers: []string{"fs.read_file"}, Path: "/proc/9/mem",
				PID: 9,
			}, access: platform.RefusedRead, target: "/proc/self/mem",
		},
		"another's": {
			refusal: audit.Denial{
				Blockers: []string{"fs.read_file"}, Path: "/proc/99/mem",
				PID: 9,
			}, access: platform.RefusedRead, target: "/proc/99/mem",
		},
		"observed": {refusal: audit.Denial{Blockers: []string{"fs.read_file"}, Path: "/x"}, changes: true},
		"of no interest": {refusal: audit.Denial{
			Blockers: []string{"fs.read_file"},
			Path:     "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
		}},
		"without a path": {refusal: audit.Denial{Blockers: []string{"fs.read_file"}}},
		"a change":       {refusal: audit.Denial{Blockers: []string{"fs.write_file", "fs.read_file"}, Path: "/x"}},
		"a program":      {refusal: audit.Denial{Blockers: []string{"fs.execute", "fs.read_file"}, Path: "/x"}},
		"a name":         {refusal: audit.Denial{Blockers: []string{"fs.make_reg"}, Path: "/x"}},
		"a socket": {
			refusal: audit.Denial{
				Blockers: []string{"fs.resolve_unix"},
				Path:     "/s",
			}, access: platform.RefusedConnectUnix, target: "/s",
		},
		"an abstract socket": {
			refusal: audit.Denial{
				Blockers: []string{"scope.abstract_unix_socket"},
				Path:     "\x00s",
			}, access: platform.RefusedConnectUnix, target: "abstract:s",
		},
		"a signal": {
			refusal: audit.Denial{
				Blockers: []string{"scope.signal"}, Peer: 7,
				Call: call(kill, 7, 15),
			}, access: platform.RefusedSignal, target: "7",
		},
		"a signal by a handle": {
			refusal: audit.Denial{Blockers: []string{"scope.signal"}, Peer: 7, Call: call(pidfdSendSignal, 0, 15)},
			access:  platform.RefusedSignal, target: "7",
		},
		"a signal by an unknown call": {
			refusal: audit.Denial{Blockers: []string{"scope.signal"}, Peer: 7},
			access:  platform.RefusedSignal, target: "7",
		},
		"signal 0": {refusal: audit.Denial{
			Blockers: []string{"scope.signal"}, Peer: 7,
			Call: call(kill, 7, 0),
		}},
		"signal 0 by a handle": {refusal: audit.Denial{
			Blockers: []string{"scope.signal"}, Peer: 7,
			Call: call(pidfdSendSignal, 3, 0),
		}},
		"everybody": {refusal: audit.Denial{
			Blockers: []string{"scope.signal"}, Peer: 7,
			Call: call(kill, ^uint64(0), 15),
		}},
		"a group": {refusal: audit.Denial{
			Blockers: []string{"scope.signal"}, Peer: 7,
			Call: call(kill, 1<<32-7, 15),
		}},
		"an unknown right": {refusal: audit.Denial{Blockers: []string{"scope.something"}, Path: "/x", Peer: 7}},
	} {
		denial, reported := loggedDenial(test.refusal, !test.changes)
		if reported != (test.access != "") || reported &&
			(denial.Access != test.access || denial.Target != test.target ||
				denial.Count != 1) {
			t.Errorf("%s: reported: %t, %+v", name, reported, denial)
		}
	}
}
