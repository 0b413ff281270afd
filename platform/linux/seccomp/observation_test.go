package seccomp

import "testing"

// The rules may refuse an observed call for some arguments. Observing it must
// not allow it.
func TestObservation_AllowsNothingThatTheRulesRefuse(t *testing.T) {
	t.Parallel()
	for _, goarch := range []string{"amd64", "arm64"} {
		m, err := machineOf(goarch)
		if err != nil {
			t.Fatal(err)
		}
		for _, plain := range []Filtering{{}, {Offline: true}, {Sockets: true}, {Offline: true, Sockets: true}} {
			for _, level := range []Observed{ObservedCreations, ObservedNamed, ObservedAll} {
				observed := plain
				observed.Observed, observed.Isolated = level, !plain.Offline
				program := filter(t, goarch, observed)
				without := filter(t, goarch, plain)
				for nr := range int32(500) {
					for _, arg := range []uint64{0, 1, 2, 5, 10, 16, 1 << 20, ^uint64(0)} {
						d := seccompData{nr: nr, arch: m.native.audit, args: [6]uint64{arg, arg, arg, arg, arg, arg}}
						got, want := run(t, program, d), run(t, without, d)
						refusedElsewhere := plain.Offline && nr == int32(numberOn(m.native, "socket")) &&
							got == actionNotify
						if want != got && want != actionAllow && !refusedElsewhere {
							t.Fatalf("%s %+v: call %d with %#x is answered with %s, without observation %s", goarch,
								observed, nr, arg, got, want)
						}
					}
				}
			}
		}
	}
}

// Opens for reading that are observed or not, by number, with the reasons.
func TestObservation_SeesOpensOfPathsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	const (
		amd64, i386, arm64, arm = 0xc000003e, 0x40000003, 0xc00000b7, 0x40000028
		here, here32            = ^uint64(99), 1<<32 - 100 // AT_FDCWD in 64 and in 32 bits
		line, line32            = 0x7ffd03dbdabe, 0xffdc3abe
		heap, library           = 0x5624d519d940, 0x7f744dff18e0
		armLine, armHeap        = 0xffffe3a4bd10, 0xaaaae3a4bd10
	)
	for _, test := range []struct {
		goarch   string
		arch     uint32
		nr       int32
		args     [6]uint64
		observed bool
		whatItIs string
	}{
		{"amd64", amd64, 257, [6]uint64{here, line, 0}, true, "cat"},
		{"amd64", amd64, 257, [6]uint64{here32, line, 0}, true, "cat, with an int for the directory"},
		{"amd64", amd64, 257, [6]uint64{here, line, 0xab << 32}, true, "cat, with a high half"},
		{"amd64", amd64, 257, [6]uint64{here, line, 0x8000}, true, "cat of musl, with O_LARGEFILE"},
		{"amd64", amd64, 257, [6]uint64{here, line, 0x100}, true, "grep, with O_NOCTTY"},
		{"amd64", amd64, 257, [6]uint64{here, 0x7ffc00000000, 0}, true, "the lowest stack"},
		{"amd64", amd64, 257, [6]uint64{here, 0x7fffffffefff, 0}, true, "the highest stack"},
		{"amd64", amd64, 2, [6]uint64{line, 0}, true, "open"},
		{"amd64", amd64, 2, [6]uint64{line, 0x8000}, true, "open of musl"},
		{"amd64", i386, 5, [6]uint64{line32, 0x8000}, true, "open by int 0x80"},
		{"amd64", i386, 295, [6]uint64{here32, line32, 0x8000}, true, "openat by int 0x80"},
		{"arm64", arm64, 56, [6]uint64{here, armLine, 0}, true, "cat"},
		{"arm64", arm64, 56, [6]uint64{here, armLine, 0x20000}, true, "cat of musl, with O_LARGEFILE"},
		{"arm64", arm64, 56, [6]uint64{here, 0xfe3a4bd10, 0}, true, "cat in a space of 36 bits"},
		{"arm64", arm64, 56, [6]uint64{here, 0x7fe3a4bd10, 0}, true, "cat in a space of 39 bits"},
		{"arm64", arm64, 56, [6]uint64{here, 0x3ffe3a4bd10, 0}, true, "cat in a space of 42 bits"},
		{"arm64", arm64, 56, [6]uint64{here, 0x7fffe3a4bd10, 0}, true, "cat in a space of 47 bits"},
		{"arm64", arm, 322, [6]uint64{here32, line32, 0x20000}, true, "openat of 32 bits"},
		{"amd64", amd64, 257, [6]uint64{here, heap, 0}, false, "git, which has composed the path"},
		{"amd64", amd64, 257, [6]uint64{here, library, 0}, false, "a library"},
		{"amd64", amd64, 257, [6]uint64{here, 0x7ffbffffffff, 0}, false, "below every stack"},
		{"amd64", amd64, 257, [6]uint64{here, 1 << 47, 0}, false, "not an address of a process"},
		{"amd64", i386, 295, [6]uint64{here32, 0xf7c3abe0, 0}, false, "a library of 32 bits"},
		{"arm64", arm64, 56, [6]uint64{here, armHeap, 0}, false, "git"},
		{"amd64", amd64, 257, [6]uint64{4, line, 0}, false, "below a directory's descriptor"},
		{"amd64", amd64, 257, [6]uint64{here, line, 0x80000}, false, "the loader, with O_CLOEXEC"},
		{
			"amd64", amd64, 257,
			[6]uint64{here, line, 0x20000},
			false,
			"cp -r, with O_NOFOLLOW, which is O_LARGEFILE elsewhere",
		},
		{
			"arm64", arm64, 56,
			[6]uint64{here, armLine, 0x8000},
			false,
			"cp -r, with O_NOFOLLOW, which is O_LARGEFILE elsewhere",
		},
		{"amd64", amd64, 257, [6]uint64{here, line, 0x90800}, false, "ls, with O_DIRECTORY and others"},
		{"amd64", amd64, 257, [6]uint64{here, line, 0x200000}, false, "O_PATH"},
	} {
		for observed, want := range map[Observed]bool{
			ObservedNone: false, ObservedCreations: false, ObservedNamed: test.observed, ObservedAll: true,
		} {
			program := filter(t, test.goarch, Filtering{Observed: observed})
			got := run(t, program, seccompData{nr: test.nr, arch: test.arch, args: test.args})
			if (got == actionNotify) != want || !want && got != actionAllow {
				t.Errorf("%s %q: %s: answered with %s, want observed: %t", test.goarch, observed,
					test.whatItIs, got, want)
			}
		}
	}
}

