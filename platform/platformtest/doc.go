// Package platformtest tests backends against the contract of package platform,
// and provides a fake one.
//
// [Run] is the conformance suite. Its attempts run in separate processes,
// because a sandbox cannot be removed: the test binary is re-executed as the
// stage and as an actor that performs [Act]s and prints the results. So a
// package that uses it calls [Main] from TestMain.
//
// A [Fake] confines nothing and reports what the test says, for tests of
// packages above a backend.
package platformtest
