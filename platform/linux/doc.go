// Package linux confines processes with Landlock and a filter of system calls.
//
// The translation of a policy into a ruleset is a pure function over the table
// of Landlock's ABI versions ([Translate]), and the filter is one over a table
// of rules ([Filter]); files whose name ends in _linux.go make the system
// calls. What a kernel lacks is never papered over: it stands in the report.
package linux
