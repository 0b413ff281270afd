// Package platformtest holds every backend to the contract of package platform,
// and offers a fake one.
//
// [Run] is the conformance suite. What it tries happens in processes of its
// own, because a sandbox cannot be taken off again: the test binary is
// re-executed as the stage and as an actor that performs [Act]s and reports
// what came of them. So a package that uses this one calls [Main] from
// TestMain.
//
// A [Fake] confines nothing and reports what it is told, for tests of what lies
// above a backend.
package platformtest