// Without reports only calls that create a name are observed.
func TestObservation_OfCreationsLeavesOtherChangesAlone(t *testing.T) {
	t.Parallel()
	program := filter(t, "amd64", Filtering{Observed: ObservedCreations})
	const here = ^uint64(99) // AT_FDCWD
	for _, test := range []struct {
		call string
		args [6]uint64
		want bool
	}{
		{"openat", [6]uint64{here, 0, 0x41}, true},   // O_CREAT | O_WRONLY
		{"openat", [6]uint64{here, 0, 0x201}, false}, // O_TRUNC | O_WRONLY
		{"openat", [6]uint64{here, 0, 2}, false},
		{"openat2", [6]uint64{here}, true},
		{"mkdirat", [6]uint64{here}, true},
		{"renameat2", [6]uint64{here}, true},
		{"linkat", [6]uint64{here}, true},
		{"symlinkat", [6]uint64{0, here}, true},
		{"mknodat", [6]uint64{here}, true},
		{"execve", [6]uint64{}, true},
		{"unlinkat", [6]uint64{here}, false},
		{"rmdir", [6]uint64{}, false},
		{"truncate", [6]uint64{}, false},
		{"kill", [6]uint64{1, 9}, false},
	} {
		number := int32(numberOn(amd64, test.call))
		got := run(t, program, seccompData{nr: number, arch: amd64.audit, args: test.args})
		if want := map[bool]Action{true: actionNotify, false: actionAllow}[test.want]; got != want {
			t.Errorf("%s %#x: %s, want %s", test.call, test.args, got, want)
		}
	}
}
