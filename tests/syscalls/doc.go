// Package syscalls tests which system calls a session may make.
//
// What the filter must refuse is tried by the program in victim, by raw
// numbers, and has a control in the same test: without a sandbox the kernel
// gives another answer. Where that answer needs a right that the test's own
// user lacks, the refusal alone is tested. Calls are made with arguments that
// fail at once where they are let through. That ordinary programs go on working
// is in tests/ordinary.
package syscalls
