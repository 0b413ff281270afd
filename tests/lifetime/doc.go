// Package lifetime tests that nothing outlives its session, however the session ends.
//
// A brood is seven processes that do what is known to survive elsewhere: background, nohup, a session of its own, a double fork, every
// signal ignored, stopped, and a chain that forks and exits without end. All carry a token in their command lines, by which they are
// found again.
package lifetime
