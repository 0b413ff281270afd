// Package attack tries to get out of the sandbox.
//
// Every promise has attacks, and every attack a positive control in the same
// test: the same action, in a world of the same make, succeeds where the settings
// do not sandbox it. An attack without one would also pass where it could never
// work. Acts are system calls of the program in tests/victim, or real programs;
// they only touch what the test has made, so that no refusal is owed to
// ordinary file permissions.
//
// Most attacks are files in the directory "attacks", one each: shell scripts
// that use the victim. "make attack" prints what comes of each, for root and
// for an ordinary user, without a sandbox, with one, and with one on a machine
// that has no namespaces. What a script cannot say is in Go.
package attack
