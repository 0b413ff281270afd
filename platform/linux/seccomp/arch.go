package seccomp

import "fmt"

// arch is one architecture by which a program can make system calls.
type arch struct {
	// audit identifies it in struct seccomp_data (AUDIT_ARCH_*, linux/audit.h).
	audit  uint32
	number func(numbers) int
	// largeFile is O_LARGEFILE (asm/fcntl.h).
	largeFile uint64
	// stacks are where the first stack of a process can be. The command line is
	// at its top (fs/binfmt_elf.c).
	stacks []region
}

// region is the top part of an address space, given by the bits that all its
// addresses share.
type region struct{ mask, bits uint64 }

// topOf returns the last 1<<part bytes of an address space of 1<<space bytes.
// The kernel maps nothing but stacks there: mmap(2) starts below the lowest
// possible stack (mmap_base, mm/util.c and arch/x86/mm/mmap.c). Libraries are
// there too if a process has switched randomisation off (personality(2),
// ADDR_NO_RANDOMIZE).
func topOf(space, part int) region {
	return region{mask: ^uint64(0) << part, bits: 1<<space - 1<<part}
}

// A stack begins up to STACK_RND_MASK pages below the end of the address space
// (asm/elf.h): 16 GiB on amd64, 1 GiB on arm64, 8 MiB with 32 bits. The stack
// itself needs about as much again. The address space of arm64 depends on the
// kernel's CONFIG_ARM64_VA_BITS: 48 bits, or 47, 42 or 36 with larger pages, or
// 39 on small boards.
var (
	amd64 = &arch{0xc000003e, func(n numbers) int { return n.amd64 }, 0o100000, []region{topOf(47, 34)}}
	arm64 = &arch{
		0xc00000b7, func(n numbers) int { return n.arm64 }, 0o400000,
		[]region{topOf(48, 30), topOf(47, 30), topOf(42, 30), topOf(39, 30), topOf(36, 30)},
	}
	i386 = &arch{0x40000003, func(n numbers) int { return n.i386 }, 0o100000, []region{topOf(32, 24)}}
	arm  = &arch{0x40000028, func(n numbers) int { return n.arm }, 0o400000, []region{topOf(32, 24)}}
)

// machine says which system calls a kernel accepts: those of its own
// architecture and those of an older, 32-bit one. Any program may make both
// kinds; on amd64 the instruction int 0x80 is enough.
type machine struct {
	native, compat *arch
	// x32 is true if there is a third kind: calls with 32-bit pointers, whose
	// numbers are the native ones with x32Bit set.
	x32 bool
}

// x32Bit marks the number of an x32 call (asm/unistd.h, __X32_SYSCALL_BIT).
const x32Bit = 0x40000000

// Number is one way to make a system call: by its number on one architecture
// (AUDIT_ARCH_*, linux/audit.h).
type Number struct {
	Arch uint32
	Nr   int
}

// Numbers lists every way in which a program on a machine can make a call: as
// the machine's own architecture does, and as its 32-bit predecessor does.
// goarch is Go's name of the architecture.
func Numbers(goarch, call string) ([]Number, error) {
	m, err := machineOf(goarch)
	if err != nil {
		return nil, err
	}
	var list []Number
	known, named := numbersOf(call)
	for _, a := range []*arch{m.native, m.compat} {
		if nr := a.number(known); named && nr != none {
			list = append(list, Number{Arch: a.audit, Nr: nr})
		}
	}
	return list, nil
}

// IsCall reports whether a number means the named call, on any architecture
// that this package knows.
func IsCall(name string, number Number) bool {
	known, named := numbersOf(name)
	for _, a := range []*arch{amd64, arm64, i386, arm} {
		if named && a.audit == number.Arch && a.number(known) == number.Nr {
			return true
		}
	}
	return false
}

// machineOf takes Go's name of an architecture.
func machineOf(goarch string) (machine, error) {
	switch goarch {
	case "amd64":
		return machine{native: amd64, compat: i386, x32: true}, nil
	case "arm64":
		return machine{native: arm64, compat: arm}, nil
	}
	return machine{}, fmt.Errorf("filter system calls: the numbers of architecture %s are not known", goarch)
}
