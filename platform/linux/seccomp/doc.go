// Package seccomp makes, installs and proves the filter of system calls of a
// session.
//
// A filter is made from a table of rules: each names a system call, an answer
// and the reason. [Filter] is a pure function from the wanted parts
// ([Filtering]) to a program of classic BPF; golden files hold every program.
// [Install] puts one in force on a thread, and [Prove] tries calls that only
// the filter answers so.
//
// The design is described in docs/design/system-call-filter.md.
package seccomp
