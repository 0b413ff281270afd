// Package lifetime tests that nothing outlives its session, however the session
// ends. What tries to is a brood, see package harness.
package lifetime
