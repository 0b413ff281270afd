// Package denials notices what the kernel refuses a session for the sandbox's
// sake.
//
// Landlock tells nobody what it refuses but the audit log, which few may read
// (package audit does). So the filter sends the calls that can be refused here
// first, by package notify, and an [Observer] says of each, by the same rules,
// whether it is about to be refused. It lets every call go on: Landlock
// decides, and who changes a path or its arguments meanwhile changes a report
// and nothing else.
//
// Each look costs the caller some microseconds. Calls that change files are few
// beside those that read them, and are looked at wherever denials are reported;
// of those that read, the few are that people make by hand, unless all were
// asked for.
package denials
