// Package denials reports what the sandbox denies a session.
//
// Landlock reports its denials only to the audit log, which few processes may
// read. So denials are predicted: the seccomp filter sends
// calls that may fail to an [Observer], through package notify. The observer
// evaluates the policy, reports a denial, and lets the call continue. Landlock
// still decides. A process that changes a path or its arguments meanwhile can
// falsify a report and nothing else.
//
// See docs/design/predicted-denials.md.
package denials
