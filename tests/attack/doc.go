// Package attack tries to get out of the sandbox.
//
// Every promise has attacks, and every attack a positive control in the same
// test: the same action succeeds in an equal world without a sandbox. An attack
// without a control would also pass if it could never work. Actions are system
// calls of the program in tests/victim, or real programs. They only touch files
// and processes of the test, so that file permissions refuse nothing.
//
// Most attacks are files in the directory "attacks", one each: shell scripts
// that use the victim. "make attack" prints the result of each, for root and
// for an ordinary user: without a sandbox, with one, and with one on a machine
// without namespaces. Attacks that no script can express are in Go.
package attack
