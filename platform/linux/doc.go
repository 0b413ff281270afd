// Package linux is the backend for Linux. It confines sessions with Landlock, a
// filter of system calls, and namespaces if the machine has them.
//
// In the sidecar, [Backend.Confine] turns a policy into a confinement. Its
// ruleset ([Translate]) is a pure function of the policy and of Landlock's ABI
// version. In the stage, [RunStage] puts the ruleset in force and reports what
// is enforced. Whatever a kernel lacks is in that report.
//
// Files whose name ends in _linux.go make system calls; all others are pure.
package linux
