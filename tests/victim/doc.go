//go:build linux

// Command victim is the hostile program of the attack tests. It carries out
// actions by plain system calls, and reports the kernel's answers:
//
//	victim ACTION ARGUMENTS… [then ACTION ARGUMENTS…]…
//
// It ends at the first action that is refused, with "refused: ACTION: ERRNO"
// and status 1. Status 0 means that every action was done. Status 2 means that
// the program was misused or the machine cannot do the action at all. No test
// may take status 2 for a refusal.
//
// It never uses access(2): Landlock does not mediate that call, so it would
// succeed where open(2) is refused.
package main
