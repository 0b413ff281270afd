//go:build linux

// Command victim is the hostile program of the attack tests. It does what it is
// told by plain system calls, and says how the kernel answered:
//
//	victim ACTION ARGUMENTS… [then ACTION ARGUMENTS…]…
//
// It ends at the first action that is refused, with "refused: ACTION: ERRNO" and
// status 1. Status 0 means that every action was done; status 2 that the program
// was misused or the machine cannot do the action at all, which no test may take
// for a refusal.
//
// access(2) is never asked: Landlock does not mediate it, so that it says yes
// where open(2) is refused.
package main
