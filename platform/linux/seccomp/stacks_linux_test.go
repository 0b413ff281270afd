package seccomp

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The command line of every process is where the filter expects stacks. If
// address space layouts are random, no library or heap is there.
func TestStacks_AreWhereTheFilterExpectsThem(t *testing.T) {
	t.Parallel()
	m, err := machineOf(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	onStack := func(address uint64) bool {
		return slices.ContainsFunc(m.native.stacks, func(r region) bool { return address&r.mask == r.bits })
	}
	random, err := os.ReadFile("/proc/sys/kernel/randomize_va_space")
	if err != nil {
		t.Fatal(err)
	}
	persona, err := os.ReadFile("/proc/self/personality") // the shells below inherit it
	if err != nil {
		t.Fatal(err)
	}
	var flags uint64
	if _, err := fmt.Sscanf(string(persona), "%x", &flags); err != nil {
		t.Fatal(err)
	}
	const addrNoRandomize = 0x40000 // linux/personality.h
	fixed := strings.TrimSpace(string(random)) == "0" || flags&addrNoRandomize != 0
	for range 32 { // each process has another layout
		maps, err := exec.Command("sh", "-c", `while read -r line; do echo "$line"; done </proc/self/maps`).Output()
		if err != nil {
			t.Fatal(err)
		}
		stacks := 0
		for line := range strings.Lines(string(maps)) {
			var from, to uint64
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			fields := strings.Fields(line)
			name := ""
			if len(fields) > 5 {
				name = fields[5]
			}
			switch {
			case name == "[stack]":
				stacks++
				if !onStack(to - 1) {
					t.Errorf("a command line is not where stacks are expected: %s", line)
				}
			case fixed, strings.HasPrefix(name, "[v"): // the kernel's own pages: vdso, vvar, vsyscall
			case onStack(from), onStack(to - 1):
				t.Errorf("taken for a stack: %s", line)
			}
		}
		if stacks != 1 {
			t.Fatalf("%d stacks:\n%s", stacks, maps)
		}
	}
}
