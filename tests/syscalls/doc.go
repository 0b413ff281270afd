// Package syscalls tests which system calls a session may make.
//
// The program in victim tries each call that the filter must refuse, by raw
// numbers. Each has a control in the same test: without a sandbox the kernel
// gives another answer. If that answer needs a right that the test's user
// lacks, only the refusal is tested. The arguments are such that an allowed
// call fails at once. Package tests/ordinary tests that ordinary programs still
// work.
package syscalls
