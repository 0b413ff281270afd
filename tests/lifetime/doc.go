// Package lifetime tests that nothing outlives its session, however the session
// ends. What tries to is escapees, see package harness.
package lifetime
