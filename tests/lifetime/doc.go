// Package lifetime tests that no process outlives its session, however the
// session ends. The processes that try are harness.Escapees and chains.
package lifetime
